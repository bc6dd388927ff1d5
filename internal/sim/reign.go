package sim

import (
	"strconv"

	"github.com/opencluster/oclocks/arbiter/core"
	"github.com/opencluster/oclocks/arbiter/plan"
	"github.com/opencluster/oclocks/broker/control/desk"
	"github.com/opencluster/oclocks/broker/control/flow"
	"github.com/opencluster/oclocks/broker/control/reign"
	"github.com/opencluster/oclocks/bucket/chain"
	"github.com/opencluster/oclocks/conf/shared"
)

// leading stands for control/leading.go: the goroutine around a reign.Reign.
type leading struct {
	p *process
	*actor
	room   *reign.Reign
	inbox  reign.Inbox
	term   uint64
	due    int64
	askers map[string]func(any) // who waits for an answer
	asked  int
}

func (p *process) beginReign(e core.Leadership) {
	r := &leading{
		p: p, term: e.Term, due: never, askers: map[string]func(any){},
		room: reign.New(reign.Config{Self: p.m.id, Start: p.start, Term: e.Term, TakeFrom: e.TakeFrom, Found: p.w.founding()}),
	}
	p.barred = map[uint64]bool{}
	r.actor = p.actor("the reign", r.run, func() int64 { return r.due })
	p.reign = r
	p.w.stats.Reigns++
	p.w.tell("%v leads in term %d", p.m, r.term)
	r.actor.ring()
}

func (r *leading) end() {
	r.p.w.tell("%v does not lead any more (term %d)", r.p.m, r.term)
	r.over = true
	r.p.reign = nil
	r.p.barred = map[uint64]bool{}
	r.answer(r.room.End(r.inbox.Take()))
}

// listening says that this process answers as the leader.
func (r *leading) listening() bool { return r.room.Listening() }

func (r *leading) put(in reign.Input) {
	if !r.over {
		r.inbox.Put(in)
		r.ring()
	}
}

// run is one round of leading.run.
func (r *leading) run() {
	p := r.p
	facts := reign.Facts{
		State: p.shared(), Leases: p.arb.leases, Status: p.arb.status(), Away: p.seen.away, Gone: p.seen.gone,
		Number: p.identity.Number, Leaving: p.leaving != nil, Now: p.m.clock(),
	}
	out := r.room.Step(facts, r.inbox.Take())
	r.carryOut(&out)
	r.due = out.Next
}

func (r *leading) carryOut(out *reign.Output) {
	p := r.p
	if out.Barred {
		p.barred = out.Bar
	}
	for _, c := range out.Proposals {
		for _, number := range c.Only.Ended {
			if m := p.w.byNumber(number); m != nil {
				p.w.moment(losesBuckets, m.p)
			}
		}
		p.arb.propose(c.Limit, c.Command, c.Only, func(o outcome) {
			res, ok := o.result.(shared.Result)
			r.put(reign.Done{What: c.What, OK: o.err == nil && ok, Result: res})
		})
	}
	for _, o := range out.Orders {
		p.w.tell("%v orders node %d: seal %v, hand over %v", p.m, o.Node, o.Seal, o.HandOver)
		r.order(o)
	}
	if out.Group != nil {
		r.step(*out.Group)
	}
	r.answer(out.Admitted)
	for _, l := range out.Left {
		r.reply(l.Asker, l.Others)
	}
	if out.Problem != "" {
		p.w.fail("%v: %s", p.m, out.Problem)
	}
	if out.Fail != nil {
		p.w.fail("%v: the cluster cannot be founded: %v", p.m, out.Fail)
	}
}

// order sends a node what it is to do, this one without the network.
func (r *leading) order(ro reign.Order) {
	p := r.p
	o := desk.Order{Term: r.term, Seal: ro.Seal, HandOver: ro.HandOver}
	if ro.Node == p.identity.Number {
		p.desk.notice(o)
		return
	}
	p.m.others(func(to *machine) {
		if to.p.identity.Number == ro.Node {
			p.w.send(p.m, to, "order", func(q *process) { q.desk.put(o) })
		}
	})
}

// step changes the group.
func (r *leading) step(s plan.MemberStep) {
	a := r.p.arb
	done := func(o outcome) {
		r.p.w.tell("%v: %v of raft %x: %v", r.p.m, s.Change, s.Raft, o.err)
		r.put(reign.Done{What: reign.Group, OK: o.err == nil})
	}
	if s.Change == plan.Transfer {
		a.call(reign.GroupWait, false, func(id uint64) error {
			err := a.node.Transfer(s.Raft)
			if err == nil {
				a.end(id, outcome{})
			}
			return err
		}, done)
		return
	}
	change := map[plan.Change]core.Step{
		plan.AddLearner: core.AddLearner, plan.Demote: core.AddLearner, plan.Promote: core.Promote, plan.Remove: core.Remove,
	}[s.Change]
	a.call(reign.GroupWait, true, func(id uint64) error { return a.node.ChangeMembership(id, change, s.Raft) }, done)
}

// asker keeps who waits for an answer.
func (r *leading) asker(answer func(any)) string {
	r.asked++
	name := strconv.Itoa(r.asked)
	r.askers[name] = answer
	return name
}

func (r *leading) reply(asker string, message any) {
	if answer := r.askers[asker]; answer != nil {
		delete(r.askers, asker)
		answer(message)
	}
}

func (r *leading) answer(list []reign.Admitted) {
	for _, a := range list {
		r.reply(a.Asker, a.Answer)
	}
}

func (r *leading) register(request shared.Register, answer func(reign.Answer)) {
	r.put(reign.Register{Asker: r.asker(func(m any) { answer(m.(reign.Answer)) }), Request: request})
}

func (r *leading) leave(number uint64, answer func(others int)) {
	r.put(reign.Leave{Asker: r.asker(func(m any) { answer(m.(int)) }), Number: number})
}

// ask is control/ask.go: a primary wants a view.
func (p *process) ask(bucket uint32, view chain.View) {
	if err := view.Validate(); err != nil || bucket >= p.shared().Buckets() {
		p.w.fail("%v: bucket %d asks for %v, which cannot be: %v", p.m, bucket, view, err)
		return
	}
	p.w.moment(asksForView, p)
	p.asks.Add(flow.Ask{Bucket: bucket, View: view.Clone()})
	p.proposer()
}

// proposer is the goroutine around a flow.Proposer.
func (p *process) proposer() {
	command, at := p.asks.Next(p.m.clock())
	if command == nil {
		if at > 0 && !p.asking {
			p.asking = true
			p.timer(at-p.m.clock(), func() {
				p.asking = false
				p.proposer()
			})
		}
		return
	}
	p.arb.propose(0, command, core.Condition{}, func(o outcome) {
		r, known := o.result.(shared.Result)
		if err := r.Err(); err != nil {
			p.w.tell("%v: proposed views are refused: %v", p.m, err)
		}
		if refused := p.asks.Done(p.m.clock(), o.err == nil && known, r, p.shared()); len(refused) > 0 {
			p.desk.notice(desk.Never{Asks: refused})
		}
		p.proposer()
	})
}
