package control

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/opencluster/oclocks/arbiter"
	"github.com/opencluster/oclocks/arbiter/plan"
	"github.com/opencluster/oclocks/broker/control/reign"
	"github.com/opencluster/oclocks/conf/shared"
	"github.com/opencluster/oclocks/internal/boottime"
)

// leading is the goroutine of one term in which this node leads. What it does is decided in package reign.
type leading struct {
	c      *Control
	term   uint64
	room   *reign.Reign    // of the goroutine
	ctx    context.Context // ends with the reign
	cancel context.CancelFunc
	wake   chan struct{}
	subs   []*nats.Subscription

	mu      sync.Mutex
	inbox   reign.Inbox
	over    bool
	stepped plan.MemberStep // the last change of the group, for the log
}

// beginReign is called by the desk.
func (c *Control) beginReign(e arbiter.Leadership) {
	r := &leading{
		c: c, term: e.Term, wake: make(chan struct{}, 1),
		room: reign.New(reign.Config{
			Self: c.cfg.Identifier, Start: c.start, Term: e.Term, TakeFrom: e.TakeFrom, Plan: c.cfg.Plan, Found: c.cfg.Found,
		}),
	}
	r.ctx, r.cancel = context.WithCancel(c.ctx)
	c.barred.Store(&map[uint64]bool{})
	if !c.spawn(r.run) {
		r.cancel()
		return
	}
	c.mu.Lock()
	c.reign = r
	c.mu.Unlock()
	c.log.Info("this node leads the cluster", "term", r.term)
}

func (c *Control) reigning() *leading {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reign
}

// end is called by the desk. The goroutine may be in the middle of a step: it bars nobody any more.
func (r *leading) end() {
	r.mu.Lock()
	r.over = true
	r.c.barred.Store(&map[uint64]bool{})
	r.mu.Unlock()
	r.cancel()
	r.c.log.Info("this node does not lead the cluster any more", "term", r.term)
}

// put leaves something for the next step; it is lost if too much waits.
func (r *leading) put(in reign.Input) {
	r.mu.Lock()
	r.inbox.Put(in)
	r.mu.Unlock()
	signal(r.wake)
}

func (r *leading) take() []reign.Input {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.inbox.Take()
}

// run steps the reign until it is over.
func (r *leading) run() {
	timer := boottime.NewTimer()
	defer timer.Close()
	defer r.deafen()
	for {
		inputs := r.take()
		out := r.room.Step(r.facts(), inputs)
		r.carryOut(&out)
		timer.Reset(out.Next)
		select {
		case <-r.wake:
		case <-timer.C:
		case <-r.ctx.Done():
			r.answer(r.room.End(r.take()))
			return
		}
	}
}

// facts are read in the order that reign asks for.
func (r *leading) facts() (f reign.Facts) {
	c := r.c
	f.State = c.State()
	f.Leases = c.arb.Leases()
	f.Status = c.arb.Status()
	seen := c.seen.Load()
	f.Away, f.Gone = seen.away, seen.gone
	c.mu.Lock()
	f.Number, f.Leaving = c.self.Number, c.leaving
	c.mu.Unlock()
	f.Now = boottime.Now()
	return f
}

// carryOut does what the reign wants, in its order.
func (r *leading) carryOut(out *reign.Output) {
	c := r.c
	if out.Barred {
		r.mu.Lock()
		if !r.over {
			c.barred.Store(&out.Bar)
		}
		r.mu.Unlock()
	}
	if out.Listen {
		r.listen()
	}
	for _, p := range out.Proposals {
		c.spawn(func() { r.propose(p) })
	}
	for _, o := range out.Orders {
		c.log.Debug("orders", "node", o.Node, "seal", len(o.Seal), "hand over", len(o.HandOver))
		r.order(&order{Term: r.term, Seal: o.Seal, HandOver: o.HandOver}, o.Node)
	}
	if out.Group != nil {
		c.spawn(func() { r.step(*out.Group) })
	}
	r.answer(out.Admitted)
	for _, l := range out.Left {
		r.tell(l.Asker, leavingAnswer{Others: l.Others})
	}
	for _, text := range out.Alerts {
		c.Alert(-1, text)
	}
	if out.Problem != "" {
		c.log.Error(out.Problem)
	}
	if out.Fail != nil {
		c.fail(out.Fail)
	}
}

func (r *leading) answer(list []reign.Admitted) {
	for _, a := range list {
		r.tell(a.Asker, a.Answer)
	}
}

