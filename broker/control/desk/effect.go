package desk

import (
	"github.com/opencluster/oclocks/arbiter/core"
	"github.com/opencluster/oclocks/arbiter/plan"
	"github.com/opencluster/oclocks/broker/control/flow"
	"github.com/opencluster/oclocks/bucket/chain"
	"github.com/opencluster/oclocks/conf/shared"
)

// Effect is something to be done.
type Effect interface{ effect() }

// What the copies are told: see [Copies]. None of it comes before Serve.
type (
	// Away tells whether messages reach a node.
	Away struct {
		Node uint64
		Away bool
	}
	// Install tells views that were committed.
	Install struct{ Views []shared.BucketView }
	// Applied tells that everything up to a change is applied.
	Applied struct {
		Change uint64
		State  *shared.State
	}
	// Grant tells the node's lease.
	Grant struct{ Lease }
	// Refused tells that a view that was asked for will never be committed.
	Refused struct{ flow.Ask }
	// Seal asks for copies to be sealed.
	Seal struct{ Orders []plan.SealOrder }
	// HandOver asks for buckets to be handed over.
	HandOver struct{ Orders []plan.HandOverOrder }
)

// What others are told.
type (
	// Begin a reign in this term.
	Begin struct{ core.Leadership }
	// End the reign.
	End struct{}
	// Report goes to this node's own reign if Here, or to whoever leads; it fits into one message.
	Report struct {
		Here    bool
		Node    uint64 // this one
		Reports []plan.BucketReport
	}
	// Greet sends a node a hello. Ask: it is to answer.
	Greet struct {
		Node uint64
		Ask  bool
	}
	// Peer tells the arbiter whether messages reach another one.
	Peer struct {
		Raft  uint64
		Alive bool
	}
	// Prefer tells the arbiter whom to prefer as leader, by raft ID.
	Prefer struct{ Priorities map[uint64]int }
	// Seen is who is away, and who of them said so, by number. The reign wants to know (reign.Changed).
	Seen struct{ Away, Gone map[uint64]bool }
	// Noticed is for the log: a node is away or back.
	Noticed struct {
		Node uint64
		Name string
		Away bool
	}
	// Over says that this process cannot go on as the node: flow.ErrRemoved or flow.ErrDuplicate.
	Over struct{ Err error }
)

func (Away) effect()     {}
func (Install) effect()  {}
func (Applied) effect()  {}
func (Grant) effect()    {}
func (Refused) effect()  {}
func (Seal) effect()     {}
func (HandOver) effect() {}
func (Begin) effect()    {}
func (End) effect()      {}
func (Report) effect()   {}
func (Greet) effect()    {}
func (Peer) effect()     {}
func (Prefer) effect()   {}
func (Seen) effect()     {}
func (Noticed) effect()  {}
func (Over) effect()     {}

// Lease is what the arbiter granted this node last.
type Lease struct {
	chain.Lease
	Live int // nodes that hold one
}
