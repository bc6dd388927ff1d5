package core

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
)

// Condition restricts when a proposal takes effect. The zero Condition is none.
type Condition struct {
	// Term: only if this node leads in this term, and only as an entry of this term. What was decided with what the leader
	// knows of leases must name the term: in a later one somebody else grants them.
	Term uint64
	// Ended: numbers of nodes whose leases must have ended. The leader checks it, and grants none of them anything until the
	// proposal is applied; and then nothing with an older index. Needs Term.
	Ended []uint64
}

// proposals of this node.
type proposals struct {
	waiting map[uint64]*proposal
	last    uint64 // the highest id given
	due     int64  // when the next is to be repeated, at the latest
}

type proposal struct {
	id     uint64
	data   []byte // envelope
	only   Condition
	member *pb.ConfChangeV2 // not nil: a change of membership

	index    uint64 // in this leader's log, 0 if it has not been there
	term     uint64 // Raft's own, of this node as leader when it was appended; 0: it was passed on, or not at all
	due      int64  // when to repeat it
	tries    int
	departed bool // nobody waits for it any more
}

// Propose proposes a command. id is above all that it took before in this life. What becomes of it comes as
// Command or Done with this id; until then it is repeated, unless there is a condition. It takes effect at most once. Errors wrap
// ErrProposal, ErrBusy, ErrNotLeader, ErrRefused (nothing was done), or ErrFailed.
func (n *Node) Propose(id uint64, command []byte, only Condition) error {
	if len(command) > MaxCommand || id <= n.prop.last {
		return n.refuse(ErrProposal, "id %d after %d, %d bytes of at most %d", id, n.prop.last, len(command), MaxCommand)
	}
	if err := n.room(id); err != nil {
		return err
	}
	if len(only.Ended) > 0 && only.Term == 0 {
		return n.refuse(ErrProposal, "leases must have ended, and no term is given")
	}
	if only.Term != 0 {
		if err := n.holds(&only); err != nil {
			return err
		}
	}
	env := envelope{Raft: n.cfg.ID, Life: n.cfg.Life, ID: id, Term: only.Term, Data: command}
	p := &proposal{id: id, data: env.encode(), only: Condition{only.Term, slices.Clone(only.Ended)}}
	return n.input(func() error { return n.begin(p) })
}

// room says whether one more proposal may wait: the group tells window ids apart.
func (n *Node) room(id uint64) error {
	oldest := id
	for waits := range n.prop.waiting { // order: the lowest is looked for
		oldest = min(oldest, waits)
	}
	if len(n.prop.waiting) >= maxProposals || id-oldest >= window {
		return n.refuse(ErrBusy, "%d proposals wait", len(n.prop.waiting))
	}
	return nil
}

// holds says whether a condition does now.
func (n *Node) holds(only *Condition) error {
	if !n.Leading() || n.elect.term != only.Term {
		return n.refuse(ErrNotLeader, "it was to be in term %d, and this is term %d, leading: %t", only.Term, n.elect.term, n.Leading())
	}
	for _, number := range only.Ended {
		if !n.ended(number) {
			return n.refuse(ErrRefused, "node %d may still hold a lease", number)
		}
	}
	return nil
}

// begin hands a proposal to Raft for the first time. With a condition it is handed over now or not at all.
func (n *Node) begin(p *proposal) error {
	err := n.hand(p)
	if n.err != nil || p.only.Term != 0 && err != nil {
		return n.refuse(ErrBusy, "%v", err)
	}
	n.prop.last = p.id
	n.prop.waiting[p.id] = p
	n.raise(p.id, p.only.Ended)
	return nil
}

// hand gives a proposal to Raft: into the log, or on its way to the leader, or (an error) nowhere.
func (n *Node) hand(p *proposal) error {
	var err error
	if p.member != nil {
		err = n.rn.ProposeConfChange(p.member)
	} else {
		err = n.rn.Propose(p.data)
	}
	if err != nil && !errors.Is(err, raft.ErrProposalDropped) {
		return n.refuse(ErrFailed, "propose: %v", err)
	}
	p.term, p.index = 0, 0
	if err == nil && n.elect.leads {
		p.term = n.elect.term
	}
	p.due = n.now + n.cfg.Election<<min(p.tries, 3)
	p.tries++
	n.prop.due = min(n.prop.due, p.due)
	return err
}

