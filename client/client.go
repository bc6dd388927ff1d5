package client

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/opencluster/oclocks/internal/boottime"
	"github.com/opencluster/oclocks/internal/machine"
	"github.com/opencluster/oclocks/subjects"
)

// Client is a connection to the broker, with at most one session. Its methods may be called from several goroutines.
//
// What is to be done is decided by package machine, under mu. Around it are the callback of the reply inbox, and two
// goroutines: the loop, which has the timer and sees the connection break and come back, and the sender, which publishes.
// They are two because a publish blocks on a connection that stands still, and the end of a lock's trust must not wait for
// that. Two more have to do with servers that come and go: one tells those who listen, one measures how far they are. Each lane
// (lanes.go) has a sender and a callback of its own.
type Client struct {
	nc      *nats.Conn
	own     bool // nc is closed with the client
	user    string
	inbox   string   // prefix of the reply subjects, with the last dot
	home    *outlet  // of nc
	company *company // of nc; nil if it is the client's own
	opts    options

	sub      *nats.Subscription // of the inbox
	comings  *nats.Subscription // of servers that come and go
	tidings  *nats.Subscription // of the cluster
	island   chan struct{}      // the server may be cut off from the others; holds one
	statuses chan nats.Status
	timer    *boottime.Timer
	quit     chan struct{} // closed to end the goroutines
	quitOnce sync.Once
	running  sync.WaitGroup

	remeasure chan struct{} // the list of servers may have changed
	news      chan subjects.ServerEvent
	missed    atomic.Bool // news was full
	listening sync.Mutex
	listeners []*func(subjects.ServerEvent)
	wanted    chan wantedLane // to be opened; one for each lane at most
	waiters   sync.Pool       // of *waiter: a lock and its release make far less garbage

	mu        sync.Mutex
	m         *machine.Machine
	lanes     []*lane       // by their numbers, from 1 on; nil: it is not open
	armed     int64         // when the timer rings
	idle      chan struct{} // closed when a closed machine has nothing under way
	connected bool          // as the machine knows it
	conn      machine.Conn  // the newest connection
	broken    bool          // the connection is closed for ever
	roads     roads
}

func newClient(nc *nats.Conn, own bool, user string, o options) *Client {
	c := &Client{
		nc: nc, own: own, user: user, inbox: newInbox(user), opts: o, timer: boottime.NewTimer(),
		remeasure: make(chan struct{}, 1), island: make(chan struct{}, 1),
		news: make(chan subjects.ServerEvent, newsBuffer), quit: make(chan struct{}), idle: make(chan struct{}), armed: machine.Never,
	}
	c.home, c.roads.near = newOutlet(c, nc, "", ""), map[uint32]bool{}
	return c
}

// start begins to listen.
func (c *Client) start(cfg machine.Config) error {
	c.m, c.conn, c.connected = machine.New(cfg), cfg.Conn, true
	c.leads(cfg.Conn.Node)
	c.lanes, c.wanted = make([]*lane, cfg.Lanes), make(chan wantedLane, cfg.Lanes)
	var err error
	if c.sub, err = c.nc.Subscribe(c.inbox+"*", c.receive); err != nil {
		c.timer.Close()
		return fmt.Errorf("subscribe to the inbox: %w", err)
	}
	if c.comings, err = c.nc.Subscribe(subjects.ServerEvents, c.receiveServer); err != nil {
		c.timer.Close()
		return fmt.Errorf("subscribe to the events of servers: %w", err)
	}
	if c.own {
		c.nc.SetErrorHandler(c.asyncError(c.nc.ErrorHandler()))
	}
	if c.tidings, err = c.nc.Subscribe(subjects.ClusterEvents, c.receiveCluster); err != nil {
		c.timer.Close()
		return fmt.Errorf("subscribe to the events of the cluster: %w", err)
	}
	c.opts.road.arrived(c.nc.ConnectedUrl())
	c.statuses = c.nc.StatusChanged()
	c.running.Go(c.loop)
	c.running.Go(c.send)
	c.running.Go(c.herald)
	if c.company != nil {
		c.company.join(c)
	}
	if c.own {
		c.running.Go(c.roam)
		c.running.Go(c.keepLanes)
	}
	if c.own && c.opts.nearest {
		c.running.Go(c.measure)
	}
	return nil
}