func (r *leading) tell(asker string, message any) {
	if asker != "" {
		r.c.post.send(asker, encode(message))
	}
}

func (r *leading) propose(p reign.Proposal) {
	ctx, cancel := r.ctx, context.CancelFunc(func() {})
	if p.Limit > 0 {
		ctx, cancel = context.WithTimeout(ctx, time.Duration(p.Limit))
	}
	defer cancel()
	_, result, err := r.c.arb.ProposeIf(ctx, p.Command, p.Only)
	if err != nil && r.ctx.Err() == nil {
		r.c.log.Debug("the leader's command is not committed", "what", p.What, "error", err)
	}
	res, ok := result.(shared.Result)
	r.put(reign.Done{What: p.What, OK: err == nil && ok, Result: res, Busy: errors.Is(err, arbiter.ErrBusy)})
}

// order sends a node what it is to do, this one without the network.
func (r *leading) order(o *order, number uint64) {
	if number == r.c.identity().Number {
		r.c.box.notice(*o)
		return
	}
	r.c.post.send(subjectOrder(number), encode(o))
}

// step changes the group.
func (r *leading) step(s plan.MemberStep) {
	ctx, cancel := context.WithTimeout(r.ctx, time.Duration(reign.GroupWait))
	defer cancel()
	err := r.change(ctx, s)
	r.mu.Lock()
	again := r.stepped == s
	r.stepped = s
	r.mu.Unlock()
	switch {
	case err == nil:
		r.c.log.Info("the group of the control plane is changed", "change", s.Change, "raft", s.Raft)
	case r.ctx.Err() == nil && !again: // the planner asks again, and is told the same
		r.c.log.Warn("the group of the control plane cannot be changed now", "change", s.Change, "raft", s.Raft, "error", err)
	}
	r.put(reign.Done{What: reign.Group, OK: err == nil})
}

func (r *leading) change(ctx context.Context, s plan.MemberStep) error {
	switch s.Change {
	case plan.AddLearner, plan.Demote: // a voter that is added as a learner is one from then on
		return r.c.arb.AddLearner(ctx, s.Raft)
	case plan.Promote:
		return r.c.arb.Promote(ctx, s.Raft)
	case plan.Remove:
		return r.c.arb.Remove(ctx, s.Raft)
	case plan.Transfer:
		return r.c.arb.Transfer(ctx, s.Raft)
	}
	return nil
}

// listen makes this node the one that answers as the leader.
func (r *leading) listen() {
	for _, s := range []struct {
		subject string
		handle  nats.MsgHandler
	}{
		{subjectRegister, r.onRegister},
		{subjectChange, func(m *nats.Msg) { r.c.answer(m, func(ctx context.Context) any { return r.c.change(ctx, m.Data) }) }},
		{subjectLeaving, r.onLeaving},
		{subjectReport, r.onReport},
	} {
		sub, err := subscribe(r.c.nc, s.subject, s.handle)
		if err != nil { // the connection is closed, so that nobody hears of this leader
			r.c.log.Error("listen as the leader", "error", err)
			return
		}
		r.subs = append(r.subs, sub)
	}
}

func (r *leading) deafen() {
	for _, s := range r.subs {
		_ = s.Unsubscribe() // fails only if the connection is closed, and then it is gone too
	}
}

// onRegister reads a registration. What this program does not know in one is passed over, other than in a command of a tool: it comes from a
// program that knows a higher level, and if it were refused none could come into a cluster of programs that do not, so that the level
// could never be raised. Nothing is done by halves: what is proposed is what was read, and what needs a level is only written at that.
func (r *leading) onRegister(m *nats.Msg) {
	request, err := decodeMessage[shared.Register](m.Data)
	if err != nil {
		r.tell(m.Reply, admission{Kind: "command", Problem: shared.ErrCommand.Error() + ": " + err.Error()})
		return
	}
	r.put(reign.Register{Asker: m.Reply, Request: request})
}

func (r *leading) onLeaving(m *nats.Msg) {
	wish, err := decodeMessage[leaving](m.Data)
	if err != nil {
		r.c.log.Warn("a wish to leave that cannot be read", "error", err)
	}
	r.put(reign.Leave{Asker: m.Reply, Number: wish.Number}) // nobody has number 0
}

func (r *leading) onReport(m *nats.Msg) {
	told, err := decodeMessage[reports](m.Data)
	if err != nil {
		r.c.log.Warn("a report that cannot be read", "error", err)
		return
	}
	r.put(reign.Report{Node: told.Node, Reports: told.Reports})
}
