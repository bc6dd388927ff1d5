package shared

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/opencluster/oclocks/bucket/chain"
	"github.com/opencluster/oclocks/conf"
)

// format is the version of the snapshot.
const format = 1

type snapshot struct {
	Format   int                      `json:"format"`
	Cluster  string                   `json:"cluster"`
	Locked   bool                     `json:"locked"`
	Term     uint64                   `json:"term"`
	Settings map[string]string        `json:"settings"`
	Nodes    []Node                   `json:"nodes"`
	Zones    []conf.Zone              `json:"zones"`
	Keys     map[string]conf.ZoneKeys `json:"keys"`
	Buckets  int                      `json:"buckets"`
	Views    []BucketView             `json:"views"` // those that there are, by bucket
	Pins     map[uint32]uint64        `json:"pins"`
	Last     uint64                   `json:"last"`
	Removed  []uint64                 `json:"removed"`

	Longest   time.Duration `json:"longest,omitempty"`
	Shortened uint64        `json:"shortened,omitempty"`
	Level     uint32        `json:"level,omitempty"`
}

// Snapshot is the whole state, for Restore on another node. The zones' keys are in it, so it is a secret.
func (f *FSM) Snapshot() []byte {
	s := f.State()
	snap := snapshot{
		Format: format, Cluster: s.Cluster, Locked: s.Locked, Term: s.Term, Settings: s.Settings.all(), Nodes: s.Nodes, Zones: s.Zones,
		Keys: s.Keys, Buckets: len(s.Views), Pins: s.Pins, Last: s.Last, Removed: s.Removed,
		Longest: s.Longest, Shortened: s.Shortened, Level: s.Level,
	}
	for b, v := range s.Views {
		if v.Epoch > 0 {
			snap.Views = append(snap.Views, BucketView{uint32(b), v})
		}
	}
	text, err := json.Marshal(snap)
	if err != nil {
		panic("shared: encode a snapshot: " + err.Error()) // no field of it can fail
	}
	return text
}

// Restore replaces the state by a snapshot that was taken after that change. ErrSnapshot if it is none; nothing has changed
// then. ErrOldProgram: it is of a level that this program does not know.
func (f *FSM) Restore(change uint64, text []byte) error {
	var first struct {
		Level uint32 `json:"level"`
	}
	if err := json.Unmarshal(text, &first); err == nil && max(1, first.Level) > f.known {
		f.stop = tooOld(f.known, first.Level)
		return f.stop
	}
	var snap snapshot
	if err := strict(text, &snap); err != nil {
		return fmt.Errorf("%w: %w", ErrSnapshot, err)
	}
	s, err := snap.state()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrSnapshot, err)
	}
	s.Change = change
	f.now.Store(&version{s, digest(s)})
	return nil
}

func (p *snapshot) state() (*State, error) {
	if p.Format != format {
		return nil, fmt.Errorf("format %d is unknown", p.Format)
	}
	if p.Buckets < 0 || p.Buckets > conf.MaxBuckets || p.Buckets&(p.Buckets-1) != 0 {
		return nil, fmt.Errorf("%d buckets", p.Buckets)
	}
	settings, err := DefaultSettings().setAll(p.Settings)
	if err != nil {
		return nil, err
	}
	s := &State{
		Cluster: p.Cluster, Locked: p.Locked, Term: p.Term, Settings: settings, Nodes: p.Nodes, Zones: p.Zones, Keys: p.Keys, Pins: p.Pins,
		Last: p.Last, Removed: p.Removed, Longest: p.Longest, Shortened: p.Shortened, Level: p.Level,
	}
	if p.Longest < 0 || p.Longest > conf.LeaseLimit || (p.Longest != 0) != (p.Shortened != 0) || p.Longest != 0 && p.Longest <= settings.MaxLease {
		return nil, fmt.Errorf("longest lease %s since change %d", p.Longest, p.Shortened)
	}
	if p.Buckets > 0 {
		s.Views = make([]chain.View, p.Buckets)
	}
	for i := range p.Views {
		b := &p.Views[i]
		if int(b.Bucket) >= p.Buckets || i > 0 && b.Bucket <= p.Views[i-1].Bucket {
			return nil, fmt.Errorf("view of bucket %d in its place", b.Bucket)
		}
		if err := b.View.Validate(); err != nil {
			return nil, fmt.Errorf("bucket %d: %w", b.Bucket, err)
		}
		s.Views[b.Bucket] = b.View
	}
	for i := range p.Nodes {
		n := &p.Nodes[i]
		if n.Number == 0 || n.Number > p.Last || n.Life == 0 || n.Life > MaxLife || n.Raft == 0 ||
			i > 0 && n.Number <= p.Nodes[i-1].Number {
			return nil, fmt.Errorf("node %d in place %d", n.Number, i)
		}
	}
	sorted := slices.IsSortedFunc(p.Zones, func(a, b conf.Zone) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	if !sorted {
		return nil, fmt.Errorf("the zones are not in order")
	}
	return s, nil
}
