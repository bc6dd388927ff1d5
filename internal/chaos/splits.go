package chaos

import (
	"context"
	"sync"
	"time"

	"github.com/opencluster/oclocks/bucket/replicated"
	"github.com/opencluster/oclocks/internal/check"
	"github.com/opencluster/oclocks/subjects"
)

// splits is what the run knows of the buckets that there are. One that another was split into may begin with what that one has after a
// recovery, until all of its copies have begun; and a bucket that has to be split first gives nothing to anybody meanwhile.
type splits struct {
	mu    sync.Mutex
	begun map[uint32]bool // all its copies have been seen
	total uint32          // how many buckets there are
	until time.Time       // there may be more before that, whatever is seen
}

// seen takes what a node says about the whole.
func (s *splits) seen(all *subjects.Cluster) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.begun == nil {
		s.begun = make(map[uint32]bool)
	}
	s.total = max(s.total, all.Total)
	for i := range all.Nodes {
		if !all.Nodes[i].Answered {
			return // nobody says what copies it has
		}
	}
	if all.More > 0 {
		return
	}
	poor := make(map[uint32]bool)
	for i := range all.Buckets {
		poor[all.Buckets[i].Bucket] = true
	}
	for b := range all.Total {
		s.begun[b] = s.begun[b] || !poor[b]
	}
}

// hangOn are the buckets of total that may begin with what a bucket has later.
func (s *splits) hangOn(b, total uint32) (halves []uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for half := b + 1; half < total; half++ {
		parent := half
		for parent > b && !s.begun[parent] {
			parent = replicated.ParentOf(parent)
		}
		if parent == b {
			halves = append(halves, half)
		}
	}
	return halves
}

// expect says that there may be more buckets for so long, from now on.
func (s *splits) expect(length time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.until = time.Now().Add(length)
}

// open says whether some bucket may have to be split.
func (s *splits) open() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for b := range s.total {
		if !s.begun[b] {
			return true
		}
	}
	return time.Now().Before(s.until)
}

// All nodes are asked within lookTime. A command that has failed may be carried out for as long as lateTime.
const (
	lookTime = 3 * time.Second
	lateTime = toolTime
)

// double doubles the number of buckets.
func (r *run) double(ctx context.Context) (*effect, error) {
	r.splits.expect(toolTime + lookTime)
	e, err := r.tell(ctx, "buckets", "double")
	if err != nil {
		r.splits.expect(lateTime)
		return nil, err
	}
	r.splits.expect(lookTime)
	return e, nil
}

// withheldTime is shorter than any wait of a client.
const withheldTime = 30 * time.Millisecond

// withholds notes, until ctx ends, that buckets may give nothing because they have to be split first.
func (r *run) withholds(ctx context.Context) {
	for sleep(ctx, withheldTime) {
		if r.splits.open() {
			r.own.add(check.Event{Kind: check.Withheld, Buckets: 1})
		}
	}
}
