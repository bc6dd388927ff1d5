package reign

import (
	"slices"

	"github.com/opencluster/oclocks/arbiter/core"
	"github.com/opencluster/oclocks/arbiter/plan"
	"github.com/opencluster/oclocks/broker/control/flow"
	"github.com/opencluster/oclocks/conf/shared"
)

// want keeps views for the next command, each with the nodes whose lease has to be over for it: those of the in-sync set
// before it that get none and whose last one has ended. The arbiter looks once more when it proposes, and gives them none
// until the command is applied. So a view that waits here while the planner changes its mind does no harm.
func (r *Reign) want(in *plan.Input, out *plan.Output) {
	ended := in.Ended(out.Views)
	for _, b := range out.Views {
		if nodes, there := ended[b.Bucket]; there {
			r.views.Add(flow.Ask{Bucket: b.Bucket, View: b.View})
			r.ended[b.Bucket] = nodes
		}
	}
}

// announce tells the state of this term, so that it refuses what leaders before have planned. The arbiter's condition says the
// same; this is for everybody to see.
func (r *Reign) announce(f *Facts, out *Output) {
	if r.announced || f.Now < r.held {
		return
	}
	r.announced = true
	r.batch = []flow.Ask{} // a command is on its way
	command := shared.Command{Lead: &shared.Lead{Term: r.cfg.Term}}.Encode()
	out.Proposals = append(out.Proposals, Proposal{What: Announce, Command: command, Only: core.Condition{Term: r.cfg.Term}})
}

// propose has the planner's views committed, one command at a time, and only in this term: the leases that they rely on
// are this leader's.
func (r *Reign) propose(f *Facts, out *Output) {
	if r.batch != nil || f.Now < r.held {
		return
	}
	r.batch = r.views.Take(flow.MaxViews, flow.MaxMembers)
	if len(r.batch) == 0 {
		r.batch = nil
		return
	}
	var ended []uint64
	for _, q := range r.batch {
		ended = append(ended, r.ended[q.Bucket]...)
		delete(r.ended, q.Bucket)
	}
	slices.Sort(ended)
	out.Proposals = append(out.Proposals, Proposal{
		What: Views, Command: flow.ViewsCommand(r.batch, r.cfg.Term), Only: core.Condition{Term: r.cfg.Term, Ended: slices.Compact(ended)},
	})
}

// proposed forgets a command. What has failed is forgotten too, since the planner asks again.
func (r *Reign) proposed(f *Facts, in Done) {
	settled := make([]flow.Outcome, len(r.batch))
	for i, q := range r.batch {
		settled[i] = flow.Outcome{Bucket: q.Bucket, Taken: true, Committed: q.View.Epoch}
	}
	r.views.Done(settled)
	r.batch = nil
	if in.Busy {
		r.announced = r.announced && in.What != Announce
		r.held = f.Now + retry
	}
}
