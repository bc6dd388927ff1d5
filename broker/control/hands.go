package control

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/opencluster/oclocks/arbiter"
	"github.com/opencluster/oclocks/arbiter/plan"
	"github.com/opencluster/oclocks/broker/control/flow"
	"github.com/opencluster/oclocks/conf/shared"
)

// stepWait is how long one change of the group may take until the planner is asked again.
const stepWait = 5 * time.Second

// carryOut does what the planner wants.
func (r *reign) carryOut(in *plan.Input, out *plan.Output) {
	barred := make(map[uint64]bool, len(out.Bar))
	for _, number := range out.Bar {
		barred[number] = true
	}
	r.c.barred.Store(&barred)
	if len(out.Views) > 0 {
		r.want(in, out)
	}
	r.order(out)
	if len(out.Members) > 0 && !r.premature(out.Members[0], in.State) {
		r.step(out.Members[0])
	}
}

// premature says that the leadership is not given away yet: a leader that leaves hands its buckets over first, since the next
// leader may take nothing from anybody for a while. Leave gives the leadership away after that.
func (r *reign) premature(s plan.MemberStep, state *shared.State) bool {
	r.c.mu.Lock()
	leaving, number := r.c.leaving, r.c.self.Number
	r.c.mu.Unlock()
	return s.Change == plan.Transfer && leaving && primaries(state, number) > 0
}

// want keeps views for the next command, each with the nodes whose lease has to be over for it: those of the in-sync set
// before it that get none and whose last one has ended. The arbiter looks once more when it proposes, and gives them none
// until the command is applied. So a view that waits here while the planner changes its mind does no harm.
func (r *reign) want(in *plan.Input, out *plan.Output) {
	ended := in.Ended(out.Views)
	r.mu.Lock()
	for _, b := range out.Views {
		if nodes, there := ended[b.Bucket]; there {
			r.views.Add(flow.Ask{Bucket: b.Bucket, View: b.View})
			r.ended[b.Bucket] = nodes
		}
	}
	r.mu.Unlock()
	signal(r.viewsDue)
}

// propose has the planner's views committed, one command at a time, and only in this term: the leases that they rely on
// are this leader's. What fails is forgotten, since the planner asks again.
func (r *reign) propose() {
	r.announce()
	for {
		batch, ended := r.takeViews()
		if len(batch) == 0 {
			select {
			case <-r.viewsDue:
				continue
			case <-r.ctx.Done():
				return
			}
		}
		_, _, err := r.c.arb.ProposeIf(r.ctx, viewsCommand(batch, r.term), arbiter.Condition{Term: r.term, Ended: ended})
		if err != nil && r.ctx.Err() == nil {
			r.c.log.Debug("planned views are not committed", "views", len(batch), "error", err)
		}
		settled := make([]flow.Outcome, len(batch))
		for i, q := range batch {
			settled[i] = flow.Outcome{Bucket: q.Bucket, Taken: true, Committed: q.View.Epoch}
		}
		r.mu.Lock()
		r.views.Done(settled)
		r.mu.Unlock()
		r.ring()
		if errors.Is(err, arbiter.ErrBusy) && !r.c.pause(retryFirst) {
			return
		}
	}
}

// announce tells the state of this term, so that it refuses what leaders before have planned. The arbiter's condition says the
// same; this is for everybody to see.
func (r *reign) announce() {
	_, _, err := r.c.arb.ProposeIf(r.ctx, shared.Command{Lead: &shared.Lead{Term: r.term}}.Encode(), arbiter.Condition{Term: r.term})
	if err != nil && r.ctx.Err() == nil {
		r.c.log.Debug("the term is not told", "term", r.term, "error", err)
	}
}

func (r *reign) takeViews() (batch []flow.Ask, ended []uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	batch = r.views.Take(maxViews, maxMembers)
	for _, q := range batch {
		ended = append(ended, r.ended[q.Bucket]...)
		delete(r.ended, q.Bucket)
	}
	slices.Sort(ended)
	return batch, slices.Compact(ended)
}

// order sends the nodes what the planner wants of them, this one without the network.
func (r *reign) order(out *plan.Output) {
	byNode := map[uint64]*order{}
	var nodes []uint64
	of := func(number uint64) *order {
		o := byNode[number]
		if o == nil {
			o = &order{Term: r.term}
			byNode[number] = o
			nodes = append(nodes, number)
		}
		return o
	}
	for _, s := range out.Seal {
		o := of(s.Node)
		o.Seal = append(o.Seal, s)
	}
	for _, h := range out.HandOver {
		o := of(h.Node)
		o.HandOver = append(o.HandOver, h)
	}
	own := r.c.identity().Number
	for _, number := range nodes {
		o := byNode[number]
		r.c.log.Debug("orders", "node", number, "seal", len(o.Seal), "hand over", len(o.HandOver))
		if number == own {
			r.c.box.notice(func(d *desk) { d.order(o) })
			continue
		}
		for part := range slices.Chunk(o.Seal, maxOrders) {
			r.c.post.send(subjectOrder(number), encode(order{Term: r.term, Seal: part}))
		}
		for part := range slices.Chunk(o.HandOver, maxOrders) {
			r.c.post.send(subjectOrder(number), encode(order{Term: r.term, HandOver: part}))
		}
	}
}

// step changes the group, one step at a time.
func (r *reign) step(s plan.MemberStep) {
	r.mu.Lock()
	busy := r.stepping
	r.stepping = true
	r.mu.Unlock()
	if busy {
		return
	}
	started := r.c.spawn(func() {
		ctx, cancel := context.WithTimeout(r.ctx, stepWait)
		defer cancel()
		err := r.change(ctx, s)
		r.mu.Lock()
		r.stepping = false
		again := r.stepped == s
		r.stepped = s
		r.mu.Unlock()
		switch {
		case err == nil:
			r.c.log.Info("the group of the control plane is changed", "change", s.Change, "raft", s.Raft)
		case r.ctx.Err() == nil && !again: // the planner asks again, and is told the same
			r.c.log.Warn("the group of the control plane cannot be changed now", "change", s.Change, "raft", s.Raft, "error", err)
		}
		if err == nil {
			r.ring()
		}
	})
	if !started {
		r.cancel()
	}
}

func (r *reign) change(ctx context.Context, s plan.MemberStep) error {
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
