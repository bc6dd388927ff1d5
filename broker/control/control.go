package control

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/opencluster/oclocks/arbiter"
	"github.com/opencluster/oclocks/broker/control/desk"
	"github.com/opencluster/oclocks/broker/control/flow"
	"github.com/opencluster/oclocks/conf/shared"
)

const (
	probeWait    = 300 * time.Millisecond // for an answer of a node that is there
	requestWait  = 2 * time.Second        // for an answer of the leader
	maxAnswering = 32                     // requests that are being answered
)

// Control is the control plane on this node.
type Control struct {
	cfg   Config
	log   *slog.Logger
	nc    *nats.Conn
	store arbiter.Store
	arb   *arbiter.Arbiter
	fsm   *machine
	box   *box
	post  *post
	start uint64 // drawn by this process

	memory memory        // what the disk knows; of begin, then of the enrolment
	lease  time.Duration // of the cluster's nodes
	old    atomic.Bool   // the store is to be renewed when it is not used any more

	staying chan struct{} // closed: this node was removed, and is there for its vote only

	ctx     context.Context // of everything that Close ends
	cancel  context.CancelFunc
	running sync.WaitGroup
	subs    []*nats.Subscription
	unwatch func()
	closing sync.Once

	bell      bell // rings when what WaitRegistered, Leave and the like wait for may have come
	answering chan struct{}
	barred    atomic.Pointer[map[uint64]bool] // numbers of nodes that get no lease from this leader
	seen      atomic.Pointer[seen]
	anyAway   atomic.Bool

	asksMu  sync.Mutex
	asks    *flow.Proposer
	asksDue chan struct{}

	mu      sync.Mutex
	self    identity
	copies  Copies // nil before Serve
	granted desk.Lease
	refusal string // why the leader gave no lease last
	alerts  map[alertKey]int64
	reign   *leading // while this node leads
	leaving bool
	over    bool // Close has begun: nothing is started any more
	err     error
	failed  chan struct{}
}

// identity is what a registration has given this node.
type identity = desk.Identity

// seen is who is there, for other goroutines than the desk.
type seen struct {
	away map[uint64]bool // by number
	gone map[uint64]bool // said that they go
}

