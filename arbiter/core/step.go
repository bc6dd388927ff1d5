package core

import (
	"errors"
	"fmt"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"
)

// step gives a message of Raft that came from another node, and that check has let through, to Raft.
func (n *Node) step(from uint64, m *pb.Message) error {
	switch m.GetType() {
	case pb.MsgProp:
		// Raft would pass it on to a leader it knows; the proposer repeats it anyway, and to the right one.
		if !n.elect.leads || !n.isMember(from) {
			return nil
		}
	case pb.MsgVote, pb.MsgPreVote:
		n.considerRefusal(m)
	case pb.MsgTimeoutNow:
		if n.elect.leader != from {
			return nil
		}
	case pb.MsgHeartbeat:
		if err := n.considerCommit(m); err != nil {
			return err
		}
	case pb.MsgAppResp:
		if m.GetReject() && m.GetIndex() <= n.matched(from) && m.GetTerm() == n.rn.BasicStatus().GetTerm() {
			return nil
		}
	}
	err := n.rn.Step(m)
	if err != nil && !errors.Is(err, raft.ErrProposalDropped) && !errors.Is(err, raft.ErrStepPeerNotFound) {
		return fmt.Errorf("%w: %s: %w", ErrFrame, m.GetType(), err)
	}
	switch m.GetType() {
	case pb.MsgApp, pb.MsgHeartbeat, pb.MsgSnap:
		if st := n.rn.BasicStatus(); st.Lead == from && st.GetTerm() == m.GetTerm() {
			n.elect.heard = n.now
		}
	}
	return nil
}

// considerCommit looks whether this node still has what it has confirmed: a leader's heartbeat names nothing else as decided. Raft would
// panic, and say less.
func (n *Node) considerCommit(m *pb.Message) error {
	last, err := n.log.LastIndex()
	if err != nil || m.GetCommit() <= last || m.GetTerm() < n.rn.BasicStatus().GetTerm() {
		return err
	}
	n.err = fmt.Errorf("%w: the log on this node's disk ends at %d, but the node has confirmed up to %d to the leader: the disk is older than "+
		"the node. Start it again: it asks the others then, and begins anew; if it says this again, remove the node and start it with an "+
		"empty directory", ErrFailed, last, m.GetCommit())
	return n.err
}

// matched is up to where a member has confirmed, as a leader knows it, to have this node's log. A rejection of that or of less is an old
// one that was late, or the member's log has parted from this one within what was decided, which a store put back from a copy can bring
// about (doc.go of broker/control, "What remains"). Raft would repeat at once what was rejected, as often as it is rejected, and twice as
// often with each copy of a message, for ever. What the next heartbeat sends is soon enough: such a member cannot be brought in step.
func (n *Node) matched(from uint64) (match uint64) {
	if !n.elect.leads {
		return 0
	}
	n.rn.WithProgress(func(id uint64, _ raft.ProgressType, pr tracker.Progress) {
		if id == from {
			match = pr.Match
		}
	})
	return match
}

// check refuses what no correct node sends and what Raft would stumble over.
func (n *Node) check(from uint64, m *pb.Message) error {
	if m.GetFrom() != from || m.GetTo() != n.cfg.ID {
		return errors.New("of or for somebody else")
	}
	if (m.GetTerm() == 0) != (m.GetType() == pb.MsgProp) {
		return fmt.Errorf("term %d", m.GetTerm())
	}
	switch m.GetType() {
	case pb.MsgProp:
		return checkProposals(from, m.GetEntries())
	case pb.MsgApp:
		return checkEntries(m)
	case pb.MsgSnap:
		return checkSnapshot(m.GetSnapshot())
	case pb.MsgHeartbeat, pb.MsgHeartbeatResp:
		if l := len(m.GetContext()); l != 0 && l != 8 {
			return fmt.Errorf("context of %d bytes", l)
		}
		return nil
	case pb.MsgAppResp, pb.MsgVote, pb.MsgVoteResp, pb.MsgPreVote, pb.MsgPreVoteResp, pb.MsgTimeoutNow:
		return nil
	}
	return errors.New("not a message between nodes")
}

// checkProposals: only what a node proposes itself is passed on, and only commands.
func checkProposals(from uint64, entries []*pb.Entry) error {
	if len(entries) == 0 {
		return errors.New("no entry")
	}
	for _, e := range entries {
		if e.GetType() != pb.EntryNormal {
			return fmt.Errorf("entry of type %s", e.GetType())
		}
		env, err := openEnvelope(e.GetData())
		if err != nil {
			return err
		}
		if env.Raft != from || env.Term != 0 {
			return errors.New("not the sender's proposal, or with a condition")
		}
	}
	return nil
}

func checkEntries(m *pb.Message) error {
	index, term := m.GetIndex(), m.GetLogTerm()
	for _, e := range m.GetEntries() {
		index++
		if e.GetIndex() != index || e.GetTerm() < term || e.GetTerm() > m.GetTerm() {
			return fmt.Errorf("entry %d of term %d where %d of term %d to %d belongs", e.GetIndex(), e.GetTerm(), index, term, m.GetTerm())
		}
		term = e.GetTerm()
	}
	return nil
}

func checkSnapshot(s *pb.Snapshot) error {
	meta := s.GetMetadata()
	cs := meta.GetConfState()
	if meta.GetIndex() == 0 || meta.GetTerm() == 0 || len(cs.GetVoters()) == 0 {
		return errors.New("a snapshot without index, term or voters")
	}
	if len(cs.GetVoters())+len(cs.GetLearners()) > maxMembers || len(cs.GetVotersOutgoing()) > 0 || len(cs.GetLearnersNext()) > 0 {
		return errors.New("a snapshot with members that cannot be")
	}
	_, err := openSnapshot(s.GetData())
	return err
}
