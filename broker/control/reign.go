package control

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/nats-io/nats.go"

	"github.com/opencluster/oclocks/arbiter"
	"github.com/opencluster/oclocks/arbiter/plan"
	"github.com/opencluster/oclocks/broker/control/flow"
	"github.com/opencluster/oclocks/conf/shared"
	"github.com/opencluster/oclocks/internal/boottime"
)

const (
	leavingFor int64 = 2e9     // a node that wants to leave says so more often
	restless   int64 = 50e6    // the planner is asked at least so often while not every node holds a lease
	restful    int64 = 500e6   // and else
	maxWaiting       = 1 << 17 // reports that wait for the planner
	maxFirsts        = 4096
)

// reign is one term in which this node leads.
type reign struct {
	c        *Control
	term     uint64
	takeFrom int64
	planner  *plan.Planner
	ctx      context.Context // ends with the reign
	cancel   context.CancelFunc
	wake     chan struct{}
	subs     []*nats.Subscription

	viewsDue chan struct{}

	mu       sync.Mutex
	reports  []plan.BucketReport
	leaving  map[uint64]int64    // nodes that want to leave, and when they said so last
	views    *flow.Asks          // that the planner wants
	ended    map[uint32][]uint64 // by bucket: nodes whose lease must have ended for the view
	stepping bool                // a change of the group is on its way
	stepped  plan.MemberStep     // the last one

	registering sync.Mutex           // one registration at a time, so that one process has one outcome
	firsts      map[uint64]int64     // by process: when it asked to be registered first
	admitted    map[uint64]admission // by process
}

// beginReign is called by the desk.
func (c *Control) beginReign(e arbiter.Leadership) {
	r := &reign{
		c: c, term: e.Term, takeFrom: e.TakeFrom, planner: plan.New(c.cfg.Plan),
		wake: make(chan struct{}, 1), viewsDue: make(chan struct{}, 1),
		leaving: map[uint64]int64{}, views: flow.NewAsks(maxBuckets), ended: map[uint32][]uint64{},
		firsts: map[uint64]int64{}, admitted: map[uint64]admission{},
	}
	r.ctx, r.cancel = context.WithCancel(c.ctx)
	c.barred.Store(&map[uint64]bool{})
	if !c.spawn(r.run) {
		r.cancel()
		return
	}
	c.spawn(r.propose)
	c.mu.Lock()
	c.reign = r
	c.mu.Unlock()
	c.log.Info("this node leads the cluster", "term", r.term)
}

func (c *Control) reigning() *reign {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reign
}

// end is called by the desk.
func (r *reign) end() {
	r.cancel()
	r.c.barred.Store(&map[uint64]bool{})
	r.c.log.Info("this node does not lead the cluster any more", "term", r.term)
}

func (r *reign) ring() { signal(r.wake) }

// run steps the planner until the reign is over.
func (r *reign) run() {
	timer := boottime.NewTimer()
	defer timer.Close()
	if r.found() {
		r.listen()
	}
	defer r.deafen()
	for {
		if in, ok := r.input(); ok {
			out := r.planner.Step(in)
			r.carryOut(&in, &out)
			timer.Reset(r.next(&in, &out))
		} else {
			timer.Reset(boottime.Now() + restless)
		}
		select {
		case <-r.wake:
		case <-timer.C:
		case <-r.ctx.Done():
			return
		}
	}
}

// next is when the planner is asked again at the latest. That a node has got a lease, or a learner has caught up, is told by
// nobody.
func (r *reign) next(in *plan.Input, out *plan.Output) int64 {
	pause := restful
	if len(in.Group.Learners) > 0 && len(in.Group.Voters) < in.State.Settings.Voters {
		pause = restless
	}
	for i := range in.State.Nodes {
		n := &in.State.Nodes[i]
		at := slices.IndexFunc(in.Nodes, func(e plan.Evidence) bool { return e.Number == n.Number })
		if !n.Arbiter && (at < 0 || in.Nodes[at].LeaseUntil <= in.Now) {
			pause = restless
		}
	}
	next := in.Now + pause
	if out.Next > 0 {
		next = min(next, out.Next)
	}
	return next
}

