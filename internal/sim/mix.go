package sim

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/opencluster/oclocks/internal/journal"
)

// mix is what a run is made of: each seed draws its own, so that every kind of trouble is there often alone and often with few
// others (swarm testing: Groce and others, ISSTA 2012).
type mix struct {
	nodes   int
	clients int
	buckets uint32
	shards  int
	acks    string
	time    int64 // of trouble
	pause   int64 // mean time between two faults
	wild    bool  // clock rates beyond the promise
	skewed  bool  // clock rates differ
	jitter  int64 // the most that a goroutine waits for a processor

	sync    journal.Sync
	compact int64 // a journal is not compacted below so many bytes
	segment int64 // of the journal, in bytes

	loss, twice, late float64 // of messages between nodes
	delay             int64   // the most that a message takes
	reorder           bool
	replies           float64 // lost answers to clients, and requests
	repeats           float64 // repeated requests
	flip              float64 // bits that flip in messages of the chain
	frames            float64 // bits that flip in frames of Raft
	newer             float64 // messages of the chain in a newer version
	damage            float64 // changes damaged before the sum is made

	maxLease time.Duration // of the cluster: sessions' leases, and the time limits of most holds here
	giveUp   time.Duration // a shared setting

	think  int64  // mean pause of a client between two wishes
	bursts bool   // faults come within milliseconds of a change of views
	faults []kind // that may happen
}

func drawMix(r *rand.Rand) mix {
	m := mix{
		nodes: 3 + r.IntN(3), clients: 3 + r.IntN(4), buckets: 4, shards: 1 + r.IntN(2), acks: [...]string{"first", "first", "majority", "all"}[r.IntN(4)],
		time: (15 + r.Int64N(30)) * second, pause: (100 + r.Int64N(1500)) * ms, delay: 2 * ms,
	}
	some := func() bool { return r.IntN(3) == 0 }
	m.compact, m.segment = 16<<10<<r.IntN(6), 16<<10<<r.IntN(6)
	if some() {
		m.sync = journal.Always
	}
	m.wild = r.IntN(10) == 0
	m.skewed = m.wild || some()
	if some() {
		m.jitter = (1 + r.Int64N(30)) * ms
	}
	if some() {
		m.loss = r.Float64() * 0.15
	}
	if some() {
		m.twice = r.Float64() * 0.1
	}
	if some() {
		m.late = r.Float64() * 0.05
	}
	if some() {
		m.delay = (2 + r.Int64N(40)) * ms
	}
	m.reorder = some()
	if some() {
		m.replies = r.Float64() * 0.2
	}
	if some() {
		m.repeats = r.Float64() * 0.3
	}
	if r.IntN(5) == 0 {
		m.flip = r.Float64() * 0.01
	}
	if r.IntN(6) == 0 {
		m.frames = r.Float64() * 0.02
	}
	if r.IntN(8) == 0 {
		m.newer = r.Float64() * 0.01
	}
	m.think = (5 << r.IntN(7)) * ms
	m.bursts = r.IntN(2) == 0
	m.maxLease = time.Duration(2+r.IntN(3)) * time.Second
	if some() { // long ones, so that who believed before a recovery may still believe after it
		m.maxLease = time.Duration(5+r.IntN(16)) * time.Second
	}
	m.giveUp = time.Duration(1+r.IntN(3)) * time.Second
	if r.IntN(8) == 0 {
		m.damage = r.Float64() * 0.002
	}
	m.drawFaults(r)
	return m
}

// themes are mixes of few faults that are dangerous together. What goes with each is drawn as always.
var themes = [][]string{
	{"in-sync set gone at once", "process killed", "journal lost", "burst of requests", "client stands still"},
	{"in-sync set gone at once", "machine crashed", "bit flipped in a journal", "network in two halves"},
	{"machine stands still", "leader isolated", "primary killed", "goroutine stalled", "leadership transferred"},
	{"buckets doubled", "process killed", "machine crashed", "journal lost", "node leaves and comes back"},
	{"one-way cut", "machine hears and is not heard", "link loses the chain's messages", "link loses Raft's messages", "all buckets moved by hand"},
	{"disk copied", "old disk", "old journal", "process killed", "rolling restart"},
	{"node added", "node removed", "node replaced", "disk lost", "voters changed", "copies changed"},
	{"disk full", "fsync failed", "machine crashed", "process killed at its next write", "all machines crashed"},
}

// drawFaults draws the kinds of fault: each by itself, or sometimes a theme.
func (m *mix) drawFaults(r *rand.Rand) {
	var theme []string
	if r.IntN(4) == 0 {
		theme = themes[r.IntN(len(themes))]
		m.loss, m.late, m.jitter = 0, 0, 0
	}
	for _, k := range allKinds() {
		drawn := r.IntN(4) == 0
		if theme != nil {
			drawn = slices.Contains(theme, k.name)
		}
		if drawn {
			m.faults = append(m.faults, k)
		}
	}
}

// rate of a clock. The promise is that rates differ by less than 1/7, so none is further than 1/14 from the true one, about.
func (m *mix) rate(r *rand.Rand) float64 {
	switch {
	case m.wild:
		return 0.6 + r.Float64()*0.9
	case m.skewed:
		return 1 + (r.Float64()-0.5)*0.13
	}
	return 1
}
