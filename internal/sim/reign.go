package sim

import (
	"maps"
	"math"
	"slices"

	"github.com/opencluster/oclocks/arbiter/core"
	"github.com/opencluster/oclocks/arbiter/plan"
	"github.com/opencluster/oclocks/broker/control/flow"
	"github.com/opencluster/oclocks/bucket/chain"
	"github.com/opencluster/oclocks/conf/shared"
)

const ( // control/reign.go
	leavingFor = 2 * second
	restless   = 50 * ms
	restful    = 500 * ms
)

// reign stands for control/reign.go, hands.go and admit.go: one term in which a process leads.
type reign struct {
	p *process
	*actor
	term      uint64
	takeFrom  int64
	planner   *plan.Planner
	due       int64
	listening bool
	founding  bool

	reports   []plan.BucketReport
	leaving   map[uint64]int64
	views     *flow.Asks
	ended     map[uint32][]uint64
	proposing bool
	stepping  bool

	registering bool
	queue       []func()
	firsts      map[uint64]int64
	admitted    map[uint64]admission
}

func (p *process) beginReign(e core.Leadership) {
	r := &reign{
		p: p, term: e.Term, takeFrom: e.TakeFrom, planner: plan.New(plan.Config{}), due: never,
		leaving: map[uint64]int64{}, views: flow.NewAsks(1 << 16), ended: map[uint32][]uint64{},
		firsts: map[uint64]int64{}, admitted: map[uint64]admission{}, proposing: true,
	}
	p.barred = map[uint64]bool{}
	r.actor = p.actor("the reign", r.run, func() int64 { return r.due })
	p.reign = r
	p.w.stats.Reigns++
	p.w.tell("%v leads in term %d", p.m, r.term)
	r.actor.ring()
	// hands.go: propose begins with announce
	p.arb.propose(0, shared.Command{Lead: &shared.Lead{Term: r.term}}.Encode(), core.Condition{Term: r.term}, func(outcome) {
		r.proposing = false
		r.propose()
	})
}

func (r *reign) end() {
	r.p.w.tell("%v does not lead any more (term %d)", r.p.m, r.term)
	r.over, r.actor.over = true, true
	r.p.reign = nil
	r.p.barred = map[uint64]bool{}
}

// run is one round of reign.run.
func (r *reign) run() {
	now := r.p.m.clock()
	if !r.listening && !r.found() {
		r.due = now + restless
		return
	}
	in, ok := r.input()
	if !ok {
		r.due = now + restless
		return
	}
	out := r.planner.Step(in)
	r.carryOut(&in, &out)
	r.due = r.next(&in, &out)
}

func (r *reign) found() bool {
	if r.p.shared().Cluster != "" {
		r.listening = true
		return true
	}
	if !r.founding {
		r.founding = true
		command := shared.Command{Found: r.p.w.founding()}.Encode()
		r.p.arb.propose(0, command, core.Condition{Term: r.term}, func(outcome) {
			r.founding = false
			r.ring()
		})
	}
	return false
}

func (r *reign) next(in *plan.Input, out *plan.Output) int64 {
	pause := restful
	if len(in.Group.Learners) > 0 && len(in.Group.Voters) < in.State.Settings.Voters {
		pause = restless
	}
	for i := range in.State.Nodes {
		n := &in.State.Nodes[i]
		at := slices.IndexFunc(in.Nodes, func(e plan.Evidence) bool { return e.Number == n.Number })
		if at < 0 || in.Nodes[at].LeaseUntil <= in.Now {
			pause = restless
		}
	}
	next := in.Now + pause
	if out.Next > 0 {
		next = min(next, out.Next)
	}
	return next
}

func (r *reign) input() (plan.Input, bool) {
	p := r.p
	barred, state := p.barred, p.shared()
	leases, status := p.arb.node.Leases(), p.arb.node.Status()
	now := p.m.clock()
	if !status.Leading || status.Term != r.term {
		return plan.Input{}, false
	}
	in := plan.Input{Now: now, Leading: true, Term: r.term, TakeFrom: max(r.takeFrom, status.TakeFrom), State: state}
	until := map[uint64]int64{}
	for i := range state.Nodes {
		until[state.Nodes[i].Number] = 0
	}
	for _, l := range leases {
		until[l.Number] = l.Until
	}
	for _, number := range slices.Sorted(maps.Keys(until)) {
		wants, asked := r.leaving[number]
		in.Nodes = append(in.Nodes, plan.Evidence{
			Number: number, LeaseUntil: until[number], Connected: !p.seen.away[number], Barred: barred[number],
			Leaving: asked && now-wants < leavingFor || p.seen.gone[number],
		})
	}
	in.Reports, r.reports = r.reports, nil
	in.Group = plan.Group{Leader: status.Raft, Voters: status.Voters, Learners: status.Learners, Last: status.Commit}
	for _, m := range status.Peers {
		if m.Raft == status.Raft {
			in.Group.Last = max(in.Group.Last, m.Match)
			continue
		}
		in.Group.Match = append(in.Group.Match, plan.Match{Raft: m.Raft, Index: m.Match})
	}
	return in, true
}