// stop ends the goroutines and, if it is ours, the connection.
func (c *Client) stop() {
	c.quitOnce.Do(func() {
		close(c.quit)
		c.running.Wait()
		c.do(func(now int64) { c.m.Break(now, ErrClosed) })
		c.timer.Close()
		c.nc.RemoveStatusListener(c.statuses)
		if c.own {
			c.nc.Close()
			return
		}
		c.company.part(c)
		if err := c.company.leave(); err != nil && !errors.Is(err, nats.ErrConnectionClosed) {
			c.opts.log.Warn("unsubscribe", "error", err)
		}
		for _, sub := range []*nats.Subscription{c.sub, c.comings, c.tidings} {
			if err := sub.Unsubscribe(); err != nil && !errors.Is(err, nats.ErrConnectionClosed) {
				c.opts.log.Warn("unsubscribe", "subject", sub.Subject, "error", err)
			}
		}
	})
}

// Close releases everything, closes the session and, unless it is the caller's own (WithConn), the connection. If the
// broker has not confirmed before ctx ends, the client is closed all the same, and the error says what is left to end with
// its lease. Closing again is no error.
func (c *Client) Close(ctx context.Context) error {
	var lease time.Duration // beyond it, whatever is left has ended by itself
	c.do(func(now int64) {
		c.m.Close(now)
		lease = c.m.Lease()
	})
	timer := time.NewTimer(max(lease, c.opts.timeout))
	defer timer.Stop()
	var err error
	select {
	case <-c.idle:
	case <-c.quit:
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-timer.C:
		err = ErrUnavailable
	}
	c.stop()
	if err != nil {
		return fmt.Errorf("close the client: the broker did not confirm, locks end with their lease: %w", err)
	}
	return nil
}

// Conn is the NATS connection.
func (c *Client) Conn() *nats.Conn { return c.nc }

// User is the caller's own token, the last of every subject: an nkey, or "anyone" in an open zone.
func (c *Client) User() string { return c.user }

// do runs a step of the machine at the present time and carries out what it wants; what may block is left to the senders.
func (c *Client) do(step func(now int64)) {
	if o, _ := c.step(step); o != nil {
		signal(o.wake)
	}
}

// doNow is do for those who have called the client and are going to wait for an answer: they publish their message themselves, which
// saves the time that the sender needs to wake up. Where others are under way, those that can run do so first: what they bring goes along.
func (c *Client) doNow(step func(now int64)) {
	o, others := c.step(step)
	if o == nil {
		return
	}
	if others {
		runtime.Gosched()
	}
	if !o.publish(false) {
		signal(o.wake)
	}
}

// step runs a step of the machine. It gives the outlet that has got something and of which nobody was told, if there is one, and whether
// more than one call is under way.
func (c *Client) step(step func(now int64)) (o *outlet, others bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	step(boottime.Now())
	return c.perform(), c.m.Calls() > 1
}

