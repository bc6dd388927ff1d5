package reign

import (
	"maps"
	"slices"

	"github.com/opencluster/oclocks/arbiter/core"
	"github.com/opencluster/oclocks/arbiter/plan"
	"github.com/opencluster/oclocks/conf/shared"
)

// round asks the planner.
func (r *Reign) round(f *Facts, out *Output) {
	in, leads := r.input(f)
	if !leads {
		r.due = f.Now + restless
		return
	}
	want := r.planner.Step(in)
	barred := make(map[uint64]bool, len(want.Bar))
	for _, number := range want.Bar {
		barred[number] = true
	}
	r.barred, out.Bar, out.Barred = barred, maps.Clone(barred), true
	r.want(&in, &want)
	out.Orders = append(out.Orders, orders(&want)...)
	if len(want.Members) > 0 && !r.stepping && !premature(f, want.Members[0]) {
		r.stepping, out.Group = true, &want.Members[0]
	}
	if want.Outlived != 0 && !r.outliving {
		r.outliving = true
		command := shared.Command{Outlived: &shared.Outlived{Change: want.Outlived}}.Encode()
		out.Proposals = append(out.Proposals, Proposal{What: Outlived, Command: command, Only: core.Condition{Term: r.cfg.Term}})
	}
	if level := raisable(f); level != 0 && !r.raising {
		r.raising = true
		command := shared.Command{Raise: &shared.Raise{Level: level}}.Encode()
		out.Proposals = append(out.Proposals, Proposal{What: Raising, Command: command, Only: core.Condition{Term: r.cfg.Term}})
	}
	r.due = due(&in, &want)
}

// raisable is State.Raisable, but 0 while somebody votes who is no node any more: its program may be an older one, which would stop while
// its vote is needed.
func raisable(f *Facts) uint32 {
	for _, raft := range f.Status.Voters {
		if f.State.NodeByRaft(raft) == nil {
			return 0
		}
	}
	return f.State.Raisable()
}

// input is what the planner is told. What is barred was barred by an earlier Step, which was carried out before the leases were
// read. It says false if the arbiter does not lead in this term (any more).
func (r *Reign) input(f *Facts) (plan.Input, bool) {
	status := &f.Status
	if !status.Leading || status.Term != r.cfg.Term {
		return plan.Input{}, false
	}
	in := plan.Input{
		Now: f.Now, Leading: true, Term: r.cfg.Term, TakeFrom: max(r.cfg.TakeFrom, status.TakeFrom), State: f.State, Reports: r.reports,
	}
	r.reports = nil
	until := map[uint64]int64{} // a node that has not asked in this term has 0
	for i := range f.State.Nodes {
		until[f.State.Nodes[i].Number] = 0
	}
	for _, l := range f.Leases {
		until[l.Number] = l.Until
	}
	for _, number := range slices.Sorted(maps.Keys(until)) {
		in.Nodes = append(in.Nodes, plan.Evidence{
			Number: number, LeaseUntil: until[number], Connected: !f.Away[number], Barred: r.barred[number],
			Leaving: r.leaves(number, f.Now) || f.Gone[number],
		})
	}
	in.Group = plan.Group{Leader: status.Raft, Voters: status.Voters, Learners: status.Learners, Last: status.Commit}
	for _, p := range status.Peers {
		if p.Raft == status.Raft {
			in.Group.Last = max(in.Group.Last, p.Match)
			continue
		}
		in.Group.Match = append(in.Group.Match, plan.Match{Raft: p.Raft, Index: p.Match, Heard: p.Active})
	}
	return in, true
}

// due is when the planner is asked again at the latest. That a node has got a lease, or a learner has caught up, is told by
// nobody.
func due(in *plan.Input, out *plan.Output) int64 {
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

// premature says that the leadership is not given away yet: a leader that leaves hands its buckets over first, since the next
// leader may take nothing from anybody for a while. Who leaves gives the leadership away after that.
func premature(f *Facts, s plan.MemberStep) bool {
	return s.Change == plan.Transfer && f.Leaving && Primaries(f.State, f.Number) > 0
}

// Primaries is how many buckets the node is primary of.
func Primaries(state *shared.State, number uint64) (n int) {
	for i := range state.Views {
		if state.Views[i].Primary().Node == number {
			n++
		}
	}
	return n
}

// report keeps what sealed copies have told for the planner.
func (r *Reign) report(in Report) {
	for _, b := range in.Reports {
		if b.Report.Member.Node == in.Node && len(r.reports) < maxReports {
			r.reports = append(r.reports, b)
		}
	}
}

// leaves says whether a node has said lately that it wants to leave.
func (r *Reign) leaves(number uint64, now int64) bool {
	at, asked := r.leaving[number]
	return asked && now-at < leavingFor
}

// leave notes that a node wants to be primary of nothing.
func (r *Reign) leave(f *Facts, in Leave) Left {
	answer := Left{Asker: in.Asker}
	if f.State.Node(in.Number) == nil {
		answer.Others = len(f.State.Nodes) // no reason to give up
		return answer
	}
	r.leaving[in.Number] = f.Now
	for _, l := range f.Leases {
		n := f.State.Node(l.Number)
		if n != nil && !n.Arbiter && l.Number != in.Number && l.Until > f.Now && !r.leaves(l.Number, f.Now) {
			answer.Others++
		}
	}
	return answer
}