// found founds the cluster if this has not been done, and says whether there is one.
func (r *reign) found() bool {
	for r.c.State().Cluster == "" {
		if r.c.cfg.Found == nil {
			r.c.log.Error("the group has a leader, but the cluster was never founded")
			return false
		}
		command := shared.Command{Found: r.c.cfg.Found}.Encode()
		_, result, err := r.c.arb.ProposeIf(r.ctx, command, arbiter.Condition{Term: r.term})
		if res, _ := result.(shared.Result); err == nil && res.Err() != nil {
			r.c.fail(res.Err())
			return false
		}
		if err != nil && !r.c.pause(retryFirst) || r.ctx.Err() != nil {
			return false
		}
	}
	return true
}

// input is what the leader knows, in the order that plan.Input asks for: what is barred was barred by an earlier step, the
// state comes first, then the leases, then the time.
func (r *reign) input() (plan.Input, bool) {
	barred := *r.c.barred.Load()
	state := r.c.State()
	leases := r.c.arb.Leases()
	status := r.c.arb.Status()
	seen := r.c.seen.Load()
	now := boottime.Now()
	if !status.Leading || status.Term != r.term {
		return plan.Input{}, false
	}
	in := plan.Input{Now: now, Leading: true, Term: r.term, TakeFrom: max(r.takeFrom, status.TakeFrom), State: state}
	until := map[uint64]int64{} // a node that has not asked in this term has 0
	for i := range state.Nodes {
		until[state.Nodes[i].Number] = 0
	}
	for _, l := range leases {
		until[l.Number] = l.Until
	}
	r.mu.Lock()
	for _, number := range slices.Sorted(maps.Keys(until)) {
		wants, asked := r.leaving[number]
		in.Nodes = append(in.Nodes, plan.Evidence{
			Number: number, LeaseUntil: until[number], Connected: !seen.away[number], Barred: barred[number],
			Leaving: asked && now-wants < leavingFor || seen.gone[number],
		})
	}
	in.Reports, r.reports = r.reports, nil
	r.mu.Unlock()
	in.Group = plan.Group{Leader: status.Raft, Voters: status.Voters, Learners: status.Learners, Last: status.Commit}
	for _, p := range status.Peers {
		if p.Raft == status.Raft {
			in.Group.Last = max(in.Group.Last, p.Match)
			continue
		}
		in.Group.Match = append(in.Group.Match, plan.Match{Raft: p.Raft, Index: p.Match})
	}
	return in, true
}

// report takes what sealed copies have told.
func (r *reign) report(list []plan.BucketReport) {
	r.mu.Lock()
	if len(r.reports)+len(list) <= maxWaiting {
		r.reports = append(r.reports, list...)
	}
	r.mu.Unlock()
	r.ring()
}

// listen makes this node the one that answers as the leader.
func (r *reign) listen() {
	for _, s := range []struct {
		subject string
		handle  nats.MsgHandler
	}{
		{subjectRegister, func(m *nats.Msg) { r.c.answer(m, func(ctx context.Context) any { return r.register(ctx, m.Data) }) }},
		{subjectChange, func(m *nats.Msg) { r.c.answer(m, func(ctx context.Context) any { return r.c.change(ctx, m.Data) }) }},
		{subjectLeaving, func(m *nats.Msg) { r.c.answer(m, func(context.Context) any { return r.leave(m.Data) }) }},
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

func (r *reign) deafen() {
	for _, s := range r.subs {
		_ = s.Unsubscribe() // fails only if the connection is closed, and then it is gone too
	}
}

func (r *reign) onReport(m *nats.Msg) {
	told, err := decodeMessage[reports](m.Data)
	if err != nil {
		r.c.log.Warn("a report that cannot be read", "error", err)
		return
	}
	r.report(slices.DeleteFunc(told.Reports, func(b plan.BucketReport) bool { return b.Report.Member.Node != told.Node }))
}

// leave notes that a node wants to be primary of nothing.
func (r *reign) leave(data []byte) leavingAnswer {
	wish, err := decodeMessage[leaving](data)
	state := r.c.State()
	if err != nil || state.Node(wish.Number) == nil {
		return leavingAnswer{Others: len(state.Nodes)} // no reason to give up
	}
	leases, now := r.c.arb.Leases(), boottime.Now()
	r.mu.Lock()
	r.leaving[wish.Number] = now
	answer := leavingAnswer{}
	for _, l := range leases {
		n := state.Node(l.Number)
		if n != nil && !n.Arbiter && l.Number != wish.Number && l.Until > now && now-r.leaving[l.Number] >= leavingFor {
			answer.Others++
		}
	}
	r.mu.Unlock()
	r.ring()
	return answer
}
