package reign

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/opencluster/oclocks/arbiter/core"
	"github.com/opencluster/oclocks/broker/control/flow"
	"github.com/opencluster/oclocks/conf/shared"
)

// soon is when a node asks again that cannot be answered now, in milliseconds.
const soon = 50

// ErrBarred says that a node gets no lease since the planner wants to take its buckets.
var ErrBarred = errors.New("this node's buckets are being taken over")

// MayLease refuses those that the planner wants to take buckets from, and who is not registered as the node. barred is the last
// Output.Bar of the reign. Errors: ErrBarred, shared.ErrRemoved, flow.ErrDuplicate.
func MayLease(state *shared.State, barred map[uint64]bool, number, raft uint64) error {
	if barred[number] {
		return ErrBarred
	}
	switch n := state.Node(number); {
	case n == nil:
		return shared.ErrRemoved
	case n.Raft != raft:
		return flow.ErrDuplicate
	}
	return nil
}

// register judges those who want to be registered, until one of them may be: the proposal takes effect in this term only, and each
// process is registered once (conf/shared).
func (r *Reign) register(f *Facts, out *Output) {
	for r.listening && r.admits == nil && len(r.queue) > 0 {
		q := r.queue[0]
		r.queue = r.queue[1:]
		answer, final := r.judge(f, &q, out)
		if final {
			out.Admitted = append(out.Admitted, Admitted{q.Asker, answer})
			continue
		}
		r.admits = &q
		out.Proposals = append(out.Proposals, Proposal{
			What: Admission, Command: shared.Command{Register: &q.Request}.Encode(), Only: core.Condition{Term: r.cfg.Term}, Limit: requestWait,
		})
	}
}

// judge gives the answer if there is one without a proposal.
func (r *Reign) judge(f *Facts, q *Register, out *Output) (answer Answer, final bool) {
	request := &q.Request
	if request.Start == 0 {
		return Answer{Kind: "command", Problem: fmt.Sprintf("%v: a registration without a start", shared.ErrCommand)}, true
	}
	if slices.Contains(f.State.Removed, request.Raft) && f.State.NodeByID(request.ID) == nil {
		return Answer{Kind: "removed", Problem: shared.ErrRemoved.Error(), Votes: slices.Contains(f.Status.Voters, request.Raft)}, true
	}
	if done, ok := r.admitted[request.Start]; ok {
		n := f.State.NodeByID(request.ID)
		if f.State.Change < done.Change || n != nil && n.Start == request.Start {
			return done, true
		}
		delete(r.admitted, request.Start) // it was removed, or another process is the node by now
	}
	first, asked := r.firsts[request.Start]
	if !asked {
		if len(r.firsts) >= maxFirsts {
			clear(r.firsts)
		}
		first = f.Now
		r.firsts[request.Start] = first
	}
	claim := flow.Claim{Raft: request.Raft, Start: request.Start}
	switch wait := flow.Judge(claim, r.known(f, request.ID), first, f.Now); wait {
	case 0:
		return answer, false
	case math.MaxInt64:
		n := f.State.NodeByID(request.ID)
		out.Alerts = append(out.Alerts, fmt.Sprintf("a second node with the identifier of node %d (%s) was refused: %s", n.Number, n.Name, request.ID))
		return Answer{Duplicate: true, Problem: fmt.Sprintf("node %d, %s", n.Number, n.Name)}, true
	default:
		return Answer{WaitMS: wait/1e6 + 1}, true
	}
}

// registered takes what became of a registration.
func (r *Reign) registered(f *Facts, in Done, out *Output) {
	q := r.admits
	if q == nil {
		return
	}
	r.admits = nil
	answer := Answer{WaitMS: soon}
	if in.OK {
		res := in.Result
		answer = Answer{Number: res.Number, Life: res.Life, Change: res.Change, Kind: res.Kind, Problem: res.Problem}
		answer.Votes = errors.Is(res.Err(), shared.ErrRemoved) && slices.Contains(f.Status.Voters, q.Request.Raft)
		if res.Err() == nil {
			if len(r.admitted) >= maxFirsts {
				clear(r.admitted)
			}
			r.admitted[q.Request.Start] = answer
			delete(r.leaving, res.Number) // that was the process before
		}
	}
	out.Admitted = append(out.Admitted, Admitted{q.Asker, answer})
}

// known is what this leader knows of the node that is registered under the identifier. A lease that it has not given itself
// may be out until TakeFrom.
func (r *Reign) known(f *Facts, identifier string) flow.Life {
	n := f.State.NodeByID(identifier)
	if n == nil {
		return flow.Life{}
	}
	life := flow.Life{Claim: flow.Claim{Raft: n.Raft, Start: n.Start}, Until: r.cfg.TakeFrom, Gone: f.Gone[n.Number]}
	if identifier == r.cfg.Self {
		life.Start = r.cfg.Start // this node itself has just begun
	}
	for _, l := range f.Leases {
		if l.Number == n.Number {
			life.Until, life.Heard = max(life.Until, l.Until), l.Heard
		}
	}
	return life
}
