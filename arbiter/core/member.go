package core

import (
	"fmt"
	"slices"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"
	"google.golang.org/protobuf/proto"
)

// Step is one change of the membership.
type Step uint8

// Steps.
const (
	AddLearner Step = iota + 1 // a new member that gets everything and has no vote
	Promote                    // a learner that is caught up becomes a voter
	Remove                     // a member is none any more; its raft ID is never used again
)

// ChangeMembership proposes a step. On a leader only, one at a time; the outcome comes as Done with this id (numbered as in Propose).
// Errors wrap ErrNotLeader, ErrMembership, ErrProposal, ErrBusy (nothing was done), or ErrFailed.
func (n *Node) ChangeMembership(id uint64, step Step, member uint64) error {
	if id <= n.prop.last {
		return n.refuse(ErrProposal, "id %d after %d", id, n.prop.last)
	}
	if err := n.room(id); err != nil {
		return err
	}
	if !n.Leading() {
		return n.refuse(ErrNotLeader, "a change of the membership")
	}
	if n.lead.member != nil {
		return n.refuse(ErrMembership, "another change is under way")
	}
	change, err := n.changeFor(step, member)
	if err != nil {
		return err
	}
	env := envelope{Raft: n.cfg.ID, Life: n.cfg.Life, ID: id, Term: n.elect.term}
	p := &proposal{id: id, member: &pb.ConfChangeV2{Changes: []*pb.ConfChangeSingle{change}, Context: env.encode()}}
	return n.input(func() error {
		if err := n.hand(p); err != nil {
			return n.refuse(ErrBusy, "%v", err)
		}
		n.prop.last = id
		n.prop.waiting[id] = p
		n.lead.member = p
		return nil
	})
}

// changeFor checks a step against the members and who is there.
func (n *Node) changeFor(step Step, id uint64) (*pb.ConfChangeSingle, error) {
	if id == 0 || id >= 1<<64-2 {
		return nil, n.refuse(ErrMembership, "raft ID %x", id)
	}
	change := &pb.ConfChangeSingle{NodeId: new(id)}
	switch step {
	case AddLearner: // of a voter: it does not vote any more
		switch {
		case n.isVoter(id) && id != n.cfg.ID:
			if err := n.quorumOf(n.votersBut(id)); err != nil {
				return nil, err
			}
		case n.isMember(id) || len(n.conf.Voters)+len(n.conf.Learners) >= maxMembers:
			return nil, n.refuse(ErrMembership, "%x is a member, or the leader, or there are %d", id, maxMembers)
		}
		change.Type = pb.ConfChangeAddLearnerNode.Enum()
	case Promote:
		if !n.isLearner(id) {
			return nil, n.refuse(ErrMembership, "%x is not a learner", id)
		}
		if behind := n.behind(id, n.matches()); behind > maxLag || !n.active(id) {
			return nil, n.refuse(ErrMembership, "%x is %d entries behind, heard of lately: %t", id, behind, n.active(id))
		}
		if err := n.quorumOf(append(slices.Clone(n.conf.Voters), id)); err != nil {
			return nil, err
		}
		change.Type = pb.ConfChangeAddNode.Enum()
	case Remove:
		if !n.isMember(id) || id == n.cfg.ID {
			return nil, n.refuse(ErrMembership, "%x is no member, or the leader: transfer first", id)
		}
		if n.isVoter(id) {
			if err := n.quorumOf(n.votersBut(id)); err != nil {
				return nil, err
			}
		}
		change.Type = pb.ConfChangeRemoveNode.Enum()
	default:
		return nil, n.refuse(ErrMembership, "step %d", step)
	}
	return change, nil
}

// quorumOf refuses voters of whom not enough are there.
func (n *Node) quorumOf(voters []uint64) error {
	there := 0
	for _, id := range voters {
		if n.active(id) {
			there++
		}
	}
	if there <= len(voters)/2 {
		return n.refuse(ErrMembership, "%d of the %d voters that there would be are heard of", there, len(voters))
	}
	return nil
}

// active says that something came from a member lately.
func (n *Node) active(id uint64) bool {
	if id == n.cfg.ID {
		return true
	}
	at, ok := n.heard[id]
	return ok && !n.down[id] && n.now-at <= 2*n.cfg.Election
}

// matches is up to where the members have the log, as far as this leader knows; empty if it does not lead. RawNode.Status would copy
// all that Raft knows of them.
func (n *Node) matches() map[uint64]uint64 {
	if n.rn.BasicStatus().RaftState != raft.StateLeader {
		return nil
	}
	match := make(map[uint64]uint64, 8)
	n.rn.WithProgress(func(id uint64, _ raft.ProgressType, pr tracker.Progress) { match[id] = pr.Match })
	return match
}

// behind is how many entries a member lacks, as far as the leader knows.
func (n *Node) behind(id uint64, matches map[uint64]uint64) uint64 {
	last, err := n.log.LastIndex()
	if err != nil {
		return 1 << 63
	}
	match, ok := matches[id]
	if !ok {
		return 1 << 63
	}
	return last - min(last, match)
}

func (n *Node) stuckInSnapshot() map[uint64]bool {
	stuck := map[uint64]bool{}
	for id, pr := range n.rn.Status().Progress { // order: each for itself
		if pr.State.String() == "StateSnapshot" {
			stuck[id] = true
		}
	}
	return stuck
}

func openMembership(buf []byte) (*pb.ConfChangeV2, error) {
	cc := &pb.ConfChangeV2{}
	if err := proto.Unmarshal(buf, cc); err != nil {
		return nil, fmt.Errorf("%w: a change of membership: %w", ErrFrame, err)
	}
	return cc, nil
}

// commitMembership applies a committed change of the membership.
func (n *Node) commitMembership(e *pb.Entry, cc pb.ConfChangeI) {
	n.setConf(n.rn.ApplyConfChange(cc))
	n.log.confIndex = e.GetIndex()
	for _, id := range n.seen.proposers() {
		if !n.isMember(id) {
			delete(n.seen, id)
		}
	}
	n.restartRead()
	env, err := openEnvelope(cc.AsV2().GetContext())
	if err != nil {
		return
	}
	if p := n.own(&env); p != nil {
		n.finish(p, Taken)
	}
}

// votersBut are the voters without one of them.
func (n *Node) votersBut(id uint64) []uint64 {
	return slices.DeleteFunc(slices.Clone(n.conf.Voters), func(v uint64) bool { return v == id })
}