// repeats says whether a proposal would be handed to Raft again: what this leader has in its log is decided there.
func (n *Node) repeats(p *proposal) bool {
	return p.only.Term == 0 && p.member == nil && !p.departed && (p.term == 0 || p.term != n.elect.term || !n.elect.leads)
}

func (n *Node) proposalTick() {
	if n.now < n.proposalDue() {
		return
	}
	n.prop.due = Never
	for _, id := range slices.Sorted(maps.Keys(n.prop.waiting)) {
		p := n.prop.waiting[id]
		if !n.repeats(p) {
			continue
		}
		if n.now >= p.due {
			_ = n.hand(p) // refused: it is handed again later
		}
		n.prop.due = min(n.prop.due, p.due)
	}
}

func (n *Node) proposalDue() int64 {
	if len(n.prop.waiting) == 0 || n.elect.leader == 0 {
		return Never
	}
	return n.prop.due
}

// hurry repeats everything at once: there is another leader.
func (p *proposals) hurry(now int64) {
	for _, w := range p.waiting { // order: each for itself
		w.due, w.tries = now, 0
	}
	p.due = now
}

// noteIndexes notes where in its log this leader has its own proposals.
func (n *Node) noteIndexes(entries []*pb.Entry) {
	if len(n.prop.waiting) == 0 || !n.elect.leads {
		return
	}
	for _, e := range entries {
		if env, ok := envelopeOf(e); ok {
			if p := n.own(&env); p != nil && p.term == e.GetTerm() && p.index == 0 {
				p.index = e.GetIndex()
			}
		}
	}
}

// envelopeOf an entry: a command's, or that of a change of membership.
func envelopeOf(e *pb.Entry) (envelope, bool) {
	buf := e.GetData()
	if e.GetType() == pb.EntryConfChangeV2 {
		cc, err := openMembership(buf)
		if err != nil {
			return envelope{}, false
		}
		buf = cc.GetContext()
	}
	env, err := openEnvelope(buf)
	return env, err == nil
}

// own finds the proposal of this node that still waits.
func (n *Node) own(env *envelope) *proposal {
	if env.Raft != n.cfg.ID || env.Life != n.cfg.Life {
		return nil
	}
	return n.prop.waiting[env.ID]
}

// finish ends a proposal; outcome 0: its Command tells.
func (n *Node) finish(p *proposal, outcome Outcome) {
	delete(n.prop.waiting, p.id)
	n.lower(p.id, n.applied)
	if n.lead.member == p {
		n.lead.member = nil
	}
	if outcome != 0 && !p.departed {
		d := Done{ID: p.id, Outcome: outcome}
		if outcome == Taken {
			d.Change = n.applied
		}
		n.out.Done = append(n.out.Done, d)
	}
}

// settleProposals ends those whose place in the log was taken by something else, and those that a snapshot went over.
func (n *Node) settleProposals() {
	if len(n.prop.waiting) == 0 {
		return
	}
	for _, id := range slices.Sorted(maps.Keys(n.prop.waiting)) {
		p := n.prop.waiting[id]
		switch {
		case n.seen.applied(n.cfg.ID, n.cfg.Life, p.id):
			n.finish(p, Unknown)
		case p.only.Term == 0 && p.member == nil:
			// It is repeated until it is applied.
		case p.index != 0 && n.applied >= p.index && n.out.Restore == nil:
			n.finish(p, Refused)
		case p.index != 0 && n.applied >= p.index:
			n.finish(p, Unknown)
		}
	}
}

// loseProposals: this node does not lead any more. What has a condition, or changes members, is not repeated. What is known to be
// in the log waits until somebody decides about its place there.
func (n *Node) loseProposals() {
	for _, id := range slices.Sorted(maps.Keys(n.prop.waiting)) {
		p := n.prop.waiting[id]
		if p.only.Term == 0 && p.member == nil {
			continue
		}
		if p.index == 0 {
			n.finish(p, Unknown) // Raft may have it in what the next Ready gives
		}
	}
}

// Abandon says that nobody waits for a proposal any more. It may still take effect.
func (n *Node) Abandon(id uint64) {
	p := n.prop.waiting[id]
	if p == nil {
		return
	}
	p.departed = true
	if p.only.Term == 0 && p.member == nil {
		delete(n.prop.waiting, id)
	}
}

func (n *Node) refuse(kind error, format string, args ...any) error {
	if n.err != nil {
		return n.err
	}
	return fmt.Errorf("%w: %s", kind, fmt.Sprintf(format, args...))
}