func (r *reign) report(list []plan.BucketReport) {
	r.reports = append(r.reports, list...)
	r.ring()
}

// carryOut is hands.go.
func (r *reign) carryOut(in *plan.Input, out *plan.Output) {
	barred := make(map[uint64]bool, len(out.Bar))
	for _, number := range out.Bar {
		barred[number] = true
	}
	r.p.barred = barred
	if len(out.Views) > 0 {
		r.want(in, out)
	}
	r.order(out)
	if len(out.Members) > 0 {
		s := out.Members[0]
		if s.Change == plan.Transfer && r.p.leaving && primaries(in.State, r.p.identity.Number) > 0 {
			return // premature
		}
		r.step(s)
	}
}

func primaries(state *shared.State, number uint64) (n int) {
	for i := range state.Views {
		if state.Views[i].Primary().Node == number {
			n++
		}
	}
	return n
}

func (r *reign) want(in *plan.Input, out *plan.Output) {
	ended := in.Ended(out.Views)
	for _, b := range out.Views {
		if nodes, there := ended[b.Bucket]; there {
			r.views.Add(flow.Ask{Bucket: b.Bucket, View: b.View})
			r.ended[b.Bucket] = nodes
		}
	}
	r.propose()
}

// propose is reign.propose: one command at a time.
func (r *reign) propose() {
	if r.proposing || r.over {
		return
	}
	batch := r.views.Take(4096, 100_000)
	if len(batch) == 0 {
		return
	}
	var ended []uint64
	for _, q := range batch {
		ended = append(ended, r.ended[q.Bucket]...)
		delete(r.ended, q.Bucket)
	}
	slices.Sort(ended)
	r.proposing = true
	r.p.arb.propose(0, viewsCommand(batch, r.term), core.Condition{Term: r.term, Ended: slices.Compact(ended)}, func(o outcome) {
		r.proposing = false
		settled := make([]flow.Outcome, len(batch))
		for i, q := range batch {
			settled[i] = flow.Outcome{Bucket: q.Bucket, Taken: true, Committed: q.View.Epoch}
		}
		r.views.Done(settled)
		if !r.over {
			r.ring()
			r.propose()
		}
	})
}

func viewsCommand(batch []flow.Ask, term uint64) []byte {
	change := shared.ViewChange{Term: term, Views: make([]shared.BucketView, len(batch))}
	for i, q := range batch {
		change.Views[i] = shared.BucketView{Bucket: q.Bucket, View: q.View}
	}
	return shared.Command{Views: &change}.Encode()
}

func (r *reign) order(out *plan.Output) {
	byNode := map[uint64]*order{}
	of := func(number uint64) *order {
		o := byNode[number]
		if o == nil {
			o = &order{term: r.term}
			byNode[number] = o
		}
		return o
	}
	for _, s := range out.Seal {
		o := of(s.Node)
		o.seal = append(o.seal, s)
	}
	for _, h := range out.HandOver {
		o := of(h.Node)
		o.handOver = append(o.handOver, h)
	}
	p := r.p
	for _, number := range slices.Sorted(maps.Keys(byNode)) {
		o := byNode[number]
		p.w.tell("%v orders node %d: seal %v, hand over %v", p.m, number, o.seal, o.handOver)
		if number == p.identity.Number {
			p.desk.notice(func() { p.desk.order(o) })
			continue
		}
		p.m.others(func(to *machine) {
			if to.p.identity.Number == number {
				p.w.send(p.m, to, "order", func(q *process) { q.desk.notice(func() { q.desk.order(o) }) })
			}
		})
	}
}

