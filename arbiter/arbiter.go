package arbiter

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/opencluster/oclocks/arbiter/core"
)

// Arbiter is a running member of the group. Its methods may be called from any goroutine, and those that do not take a context
// (but Close) from FSM, Events and MayLease too.
type Arbiter struct {
	cfg   Config
	queue *queue

	// Of the goroutine.
	node    *core.Node
	calls   map[uint64]*call
	ids     core.CallIDs
	calling []*call  // of this turn
	late    []func() // of this turn
	lost    uint64   // frames that were told of as dropped

	status atomic.Pointer[Status]
	leases atomic.Pointer[[]NodeLease]

	stop   chan struct{}
	ended  chan struct{}
	failed chan struct{}
	closed sync.Once
	err    error // before failed is closed
}

// Start starts an arbiter. When it returns, the FSM has everything that the store knows to be committed, and a single voter
// leads; FSM and Events are called on the caller's goroutine until then. Errors wrap ErrConfig, ErrStore, or what the FSM said.
func Start(cfg Config) (*Arbiter, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	if settings := cfg.core(1); settings.Validate() != nil {
		return nil, settings.Validate()
	}
	if cfg.Found {
		if !cfg.Store.Empty() {
			return nil, fmt.Errorf("%w: the store of a member cannot found a group", ErrConfig)
		}
		first := core.Found(cfg.Store.RaftID(), cfg.FSM.Snapshot())
		if err := cfg.Store.save(&first); err != nil {
			return nil, err
		}
	}
	life, start, err := cfg.Store.begin()
	if err != nil {
		return nil, err
	}
	a := &Arbiter{
		cfg: cfg, queue: newQueue(), calls: map[uint64]*call{},
		stop: make(chan struct{}), ended: make(chan struct{}), failed: make(chan struct{}),
	}
	if a.node, err = core.New(cfg.core(life), start, cfg.Clock()); err != nil {
		return nil, err
	}
	if err := a.node.CarryOut(shell{a}); err != nil {
		return nil, err
	}
	shell{a}.Publish()
	go a.run()
	return a, nil
}

// Close stops it and waits for its goroutine. What waits gets ErrClosed or ErrUnknown. It may be called again, but not from FSM,
// Events or MayLease.
func (a *Arbiter) Close() {
	a.closed.Do(func() { close(a.stop) })
	<-a.ended
}

// Receive takes a frame from another arbiter. Frames that cannot be read, and those beyond the queue's bound, are dropped and
// logged. The frame belongs to the arbiter.
func (a *Arbiter) Receive(from uint64, frame []byte) { a.queue.frame(from, frame) }

// Peer tells that the transport's connection to another arbiter has opened or closed. If that one was the leader, this node
// asks for votes at once.
func (a *Arbiter) Peer(raft uint64, alive bool) {
	a.queue.peer(core.PeerState{Raft: raft, Alive: alive})
}

// Identify says under which number this node asks for leases from now on, and what to tell the leader with each request: at
// most MaxNote bytes. Number 0: ask for none. Errors wrap ErrConfig or ErrClosed.
func (a *Arbiter) Identify(number uint64, note []byte) error {
	if len(note) > MaxNote {
		return fmt.Errorf("%w: a note of %d bytes, at most %d are allowed", ErrConfig, len(note), MaxNote)
	}
	id := &core.Identity{Number: number, Note: slices.Clone(note)}
	return a.queue.change(func() error {
		a.queue.Identity = id
		return nil
	})
}

// SetPriorities says how much each member (raft ID) is preferred as leader: 1 (most) to 15 (only if nothing else is left).
// Members that are not named count as core.DefaultPriority.
func (a *Arbiter) SetPriorities(priorities map[uint64]int) {
	copied := maps.Clone(priorities)
	if copied == nil {
		copied = map[uint64]int{}
	}
	// Refused only when closed, and then nobody prefers anybody.
	_ = a.queue.change(func() error {
		a.queue.Priorities = copied
		return nil
	})
}

