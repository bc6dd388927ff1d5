package sim

import (
	"math/rand/v2"
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
	edge    bool  // as much as the promise allows
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

	think  int64   // mean pause of a client between two wishes
	names  int     // of locks that are fought for
	keep   int64   // the most that a lock is kept
	brief  float64 // chance of a lock to be given back at once
	silent float64 // chance of a holder to ask nothing meanwhile
	tools  int     // the most that a session client has at a time
	force  float64 // chance of a wish to end somebody else's hold to be carried out
	deaf   float64 // chance of a holder whose hold is forced to hear no events then
	keeper float64 // chance of a session client to keep what it has for long, and to ask nothing meanwhile
	behind float64 // chance of a client's wall clock to be behind that of its user's earlier processes

	bursts bool   // faults come within milliseconds of a change of views
	theme  string // of the faults; "": none
	faults []kind // that may happen
}

func drawMix(r *rand.Rand, theme string) mix {
	m := mix{
		nodes: 3 + r.IntN(3), clients: 3 + r.IntN(4), buckets: [...]uint32{1, 2, 4, 4, 4}[r.IntN(5)], shards: 1 + r.IntN(2), acks: [...]string{"first", "first", "majority", "all"}[r.IntN(4)],
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
	m.names, m.keep, m.silent, m.tools, m.force = len(lockNames), 3*second, 0.25, 1, 0.33
	if some() {
		m.crowd(r)
	}
	if some() {
		m.deaf = r.Float64()
	}
	if r.IntN(2) == 0 {
		m.keeper = r.Float64()
	}
	m.bursts = r.IntN(2) == 0
	m.maxLease = time.Duration(2+r.IntN(3)) * time.Second
	if some() { // long ones, so that who believed before a recovery may still believe after it
		m.maxLease = time.Duration(5+r.IntN(16)) * time.Second
	}
	m.giveUp = time.Duration(1+r.IntN(3)) * time.Second
	if r.IntN(8) == 0 {
		m.damage = r.Float64() * 0.002
	}
	m.drawFaults(r, theme)
	if some() {
		m.behind = r.Float64()
	}
	return m
}

// rate of a clock. The promise is that rates differ by less than 1/7, so none is further than 1/14 from the true one, about.
func (m *mix) rate(r *rand.Rand) float64 {
	switch {
	case m.wild:
		return 0.6 + r.Float64()*0.9
	case m.edge:
		return [...]float64{0.935, 1.065}[r.IntN(2)]
	case m.skewed:
		return 1 + (r.Float64()-0.5)*0.13
	}
	return 1
}
