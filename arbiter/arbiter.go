package arbiter

import "context"

// Arbiter is a running member of the group.
type Arbiter struct{}

// Start starts an arbiter. Errors wrap ErrConfig, ErrStore or those of FSM.Restore.
func Start(cfg Config) (*Arbiter, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	return nil, ErrFailed
}

// Close stops it. What waits gets ErrClosed or ErrUnknown. It may be called again.
func (a *Arbiter) Close() {}

// Receive takes a frame from another arbiter; any goroutine. Frames that cannot be read, and those beyond the queue's bound,
// are dropped and counted. The frame belongs to the arbiter.
func (a *Arbiter) Receive(from uint64, frame []byte) {}

// Peer tells that the transport's connection to another arbiter has opened or closed.
func (a *Arbiter) Peer(raft uint64, alive bool) {}

// Identify says under which number this node asks for leases from now on, and what to tell the leader with each request
// (at most MaxNote bytes). Number 0: ask for none.
func (a *Arbiter) Identify(number uint64, note []byte) {}

// SetPriorities says how much each member (raft ID) is preferred as leader: 1 (most) to 15 (only if nothing else is left).
// Members that are not named count as 8.
func (a *Arbiter) SetPriorities(priorities map[uint64]int) {}

// Propose proposes a command and waits until it is applied here. It is repeated until then, and takes effect at most once.
// Errors: ErrBusy, ErrClosed, ErrFailed (nothing was done); ErrUnknown, which wraps also the context's error.
func (a *Arbiter) Propose(ctx context.Context, command []byte) (change uint64, result any, err error) {
	return a.ProposeIf(ctx, command, Condition{})
}

// ProposeIf is Propose with a condition. More errors: ErrNotLeader, ErrRefused: it takes no effect.
func (a *Arbiter) ProposeIf(ctx context.Context, command []byte, only Condition) (change uint64, result any, err error) {
	return 0, nil, ErrFailed
}

// ReadIndex waits until the FSM has applied everything that was committed when ReadIndex was called, and gives its change
// ID. Errors: the context's, ErrBusy, ErrClosed, ErrFailed.
func (a *Arbiter) ReadIndex(ctx context.Context) (change uint64, err error) { return 0, ErrFailed }

// AddLearner adds a member without a vote. On the leader only. It returns when the change is applied here. Errors:
// ErrNotLeader, ErrMembership, ErrUnknown with the context's.
func (a *Arbiter) AddLearner(ctx context.Context, raft uint64) error { return ErrFailed }

// Promote makes a learner a voter; it must be caught up, and enough voters must be there. See AddLearner.
func (a *Arbiter) Promote(ctx context.Context, raft uint64) error { return ErrFailed }

// Remove removes a member for ever. The leader removes itself never: transfer first. See AddLearner.
func (a *Arbiter) Remove(ctx context.Context, raft uint64) error { return ErrFailed }

// Transfer asks this leader to hand leadership to that voter, or to the best one there is for 0. Nothing is waited for;
// Leadership tells when it happened. Errors: ErrNotLeader, ErrMembership, ErrBusy, ErrClosed, ErrFailed.
func (a *Arbiter) Transfer(raft uint64) error { return ErrFailed }

// Status is a picture of now.
func (a *Arbiter) Status() Status { return Status{} }

// Leases is what the leader knows of the nodes that asked it for leases, by number; nil if this node does not lead.
func (a *Arbiter) Leases() []NodeLease { return nil }

// Failed is closed when the arbiter has stopped because it could not go on safely; Err says why.
func (a *Arbiter) Failed() <-chan struct{} { return nil }

// Err is nil until Failed is closed.
func (a *Arbiter) Err() error { return nil }
