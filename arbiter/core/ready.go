package core

import (
	"fmt"
	"slices"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

// HasReady says whether Ready would give something.
func (n *Node) HasReady() bool {
	return n.err == nil && (n.rn.HasReady() || n.persist.Snapshot != nil || n.out.waits() || n.wantsSnapshot())
}

func (o *Output) waits() bool {
	return o.Restore != nil || len(o.Messages) > 0 || len(o.Apply) > 0 || len(o.Done) > 0 || len(o.Reads) > 0 || len(o.Events) > 0
}

// Ready gives what is to be done. Carry it out and call Advance before anything else. After an error (see Err) it gives
// nothing, and nothing that it gave before may be begun any more.
func (n *Node) Ready() Output {
	err := n.guard(func() error {
		switch {
		case n.err != nil:
			return n.err
		case n.pending != nil:
			n.err = fmt.Errorf("%w: Ready before Advance", ErrFailed)
			return n.err
		}
		rd := n.rn.Ready()
		n.pending = &rd
		if err := n.store(&rd); err != nil {
			n.err = fmt.Errorf("%w: %w", ErrFailed, err)
			return n.err
		}
		for _, e := range rd.CommittedEntries {
			n.commit(e)
		}
		n.settleProposals()
		for _, rs := range rd.ReadStates {
			n.answerAsks(rs)
		}
		n.settleReads()
		n.settleLease()
		return n.send(rd.Messages)
	})
	if err != nil {
		return Output{}
	}
	n.tell()
	out := n.out
	n.out = Output{}
	out.Persist = n.takePersist()
	out.Snapshot = n.wantsSnapshot()
	return out
}

// Advance says that the last Output was carried out. digest is that of the FSM after it.
func (n *Node) Advance(digest uint64) {
	if n.pending == nil || n.err != nil {
		return
	}
	rd := *n.pending
	n.pending = nil
	n.digest = digest
	n.lead.remember(n.change, digest)
	_ = n.input(func() error { // what fails is in n.err
		n.rn.Advance(rd)
		n.leadAlone()
		return nil
	})
}

// store takes over into the log in memory what the disk gets.
func (n *Node) store(rd *raft.Ready) error {
	if !raft.IsEmptySnap(rd.Snapshot) {
		body, err := openSnapshot(rd.Snapshot.GetData())
		if err != nil {
			return err
		}
		if err := n.log.ApplySnapshot(rd.Snapshot); err != nil {
			return err
		}
		n.log.have = rd.Snapshot.GetMetadata().GetIndex()
		n.persist = Persist{Snapshot: rd.Snapshot, Reset: true, HardState: n.persist.HardState}
		n.restore(rd.Snapshot, body)
	}
	if err := n.log.Append(rd.Entries); err != nil {
		return err
	}
	n.persist.Entries = rd.Entries
	n.noteIndexes(rd.Entries)
	if !raft.IsEmptyHardState(rd.HardState) {
		if err := n.log.SetHardState(rd.HardState); err != nil {
			return err
		}
		n.persist.HardState = rd.HardState
		n.elect.unsaved = n.elect.unsaved || rd.MustSync
	}
	return nil
}

// takePersist gives what the disk must have now. A commit index that rose is no reason to write: it goes with what comes
// next, and is found out anew after a restart.
func (n *Node) takePersist() *Persist {
	p := n.persist
	if p.Snapshot == nil && len(p.Entries) == 0 && !n.elect.unsaved {
		return nil
	}
	n.persist = Persist{}
	n.elect.unsaved = false
	return &p
}

// commit takes one committed entry.
func (n *Node) commit(e *pb.Entry) {
	n.applied = e.GetIndex()
	if n.elect.leads && e.GetTerm() == n.elect.term {
		n.lead.ready = true
	}
	switch e.GetType() {
	case pb.EntryNormal:
		if len(e.GetData()) > 0 {
			n.commitCommand(e)
		}
	case pb.EntryConfChange:
		cc := &pb.ConfChange{}
		if err := proto.Unmarshal(e.GetData(), cc); err != nil {
			panic(fmt.Sprintf("entry %d: %v", e.GetIndex(), err))
		}
		n.commitMembership(e, cc)
	case pb.EntryConfChangeV2:
		cc := &pb.ConfChangeV2{}
		if err := proto.Unmarshal(e.GetData(), cc); err != nil {
			panic(fmt.Sprintf("entry %d: %v", e.GetIndex(), err))
		}
		n.commitMembership(e, cc)
	}
}

// commitCommand applies a command if it counts, which all nodes see alike.
func (n *Node) commitCommand(e *pb.Entry) {
	env, err := openEnvelope(e.GetData())
	if err != nil {
		panic(fmt.Sprintf("entry %d: %v", e.GetIndex(), err))
	}
	counts := n.isMember(env.Raft) && n.seen.first(&env) && (env.Term == 0 || env.Term == e.GetTerm())
	own := n.own(&env)
	if counts {
		n.change = e.GetIndex()
		cmd := Command{Change: e.GetIndex(), Data: env.Data}
		if own != nil {
			cmd.Proposal = own.id
		}
		n.out.Apply = append(n.out.Apply, cmd)
	}
	if own == nil {
		return
	}
	if counts {
		n.finish(own, 0)
	} else if own.only.Term != 0 {
		n.finish(own, Refused)
	}
}

// send packs Raft's messages, those for one node together, in their order.
func (n *Node) send(messages []*pb.Message) error {
	var list []packed // in the order in which they are addressed first
	flush := func(p *packed) {
		if len(p.messages) > 0 {
			n.post(p.to, encodeRaft(n.cfg.ID, p.to, p.messages))
		}
		p.messages, p.size = nil, 0
	}
	for _, m := range messages {
		to := m.GetTo()
		if m.GetType() == pb.MsgSnap {
			n.lead.sentSnapshot(to, n.now)
		}
		buf, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
		if err != nil {
			n.err = fmt.Errorf("%w: encode %s: %w", ErrFailed, m.GetType(), err)
			return n.err
		}
		at := slices.IndexFunc(list, func(p packed) bool { return p.to == to })
		if at < 0 {
			at = len(list)
			list = append(list, packed{to: to})
		}
		p := &list[at]
		if p.size+len(buf) > MaxFrame {
			flush(p)
		}
		p.messages = append(p.messages, buf)
		p.size += len(buf) + 4
	}
	for i := range list {
		flush(&list[i])
	}
	return nil
}

// packed are messages that go to one node in one frame.
type packed struct {
	to       uint64
	messages [][]byte
	size     int
}

// tell adds an event if the leadership is another one than was told.
func (n *Node) tell() {
	is := Leadership{Leader: n.elect.leader, Term: n.elect.term, Leading: n.Leading()}
	if is.Leading {
		is.TakeFrom = n.lead.takeFrom
	}
	if is != n.told {
		n.told = is
		n.out.Events = append(n.out.Events, is)
	}
}

// Leading says that this node leads and has applied everything from before its term.
func (n *Node) Leading() bool { return n.elect.leads && n.lead.ready }
