package arbiter

import (
	"cmp"
	"fmt"
	"log/slog"
	"time"

	"github.com/opencluster/oclocks/arbiter/core"
	"github.com/opencluster/oclocks/internal/boottime"
)

// FSM is what the group replicates. All its methods are called on the arbiter's goroutine, in order; they must not call
// the arbiter and wait for it.
type FSM interface {
	// Apply applies a committed command under its change ID, which rises with every call (not always by one). It must give
	// the same state on every node. The result goes to the proposer, on the node that proposed.
	// An error stops the arbiter for good: this node cannot do what the others do.
	Apply(change uint64, command []byte) (any, error)
	// Digest stands for the whole state: nodes with different digests at the same change ID have come apart.
	Digest() uint64
	// Snapshot gives the whole state. The bytes are not changed afterwards.
	Snapshot() []byte
	// Restore replaces the whole state by that of a snapshot taken at the given change ID.
	Restore(change uint64, snapshot []byte) error
}

// Defaults of Config.
const (
	DefaultLease     = 800 * time.Millisecond
	DefaultRenew     = 150 * time.Millisecond
	DefaultHeartbeat = 40 * time.Millisecond
	DefaultElection  = 200 * time.Millisecond
)

// Config is what an arbiter is started with.
type Config struct {
	Store Store // required; the caller closes it after Close
	FSM   FSM   // required; in its beginning state: Start restores what the store has
	// Found makes this node the only voter of a new group. The store must be empty.
	Found bool
	// Send gives a frame to the arbiter with that raft ID. Best effort: it may be lost. It must not block; the frame is the
	// callee's. It is called on the arbiter's goroutine.
	Send func(to uint64, frame []byte)
	// Events gets what happens, on the arbiter's goroutine, in order; it must not block nor wait for the arbiter. May be nil.
	Events func(Event)
	// MayLease is asked, on the leader, before a node gets a lease (number and raft ID); an error refuses it, and the node is told the text. It is
	// called on the arbiter's goroutine between applications of the FSM. Nil: everybody may.
	MayLease func(number, raft uint64) error
	// Logger gets what people should know. Nil: slog.Default().
	Logger *slog.Logger
	// Reluctant makes a voter that stores the log but does not want to lead: it campaigns only if it has refused a candidate
	// for its shorter log and no leader appeared, and hands leadership on as soon as it can.
	Reluctant bool

	Lease     time.Duration // 0: DefaultLease; the same on all nodes, from 10 ms to 1 h
	Renew     time.Duration // 0: DefaultRenew; at most a third of Lease
	Heartbeat time.Duration // 0: DefaultHeartbeat, from 1 ms
	Election  time.Duration // 0: DefaultElection, at least twice Heartbeat; a silent leader is replaced after once to twice that

	// Clock gives the boot time in nanoseconds. Nil: boottime.Now. Others are for tests.
	Clock func() int64
}

func (c *Config) complete() error {
	switch {
	case c.Store == nil:
		return fmt.Errorf("%w: no Store", ErrConfig)
	case c.FSM == nil:
		return fmt.Errorf("%w: no FSM", ErrConfig)
	case c.Send == nil:
		return fmt.Errorf("%w: no Send", ErrConfig)
	}
	c.Lease, c.Renew = cmp.Or(c.Lease, DefaultLease), cmp.Or(c.Renew, DefaultRenew)
	c.Heartbeat, c.Election = cmp.Or(c.Heartbeat, DefaultHeartbeat), cmp.Or(c.Election, DefaultElection)
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.Clock == nil {
		c.Clock = boottime.Now
	}
	return nil
}

// core is the part of the configuration that the core gets.
func (c *Config) core(life uint64) core.Config {
	return core.Config{
		ID: c.Store.RaftID(), Life: life, Lease: int64(c.Lease), Renew: int64(c.Renew), Heartbeat: int64(c.Heartbeat),
		Election: int64(c.Election), Reluctant: c.Reluctant, MayLease: c.MayLease,
		Log: func(text string) { c.Logger.Warn("raft: " + text) },
	}
}