// Propose proposes a command and waits until it is applied here; result is what this node's FSM.Apply said. It is repeated
// until then, and takes effect at most once. Errors: the context's, ErrBusy, ErrClosed, ErrProposal, ErrFailed: nothing was done,
// and nothing will be; ErrUnknown: nobody knows.
func (a *Arbiter) Propose(ctx context.Context, command []byte) (change uint64, result any, err error) {
	return a.ProposeIf(ctx, command, Condition{})
}

// ProposeIf is Propose with a condition. It is not repeated. More errors: ErrNotLeader, ErrRefused: it has no effect.
func (a *Arbiter) ProposeIf(ctx context.Context, command []byte, only Condition) (change uint64, result any, err error) {
	command = slices.Clone(command)
	o := a.wait(ctx, &call{
		do:      func(id uint64) error { return a.node.Propose(id, command, only) },
		abandon: func(id uint64) { a.node.Abandon(id) },
		changes: true,
	})
	return o.change, o.result, o.err
}

// ReadIndex waits until the FSM has everything that was committed when ReadIndex was called, and gives the change ID of its
// last command. Errors: the context's, ErrBusy, ErrClosed, ErrFailed.
func (a *Arbiter) ReadIndex(ctx context.Context) (change uint64, err error) {
	o := a.wait(ctx, &call{
		do:      func(id uint64) error { return a.node.ReadIndex(id) },
		abandon: func(id uint64) { a.node.AbandonRead(id) },
	})
	return o.change, o.err
}

// AddLearner adds a member without a vote; on the leader only. It returns when that is applied here. Errors: the context's,
// ErrNotLeader, ErrMembership, ErrRefused, ErrBusy, ErrClosed, ErrFailed: nothing was done; ErrUnknown.
func (a *Arbiter) AddLearner(ctx context.Context, raft uint64) error {
	return a.member(ctx, core.AddLearner, raft)
}

// Promote makes a learner a voter. It must be caught up, and a majority of the voters must then be there. See AddLearner.
func (a *Arbiter) Promote(ctx context.Context, raft uint64) error {
	return a.member(ctx, core.Promote, raft)
}

// Remove removes a member for ever. A leader does not remove itself: transfer first. See AddLearner.
func (a *Arbiter) Remove(ctx context.Context, raft uint64) error {
	return a.member(ctx, core.Remove, raft)
}

func (a *Arbiter) member(ctx context.Context, step core.Step, raft uint64) error {
	return a.wait(ctx, &call{
		do:      func(id uint64) error { return a.node.ChangeMembership(id, step, raft) },
		abandon: func(id uint64) { a.node.Abandon(id) },
		changes: true,
	}).err
}

// Transfer asks this leader to hand leadership to that voter, or to the best other one for 0. It returns when the attempt has
// begun; Leadership tells what came of it, within about an election time. Errors: the context's, ErrNotLeader, ErrMembership,
// ErrBusy, ErrClosed, ErrFailed.
func (a *Arbiter) Transfer(ctx context.Context, raft uint64) error {
	return a.wait(ctx, &call{
		do: func(id uint64) error {
			err := a.node.Transfer(raft)
			if err == nil {
				a.endCall(id, outcome{})
			}
			return err
		},
		abandon: func(uint64) {},
	}).err
}

// Status is a picture of this node as of its last turn. It is shared: do not change it.
func (a *Arbiter) Status() Status { return *a.status.Load() }

// Leases is what this leader knows of the nodes that asked it for leases, by number, as of its last turn; nil if it does not
// lead. It is shared: do not change it.
func (a *Arbiter) Leases() []NodeLease { return *a.leases.Load() }

// Failed is closed when the arbiter has stopped because it could not go on safely; Err says why.
func (a *Arbiter) Failed() <-chan struct{} { return a.failed }

// Err is nil until Failed is closed. It wraps ErrFailed.
func (a *Arbiter) Err() error {
	select {
	case <-a.failed:
		return a.err
	default:
		return nil
	}
}