// Start starts it. The context bounds the start only, which does not wait until a leader is there. Errors wrap ErrConfig,
// ErrDuplicate, ErrUnavailable, or are the arbiter's.
func Start(ctx context.Context, cfg Config) (*Control, error) {
	switch {
	case cfg.Conn == nil:
		return nil, fmt.Errorf("%w: no connection", ErrConfig)
	case cfg.Identifier == "" || cfg.Name == "":
		return nil, fmt.Errorf("%w: a node needs an identifier and a name", ErrConfig)
	}
	c := &Control{
		cfg: cfg, log: cfg.Logger, nc: cfg.Conn, box: newBox(), post: newPost(cfg.Conn), start: draw(),
		answering: make(chan struct{}, maxAnswering), asks: flow.NewProposer(maxBuckets), asksDue: make(chan struct{}, 1),
		alerts: map[alertKey]int64{}, failed: make(chan struct{}), staying: make(chan struct{}),
	}
	if c.log == nil {
		c.log = slog.Default()
	}
	c.log = c.log.With("room", "control")
	c.seen.Store(&seen{})
	c.barred.Store(&map[uint64]bool{})
	c.ctx, c.cancel = context.WithCancel(context.WithoutCancel(ctx))
	if err := c.begin(ctx); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// begin opens the store and starts everything.
func (c *Control) begin(ctx context.Context) error {
	if err := c.probeSelf(ctx); err != nil {
		return err
	}
	if err := c.openStore(); err != nil {
		return fmt.Errorf("open the control store: %w", err)
	}
	if err := c.begins(ctx); err != nil {
		return err
	}
	found := c.cfg.Found != nil && c.store.Empty()
	if found {
		exists, err := c.clusterExists(ctx)
		if err != nil {
			return err
		}
		if exists {
			c.log.Info("there is a cluster already: joining it instead of founding one")
			found = false
		}
	}
	c.fsm = &machine{FSM: shared.New(), changed: c.applied}
	var err error
	c.arb, err = arbiter.Start(arbiter.Config{
		Store: c.store, FSM: c.fsm, Found: found, Lease: c.lease, Renew: c.lease / 5, Logger: c.log,
		Send: c.send, Events: c.event, MayLease: c.mayLease,
	})
	if err != nil {
		return fmt.Errorf("start the arbiter: %w", err)
	}
	if err := c.listen(); err != nil {
		return err
	}
	if c.cfg.Watch != nil {
		c.unwatch = c.cfg.Watch(func(identifier string, up bool) {
			c.box.notice(desk.Route{Identifier: identifier, Up: up})
		})
	}
	c.running.Go(func() { c.post.run(c.ctx.Done()) })
	c.running.Go(newTeller(c).run)
	c.running.Go(c.proposer)
	c.running.Go(c.enrolment)
	c.running.Go(c.watchArbiter)
	return nil
}

func (c *Control) openStore() (err error) {
	if c.cfg.Dir == "" {
		c.store, err = arbiter.NewMemoryStore()
	} else {
		c.store, err = arbiter.OpenStore(filepath.Join(c.cfg.Dir, "control.db"))
	}
	if err != nil {
		c.store = nil // not an interface with nothing in it
	}
	return err
}

// draw gives a random number that is not 0.
func draw() uint64 {
	var b [8]byte
	for {
		rand.Read(b[:]) // never fails: crypto/rand ends the program instead
		if n := binary.LittleEndian.Uint64(b[:]); n != 0 {
			return n
		}
	}
}

// WaitRegistered waits until the node knows who it is, and its state has that. Errors: ErrDuplicate, ErrRemoved, ErrRefused
// (no use to wait), ErrOldDisk and ErrLease (start again), ErrClosed, the context's.
func (c *Control) WaitRegistered(ctx context.Context) (number, life uint64, state *shared.State, err error) {
	for {
		changed := c.bell.wait()
		if id := c.identity(); id.Number != 0 {
			return id.Number, id.Life, c.State(), nil
		}
		select {
		case <-changed:
		case <-c.failed:
			return 0, 0, nil, c.Err()
		case <-c.ctx.Done():
			return 0, 0, nil, ErrClosed
		case <-ctx.Done():
			return 0, 0, nil, fmt.Errorf("wait for the registration in the cluster: %w", ctx.Err())
		}
	}
}

// Serve says that the copies are there: from now on they are told views, changes, leases and orders. Call it once.
func (c *Control) Serve(copies Copies) {
	c.mu.Lock()
	first := c.copies == nil
	if first {
		c.copies = copies
	}
	c.mu.Unlock()
	if first {
		c.box.with((*desk.Inbox).Serve)
	}
}

// State is the shared configuration as applied here.
func (c *Control) State() *shared.State { return c.fsm.State() }

// Read waits until everything that was committed before the call is applied here, and gives the state then. Errors:
// ErrUnavailable with the context's, ErrClosed.
func (c *Control) Read(ctx context.Context) (*shared.State, error) {
	if _, err := c.arb.ReadIndex(ctx); err != nil {
		return nil, c.explain(err)
	}
	return c.State(), nil
}

// Failed is closed when this node cannot go on; Err says why (ErrDuplicate, ErrRemoved, ErrRefused, the arbiter's reason).
func (c *Control) Failed() <-chan struct{} { return c.failed }

// Err is nil until Failed is closed.
func (c *Control) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// fail says that this node cannot go on. The first reason counts.
func (c *Control) fail(err error) {
	c.mu.Lock()
	first := c.err == nil
	if first {
		c.err = err
		close(c.failed)
	}
	c.mu.Unlock()
	if first {
		c.log.Error("the control plane cannot go on", "error", err)
	}
}

// watchArbiter notices that the arbiter has stopped by itself.
func (c *Control) watchArbiter() {
	select {
	case <-c.arb.Failed():
		c.fail(fmt.Errorf("the arbiter has stopped: %w", c.arb.Err()))
	case <-c.ctx.Done():
	}
}

// Close ends everything that Start began. It may be called again, but not from a call of Copies, which it waits for.
func (c *Control) Close() {
	c.closing.Do(func() {
		c.mu.Lock()
		c.over = true
		subs := c.subs
		c.mu.Unlock()
		c.cancel()
		if c.unwatch != nil {
			c.unwatch()
		}
		for _, s := range subs {
			_ = s.Unsubscribe() // fails only if the connection is closed, and then it is gone too
		}
		if c.arb != nil {
			c.arb.Close()
		}
		c.running.Wait()
		if c.store != nil && c.old.Load() {
			if err := c.store.Renew(); err != nil { // then the next start is told the same
				c.log.Error("throw the old control store away", "error", err)
			}
		}
		if c.store != nil {
			if err := c.store.Close(); err != nil {
				c.log.Error("close the control store", "error", err)
			}
		}
	})
}

func (c *Control) identity() identity {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.self
}

// explain gives the arbiter's errors in this package's words.
func (c *Control) explain(err error) error {
	switch {
	case errors.Is(err, arbiter.ErrClosed):
		return ErrClosed
	case c.ctx.Err() != nil:
		return ErrClosed
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}
