package control

import (
	"context"
	"fmt"
	"math"

	"github.com/opencluster/oclocks/arbiter"
	"github.com/opencluster/oclocks/broker/control/flow"
	"github.com/opencluster/oclocks/conf/shared"
	"github.com/opencluster/oclocks/internal/boottime"
)

// soon is when a node asks again that cannot be answered now, in milliseconds.
const soon = 50

// register answers a node that wants to be registered. The proposal takes effect in this term only, and each
// process is registered once: see conf/shared.
func (r *reign) register(ctx context.Context, data []byte) admission {
	request, err := decodeMessage[shared.Register](data)
	if err != nil || request.Start == 0 {
		return admission{Kind: "command", Problem: fmt.Sprintf("%v: %v", shared.ErrCommand, err)}
	}
	r.registering.Lock()
	defer r.registering.Unlock()
	if done, ok := r.admitted[request.Start]; ok {
		return done
	}
	now := boottime.Now()
	first, asked := r.firsts[request.Start]
	if !asked {
		if len(r.firsts) >= maxFirsts {
			clear(r.firsts)
		}
		first = now
		r.firsts[request.Start] = now
	}
	life := r.known(request.ID)
	switch wait := flow.Judge(flow.Claim{Raft: request.Raft, Start: request.Start}, life, first, now); wait {
	case 0:
	case math.MaxInt64:
		n := r.c.State().NodeByID(request.ID)
		r.c.Alert(-1, fmt.Sprintf("a second node with the identifier of node %d (%s) was refused: %s", n.Number, n.Name, request.ID))
		return admission{Duplicate: true, Problem: fmt.Sprintf("node %d, %s", n.Number, n.Name)}
	default:
		return admission{WaitMS: wait/1e6 + 1}
	}
	command := shared.Command{Register: &request}.Encode()
	_, result, err := r.c.arb.ProposeIf(ctx, command, arbiter.Condition{Term: r.term})
	res, ok := result.(shared.Result)
	if err != nil || !ok {
		return admission{WaitMS: soon}
	}
	answer := admission{Number: res.Number, Life: res.Life, Change: res.Change, Kind: res.Kind, Problem: res.Problem}
	if res.Err() == nil {
		if len(r.admitted) >= maxFirsts {
			clear(r.admitted)
		}
		r.admitted[request.Start] = answer
		r.mu.Lock()
		delete(r.leaving, res.Number) // that was the process before
		r.mu.Unlock()
	}
	return answer
}

// known is what this leader knows of the node that is registered under the identifier. A lease that it has not given itself
// may be out until takeFrom.
func (r *reign) known(identifier string) flow.Life {
	n := r.c.State().NodeByID(identifier)
	if n == nil {
		return flow.Life{}
	}
	life := flow.Life{Claim: flow.Claim{Raft: n.Raft, Start: n.Start}, Until: r.takeFrom}
	if identifier == r.c.cfg.Identifier {
		life.Start = r.c.start // this node itself has just begun
	}
	life.Gone = r.c.seen.Load().gone[n.Number]
	for _, l := range r.c.arb.Leases() {
		if l.Number == n.Number {
			life.Until, life.Heard = max(life.Until, l.Until), l.Heard
		}
	}
	return life
}