// step changes the group, one step at a time.
func (r *reign) step(s plan.MemberStep) {
	if r.stepping {
		return
	}
	r.stepping = true
	a := r.p.arb
	done := func(o outcome) {
		r.stepping = false
		r.p.w.tell("%v: %v of raft %x: %v", r.p.m, s.Change, s.Raft, o.err)
		if o.err == nil && !r.over {
			r.ring()
		}
	}
	if s.Change == plan.Transfer {
		a.call(second, func(id uint64) error {
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
	a.call(5*second, func(id uint64) error { return a.node.ChangeMembership(id, change, s.Raft) }, done)
}

// register is admit.go: one registration at a time.
func (r *reign) register(request shared.Register, answer func(admission)) {
	r.queue = append(r.queue, func() { r.admit(request, answer) })
	r.nextRegistration()
}

func (r *reign) nextRegistration() {
	if r.registering || len(r.queue) == 0 || r.over {
		return
	}
	do := r.queue[0]
	r.queue = r.queue[1:]
	do()
}

func (r *reign) admit(request shared.Register, answer func(admission)) {
	if done, ok := r.admitted[request.Start]; ok {
		answer(done)
		r.nextRegistration()
		return
	}
	now := r.p.m.clock()
	first, asked := r.firsts[request.Start]
	if !asked {
		first = now
		r.firsts[request.Start] = now
	}
	switch wait := flow.Judge(flow.Claim{Raft: request.Raft, Start: request.Start}, r.known(request.ID), first, now); wait {
	case 0:
	case math.MaxInt64:
		answer(admission{duplicate: true})
		r.nextRegistration()
		return
	default:
		answer(admission{wait: wait + ms})
		r.nextRegistration()
		return
	}
	r.registering = true
	command := shared.Command{Register: &request}.Encode()
	r.p.arb.propose(2*second, command, core.Condition{Term: r.term}, func(o outcome) {
		r.registering = false
		res, ok := o.result.(shared.Result)
		switch {
		case o.err != nil || !ok:
			answer(admission{wait: 50 * ms})
		default:
			a := admission{number: res.Number, life: res.Life, change: res.Change, err: res.Err()}
			if res.Err() == nil {
				r.admitted[request.Start] = a
				delete(r.leaving, res.Number)
			}
			answer(a)
		}
		r.nextRegistration()
	})
}

func (r *reign) known(id string) flow.Life {
	n := r.p.shared().NodeByID(id)
	if n == nil {
		return flow.Life{}
	}
	life := flow.Life{Claim: flow.Claim{Raft: n.Raft, Start: n.Start}, Until: r.takeFrom}
	if id == r.p.m.id {
		life.Start = r.p.start
	}
	life.Gone = r.p.seen.gone[n.Number]
	for _, l := range r.p.arb.node.Leases() {
		if l.Number == n.Number {
			life.Until, life.Heard = max(life.Until, l.Until), l.Heard
		}
	}
	return life
}

// leave is reign.leave.
func (r *reign) leave(number uint64) (others int) {
	state, now := r.p.shared(), r.p.m.clock()
	if state.Node(number) == nil {
		return len(state.Nodes)
	}
	r.leaving[number] = now
	for _, l := range r.p.arb.node.Leases() {
		n := state.Node(l.Number)
		if n != nil && l.Number != number && l.Until > now && now-r.leaving[l.Number] >= leavingFor {
			others++
		}
	}
	r.ring()
	return others
}

// ask is control/ask.go: a primary wants a view.
func (p *process) ask(bucket uint32, view chain.View) {
	if err := view.Validate(); err != nil || bucket >= p.shared().Buckets() {
		p.w.fail("%v: bucket %d asks for %v, which cannot be: %v", p.m, bucket, view, err)
		return
	}
	p.asks.Add(flow.Ask{Bucket: bucket, View: view.Clone()})
	p.proposer()
}

func (p *process) proposer() {
	if p.asking {
		return
	}
	batch := p.asks.Take(4096, 100_000)
	if len(batch) == 0 {
		return
	}
	p.asking = true
	p.arb.propose(0, viewsCommand(batch, 0), core.Condition{}, func(o outcome) {
		if o.err != nil {
			p.asks.Unknown()
			p.timer(20*ms, func() {
				p.asking = false
				p.proposer()
			})
			return
		}
		p.asking = false
		r, _ := o.result.(shared.Result)
		if err := r.Err(); err != nil {
			p.w.tell("%v: proposed views are refused: %v", p.m, err)
		}
		state := p.shared()
		outcomes := make([]flow.Outcome, len(batch))
		for i, q := range batch {
			outcomes[i] = flow.Outcome{Bucket: q.Bucket, Committed: state.Views[q.Bucket].Epoch}
			_, outcomes[i].Taken = slices.BinarySearch(r.Taken, q.Bucket)
		}
		if refused := p.asks.Done(outcomes); len(refused) > 0 {
			p.desk.notice(func() { p.desk.refused(refused) })
		}
		p.proposer()
	})
}
