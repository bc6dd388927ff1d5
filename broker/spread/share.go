package spread

import (
	"maps"
	"time"

	"github.com/opencluster/oclocks/arbiter/plan"
	"github.com/opencluster/oclocks/bucket/chain"
	"github.com/opencluster/oclocks/conf/shared"
)

// Replica is what is told of a bucket's copy: *chain.Replica.
type Replica interface {
	Install(view chain.View) error
	Applied(change uint64)
	Grant(lease chain.Lease)
	Seal(epoch uint64)
	View() chain.View
	HandOver(to chain.Member) error
	Away(node uint64, away bool)
	Join()
	Leave() error
	Score(node uint64, value int64)
}

// Cell is a bucket in its shard: *replicated.Bucket.
type Cell[R Replica] interface {
	Number() uint32
	Chain() R
	SetLeases(longest time.Duration, recovery int64)
	Refused(view *chain.View)
}

// Host is the shard, in the middle of a batch.
type Host[C any] interface {
	Cells() []C // all that have begun here, in a fixed order
	// Cell is the one of a bucket, if it has begun here.
	Cell(bucket uint32) (C, bool)
	// Touch tells a cell the time if it has had no input in this batch, and has it take part in the batch.
	Touch(C)
	// Due: what the cell waits for may come earlier than it was.
	Due(C)
	// Outcome is for the log. Adopt: a view that was committed is not installed. Score: a copy is kept that need not be. HandOver: err is
	// nil if it has begun.
	Outcome(what Kind, bucket uint32, err error)
}

// Share is what the buckets of one shard were told.
type Share[R Replica, C Cell[R]] struct {
	self          uint64 // number of the node
	index, shards int

	state  *shared.State
	change uint64
	lease  chain.Lease
	away   map[uint64]bool       // nodes of the state
	absent map[uint32]chain.View // of buckets that have not begun here
}

// NewShare is for the shard with an index of so many: its buckets are those whose number is index modulo shards. state is what they are
// opened with.
func NewShare[R Replica, C Cell[R]](self uint64, index, shards int, state *shared.State) *Share[R, C] {
	return &Share[R, C]{self: self, index: index, shards: shards, state: state, away: map[uint64]bool{}, absent: map[uint32]chain.View{}}
}

// Do tells the buckets. What a bucket is told that has not begun here is told again, or kept for Begin.
func (s *Share[R, C]) Do(h Host[C], t *Task) {
	if number, one := t.Only(); one {
		if c, there := h.Cell(number); there {
			h.Touch(c)
			s.only(h, t, c)
		}
		return
	}
	switch t.Kind {
	case Adopt:
		s.adopt(h, t)
	case Lease:
		s.lease = t.Lease
		for _, c := range h.Cells() {
			c.Chain().Grant(t.Lease)
			h.Due(c)
		}
	case Reach:
		if s.away[t.Node] = t.Away; !t.Away || s.state.Node(t.Node) == nil {
			delete(s.away, t.Node)
		}
		for _, c := range h.Cells() {
			h.Touch(c)
			c.Chain().Away(t.Node, t.Away)
		}
	case Scores:
		for _, c := range h.Cells() {
			s.score(h, c, t.State)
		}
	}
}

// only tells one bucket.
func (s *Share[R, C]) only(h Host[C], t *Task, c C) {
	switch t.Kind {
	case Seal:
		c.Chain().Seal(t.Epoch)
	case HandOver:
		if view := c.Chain().View(); view.Epoch == t.Epoch { // else decided before something else happened
			h.Outcome(HandOver, t.Bucket, c.Chain().HandOver(t.To))
		}
	case Refuse:
		view := t.View.Clone()
		c.Refused(&view)
	case Score:
		s.score(h, c, t.State)
	}
}

// adopt tells a state.
func (s *Share[R, C]) adopt(h Host[C], t *Task) {
	s.state = t.State
	maps.DeleteFunc(s.away, func(node uint64, _ bool) bool { return s.state.Node(node) == nil })
	for _, c := range h.Cells() {
		c.SetLeases(t.MaxLease, int64(s.state.Recovery()))
	}
	for i := range t.Views {
		if v := &t.Views[i]; int(v.Bucket)%s.shards == s.index {
			s.install(h, v.Bucket, v.View)
		}
	}
	s.change = t.Change
	for _, c := range h.Cells() {
		if t.Grown { // the primaries split their tables in this batch
			h.Touch(c)
		}
		c.Chain().Applied(s.change)
		h.Due(c)
	}
}

// install tells a copy of a view, or keeps it for one that has not begun.
func (s *Share[R, C]) install(h Host[C], number uint32, view chain.View) {
	c, there := h.Cell(number)
	if !there {
		s.absent[number] = view
		return
	}
	h.Touch(c)
	if err := c.Chain().Install(view); err != nil {
		h.Outcome(Adopt, number, err)
	}
	for _, m := range view.Chain { // whoever asked for the view did not know yet
		if removed(s.state, m.Node) {
			c.Chain().Away(m.Node, true)
		}
	}
}

// Begin tells a bucket that has just begun what the others were told before.
func (s *Share[R, C]) Begin(h Host[C], c C) {
	if view, known := s.absent[c.Number()]; known {
		delete(s.absent, c.Number())
		s.install(h, c.Number(), view)
	}
	c.Chain().Applied(s.change)
	c.Chain().Grant(s.lease)
	for i := range s.state.Nodes {
		if node := s.state.Nodes[i].Number; s.away[node] {
			c.Chain().Away(node, true)
		}
	}
	s.score(h, c, s.state)
}

// score tells a copy whom to prefer as first secondary, and whether this node is to have it at all.
func (s *Share[R, C]) score(h Host[C], c C, state *shared.State) {
	number := c.Number()
	if plan.Keeps(state, number, s.self) {
		c.Chain().Join()
	} else if err := c.Chain().Leave(); err != nil {
		h.Outcome(Score, number, err)
	}
	for i := range state.Nodes {
		if node := state.Nodes[i].Number; node != s.self {
			c.Chain().Score(node, plan.Score(state, number, node))
		}
	}
	h.Touch(c)
}
