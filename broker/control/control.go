package control

import (
	"context"

	"github.com/opencluster/oclocks/bucket/chain"
	"github.com/opencluster/oclocks/conf/shared"
)

// Control is the control plane on this node.
type Control struct{}

// Start starts it. The context bounds the start only, which does not wait for other nodes. Errors wrap ErrConfig,
// ErrDuplicate, or are the arbiter's.
func Start(ctx context.Context, cfg Config) (*Control, error) { return nil, ErrConfig }

// WaitRegistered waits until the node knows who it is, and its state has that. Errors: ErrDuplicate, ErrRemoved, ErrRefused
// (no use to wait), ErrClosed, the context's.
func (c *Control) WaitRegistered(ctx context.Context) (number, life uint64, state *shared.State, err error) {
	return 0, 0, nil, ErrClosed
}

// Serve says that the copies are there: from now on they are told views, changes, leases and orders. Call it once.
func (c *Control) Serve(copies Copies) {}

// Propose asks for a view to be committed (chain.Output.Propose). It never waits; asking again is free.
func (c *Control) Propose(bucket uint32, view chain.View) {}

// Sealed tells what a sealed copy has (chain.Output.Sealed). It never waits.
func (c *Control) Sealed(bucket uint32, report chain.Report) {}

// Alert tells all nodes. bucket is -1 if it is about none. It never waits.
func (c *Control) Alert(bucket int64, text string) {}

// State is the shared configuration as applied here.
func (c *Control) State() *shared.State { return nil }

// Read waits until everything that was committed before the call is applied here, and gives the state then.
func (c *Control) Read(ctx context.Context) (*shared.State, error) { return nil, ErrClosed }

// Change carries out a command of a tool; Result.Err says if it was refused. ErrUnavailable: there is no leader, and the
// outcome is not known.
func (c *Control) Change(ctx context.Context, command shared.Command) (shared.Result, error) {
	return shared.Result{}, ErrClosed
}

// Status is this node now.
func (c *Control) Status() Status { return Status{} }

// Cluster asks all nodes for their status and gives what came, by number, when all have answered that are registered and
// not away, or after a short while.
func (c *Control) Cluster(ctx context.Context) []Status { return nil }

// Leave asks the leader to move everything that this node is primary of to others, waits until that is done, gives the
// leadership away if it has it, and tells everybody that this node goes. ErrAlone: nobody is there to take over.
func (c *Control) Leave(ctx context.Context) error { return ErrClosed }

// Failed is closed when this node cannot go on; Err says why (ErrDuplicate, ErrRemoved, the arbiter's reason).
func (c *Control) Failed() <-chan struct{} { return nil }

// Err is nil until Failed is closed.
func (c *Control) Err() error { return nil }

// Close ends everything that Start began. It may be called again.
func (c *Control) Close() {}
