package core

import (
	"fmt"
	"slices"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

// storage is the log in memory, which Raft reads. What the disk has is the same once Output.Persist is carried out.
type storage struct {
	*raft.MemoryStorage
	confIndex uint64 // of the last change of membership that was applied
	have      uint64 // index of the snapshot
	wanted    bool   // Raft would send a snapshot, and there is none that is new enough
}

// Snapshot gives the newest snapshot, but none from before the last change of membership: whoever was added since would not
// find itself in it, and refuse it.
func (s *storage) Snapshot() (*pb.Snapshot, error) {
	snap, err := s.MemoryStorage.Snapshot()
	if err != nil {
		return nil, err
	}
	if snap.GetMetadata().GetIndex() < s.confIndex {
		s.wanted = true
		return nil, raft.ErrSnapshotTemporarilyUnavailable
	}
	return snap, nil
}

// foundIndex and foundTerm are those of the snapshot that a group begins with. They are above 0, so that whoever joins gets
// a snapshot first, and with it the members.
const (
	foundIndex = 1
	foundTerm  = 1
)

// Found makes what the first voter of a new group starts with; store it first. fsm is the FSM's snapshot in its beginning.
func Found(id uint64, fsm []byte) Persist {
	body := snapshotBody{seen: seen{}, fsm: fsm}
	return Persist{
		HardState: &pb.HardState{Term: new(uint64(foundTerm)), Vote: new(uint64(0)), Commit: new(uint64(foundIndex))},
		Snapshot: &pb.Snapshot{
			Data: body.encode(),
			Metadata: &pb.SnapshotMetadata{
				Index: new(uint64(foundIndex)), Term: new(uint64(foundTerm)), ConfState: &pb.ConfState{Voters: []uint64{id}},
			},
		},
	}
}

// snapshotBody is what is in a snapshot beside its index, term and members.
type snapshotBody struct {
	change uint64 // of the last command
	seen   seen
	fsm    []byte
}

const snapshotFormat = 1

func (b *snapshotBody) encode() []byte {
	buf := append(make([]byte, 0, 256+len(b.fsm)), snapshotFormat)
	buf = appendNum(buf, b.change)
	buf = b.seen.encode(buf)
	return append(buf, b.fsm...)
}

func openSnapshot(buf []byte) (snapshotBody, error) {
	if len(buf) == 0 || buf[0] != snapshotFormat {
		return snapshotBody{}, fmt.Errorf("%w: a snapshot of an unknown format", ErrFrame)
	}
	r := reader{buf: buf[1:]}
	b := snapshotBody{change: r.num(), seen: r.seen(), fsm: r.rest(maxWhole)}
	if r.err != nil {
		return snapshotBody{}, fmt.Errorf("%w: a snapshot: %w", ErrFrame, r.err)
	}
	return b, nil
}

// Merge adds what was to be persisted to what was there: what a store does, and so what a restart finds.
func (s *Start) Merge(p *Persist) {
	if p.HardState != nil {
		s.HardState = proto.Clone(p.HardState).(*pb.HardState)
	}
	if p.Snapshot != nil {
		s.Snapshot = proto.Clone(p.Snapshot).(*pb.Snapshot)
	}
	if p.Reset {
		s.Entries = nil
	}
	if len(p.Entries) > 0 {
		from := p.Entries[0].GetIndex()
		keep, _ := slices.BinarySearchFunc(s.Entries, from, func(e *pb.Entry, i uint64) int { return compare(e.GetIndex(), i) })
		s.Entries = append(slices.Clip(s.Entries[:keep]), p.Entries...)
	}
	drop, found := slices.BinarySearchFunc(s.Entries, p.Compact, func(e *pb.Entry, i uint64) int { return compare(e.GetIndex(), i) })
	if found {
		drop++
	}
	s.Entries = s.Entries[drop:]
}

// open makes the log of what a store gave back, and checks it.
func (s Start) open() (*storage, error) {
	log := &storage{MemoryStorage: raft.NewMemoryStorage()}
	meta := s.Snapshot.GetMetadata()
	index, term, commit := meta.GetIndex(), meta.GetTerm(), s.HardState.GetCommit()
	if s.Snapshot != nil {
		if index == 0 || term == 0 || meta.GetConfState() == nil {
			return nil, fmt.Errorf("%w: a snapshot without index, term or members", ErrConfig)
		}
		if err := log.ApplySnapshot(s.Snapshot); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrConfig, err)
		}
		log.have = index
	}
	last, lastTerm := index, term
	var entries []*pb.Entry
	for i, e := range s.Entries {
		if i > 0 && e.GetIndex() != s.Entries[i-1].GetIndex()+1 {
			return nil, fmt.Errorf("%w: entry %d follows entry %d", ErrConfig, e.GetIndex(), s.Entries[i-1].GetIndex())
		}
		if e.GetIndex() <= index {
			continue
		}
		if e.GetIndex() != last+1 || e.GetTerm() < lastTerm {
			return nil, fmt.Errorf("%w: entry %d of term %d after entry %d of term %d", ErrConfig, e.GetIndex(), e.GetTerm(), last, lastTerm)
		}
		last, lastTerm = e.GetIndex(), e.GetTerm()
		entries = append(entries, e)
	}
	if err := log.Append(entries); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	if commit < index || commit > last || s.HardState.GetTerm() < lastTerm {
		return nil, fmt.Errorf("%w: committed to %d in term %d, and the log has %d to %d, of term %d at last", ErrConfig,
			commit, s.HardState.GetTerm(), index, last, lastTerm)
	}
	if s.HardState != nil {
		if err := log.SetHardState(proto.Clone(s.HardState).(*pb.HardState)); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrConfig, err)
		}
	}
	return log, nil
}