// perform carries out the machine's actions and gives the outlet that has got something and whose sender was not told, if there is one.
// The caller holds mu, and tells it.
func (c *Client) perform() (first *outlet) {
	put := func(o *outlet, out outgoing) {
		o.queue = append(o.queue, out)
		switch {
		case o.told:
			return
		case first == nil:
			first = o
		default:
			signal(o.wake)
		}
		o.told = true
	}
	for _, a := range c.m.Take() {
		switch a.Kind {
		case machine.Send:
			if c.company != nil && c.company.takes(c, &a) {
				continue
			}
			o := c.outlet(a.Lane)
			out := outgoing{subject: a.Subject, body: a.Body}
			out.inbox, out.token = cutToken(a.Reply)
			out.op = c.joins(o, out.subject, out.token)
			put(o, out)
		case machine.Opened:
			put(c.home, outgoing{kind: follow, subject: a.Subject})
		case machine.Listen:
			put(c.home, outgoing{kind: listen, subject: c.inbox + a.Reply})
		case machine.Unlisten:
			put(c.home, outgoing{kind: unlisten, subject: c.inbox + a.Reply})
		case machine.OpenLane:
			c.wanted <- wantedLane{number: a.Lane, node: a.Node, inbox: c.inbox + a.Reply} // there is room for all
		case machine.CloseLane:
			c.endLane(a.Lane)
		case machine.Anew: // before it is sent
			c.opts.log.Info("a request goes on as a new one", "anew", a.Call.Req.Name, "operation", a.Call.Req.Op.String(),
				"holder", a.Call.Req.Holder)
		case machine.Finish:
			if g := a.Call.Result.Grant; g != nil {
				c.learn(g)
			}
			w := a.Call.Owner.(*waiter)
			w.result = a.Call.Result
			w.ready <- struct{}{}
		case machine.Change:
			a.Hold.Owner.(*Claim).ended()
		}
	}
	if next := c.m.Next(); next < c.armed {
		c.armed = next
		c.timer.Reset(next)
	}
	if c.m.Idle() {
		c.closeIdle()
	}
	return first
}

func (c *Client) closeIdle() {
	select {
	case <-c.idle:
	default:
		close(c.idle)
	}
}

// signal leaves a note in a channel that holds one.
func signal(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// waiter waits for a call, whose memory is here too.
type waiter struct {
	ready  chan struct{} // holds one
	result machine.Result
	call   machine.Call
	req    subjects.Request
}

// lend gives a waiter whose call and request are empty.
func (c *Client) lend() *waiter {
	w, ok := c.waiters.Get().(*waiter)
	if !ok {
		w = &waiter{ready: make(chan struct{}, 1)}
	}
	w.call.Req, w.call.Owner = &w.req, w
	return w
}

// giveBack takes a waiter back whose call was answered; one that was given up the machine may know still.
func (c *Client) giveBack(w *waiter) {
	*w = waiter{ready: w.ready}
	c.waiters.Put(w)
}

// await runs a call to its end or to that of ctx. The call is w's.
func (c *Client) await(ctx context.Context, w *waiter) (machine.Result, error) {
	if err := ctx.Err(); err != nil {
		return machine.Result{}, context.Cause(ctx)
	}
	var err error
	c.doNow(func(now int64) { err = c.m.Submit(now, &w.call) })
	if err != nil {
		return machine.Result{Err: err}, nil
	}
	return c.awaitSubmitted(ctx, w)
}

// awaitSubmitted waits for a call that is under way. An answer that comes together with the end of ctx counts. w must not be used
// afterwards.
func (c *Client) awaitSubmitted(ctx context.Context, w *waiter) (machine.Result, error) {
	select {
	case <-w.ready:
		return c.answered(w), nil
	case <-ctx.Done():
	}
	given := false
	var why *subjects.Refusal
	var connected bool
	c.do(func(now int64) {
		given = c.m.GiveUp(now, &w.call)
		why, connected = w.call.Why(), c.connected
	})
	switch {
	case !given:
		<-w.ready
		return c.answered(w), nil
	case !connected:
		return machine.Result{}, fmt.Errorf("%w; %w: there is no connection", context.Cause(ctx), ErrUnavailable)
	case why != nil:
		return machine.Result{}, fmt.Errorf("%w; %w: %w", context.Cause(ctx), ErrUnavailable, why)
	}
	return machine.Result{}, context.Cause(ctx)
}

// answered takes the result of a call that is over. One that was ended by the machine itself may go on in the background.
func (c *Client) answered(w *waiter) machine.Result {
	result := w.result
	if result.Err == nil {
		c.giveBack(w)
	}
	return result
}
