package plan

import (
	"cmp"
	"maps"
	"slices"

	"github.com/opencluster/oclocks/bucket/chain"
	"github.com/opencluster/oclocks/conf/shared"
)

// Planner plans for the leader. What it remembers is only of use to be faster: a new one, at a new leader, begins with
// nothing.
type Planner struct {
	cfg Config

	leading bool
	term    uint64
	began   int64 // time of the first Step of this term

	sights     map[uint64]*sight  // what was seen of each node, by number
	takes      map[uint32]*take   // buckets that are to get a next view
	asked      []asked            // by bucket
	probed     int64              // when the buckets were last gone through for that
	unanswered bool               // some have been asked and did not answer yet
	moves      map[uint32]*move   // hand-overs that were ordered
	failed     map[uint32]failure // hand-overs that came to nothing
	group      groupWork
	leases     leases

	scanned   *shared.State // trouble is of this state
	scannedBy uint64        // and of these nodes whose lease has ended
	trouble   []uint32      // buckets without a view, or whose primary may be lost

	balanced   int64         // when balance was looked at
	balancedOf *shared.State // of what
	balancedBy uint64        // and how the nodes were
}

// Config of a planner; a zero field has the default. Times are nanoseconds.
type Config struct {
	Linger int64 // how long copies that are alive and not needed are waited for, so that they keep their place (20 ms)
	Grace  int64 // how long a primary that has sealed itself has to bring its own next view (200 ms)
	Stuck  int64 // how long a chain in which another one has sealed itself has to go on without it (2 s)
	Gather int64 // how long a recovery waits for the copies of nodes that are alive (200 ms)
	Repeat int64 // until an order or a command is given again (100 ms)
	Settle int64 // how long a node must have had its lease before something is moved to it (3 s)
	Move   int64 // how long a hand-over may take, and after a failed one until the next try (10 s)
	Probe  int64 // how often a primary is asked whether it is sealed (10 s, and 1 ms for each bucket)
	Absent int64 // after which a voter that is away is replaced by a learner (30 s)
	Moves  int   // hand-overs at a time (16)
	Batch  int   // views in one command, orders of one kind in one Output (4096)
}

func (c Config) withDefaults() Config {
	const ms = 1_000_000
	for _, d := range []struct {
		at  *int64
		def int64
	}{
		{&c.Linger, 20 * ms},
		{&c.Grace, 200 * ms},
		{&c.Stuck, 2000 * ms},
		{&c.Gather, 200 * ms},
		{&c.Repeat, 100 * ms},
		{&c.Settle, 3000 * ms},
		{&c.Move, 10_000 * ms},
		{&c.Probe, 10_000 * ms},
		{&c.Absent, 30_000 * ms},
	} {
		if *d.at == 0 {
			*d.at = d.def
		}
	}
	if c.Moves == 0 {
		c.Moves = 16
	}
	if c.Batch == 0 {
		c.Batch = 4096
	}
	return c
}

// Never is what Output.Next says when nothing is due: this node does not lead.
const Never int64 = chain.Never

// New makes a planner.
func New(cfg Config) *Planner {
	p := &Planner{cfg: cfg.withDefaults()}
	p.forget()
	return p
}

// forget begins with nothing.
func (p *Planner) forget() {
	*p = Planner{
		cfg: p.cfg, sights: map[uint64]*sight{}, takes: map[uint32]*take{}, moves: map[uint32]*move{},
		failed: map[uint32]failure{},
	}
}

// Step says what is to be done now. It is cheap if nothing has happened, and may be called as often as something does; a
// report, another State and Output.Next are occasions.
func (p *Planner) Step(in Input) Output {
	switch {
	case !in.Leading || in.State == nil:
		if p.leading {
			p.forget()
		}
		return Output{Next: Never}
	case !p.leading || p.term != in.Term:
		p.forget()
		p.leading, p.term, p.began = true, in.Term, in.Now
	}
	t := p.look(&in)
	t.hear(in.Reports)
	t.take()
	if len(t.out.Views) > 0 {
		t.out.Term = t.Term
	}
	t.probe()
	t.balance()
	t.members()
	t.outlive()
	return t.finish()
}

// turn is one Step.
type turn struct {
	*Planner
	*Input
	seats map[uint64]*seat
	order []*seat // by number
	rule  chain.Acks
	bar   map[uint64]bool
	out   Output
}

// wake asks for the next Step at a time, if that is not over.
func (t *turn) wake(at int64) { t.out.Next = min(t.out.Next, max(at, t.Now)) }

func (t *turn) finish() Output {
	o := &t.out
	o.Bar = slices.Sorted(maps.Keys(t.bar))
	slices.SortFunc(o.Seal, func(a, b SealOrder) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Bucket, b.Bucket), cmp.Compare(a.Epoch, b.Epoch))
	})
	slices.SortFunc(o.HandOver, func(a, b HandOverOrder) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Bucket, b.Bucket))
	})
	return *o
}

// full says whether a list is as long as one Output may have it; then another Step is due at once.
func (t *turn) full(n int) bool {
	if n < t.cfg.Batch {
		return false
	}
	t.wake(t.Now)
	return true
}
