package core

import (
	"cmp"
	"slices"
)

// Status is a picture of a node. Times are boot-time nanoseconds.
type Status struct {
	Raft     uint64 // this node's raft ID
	Leader   uint64 // raft ID, 0 if none is known
	Term     uint64
	Leading  bool   // this node leads and has applied everything from before its term
	TakeFrom int64  // Leading: before this time nothing may be taken from any node
	Applied  uint64 // index of the last entry applied
	Change   uint64 // of the last command applied
	Commit   uint64
	Voters   []uint64 // raft IDs, ascending
	Learners []uint64 // raft IDs, ascending
	Peers    []Peer   // while Leading: all members, by raft ID
	Live     int      // while Leading: nodes that hold a lease
	Waiting  int      // proposals of this node whose outcome is not known
}

// Peer is what the leader knows of a member.
type Peer struct {
	Raft   uint64
	Voter  bool
	Match  uint64 // it has the log up to here
	Heard  int64  // when something came from it last; 0: never
	Active bool   // it is caught up enough and heard of often enough to be made a voter, or to count as one
}

// NodeLease is what the leader knows of a node that asked for a lease.
type NodeLease struct {
	Number uint64
	Raft   uint64
	Until  int64  // it has ended from then on; 0: none was granted
	Heard  int64  // when it asked last
	Note   []byte // not to be changed
}

// Status is a picture of now.
func (n *Node) Status() Status {
	s := Status{
		Raft: n.cfg.ID, Leader: n.elect.leader, Term: n.elect.term, Leading: n.Leading(), Applied: n.applied, Change: n.change,
		Voters: slices.Clone(n.conf.Voters), Learners: slices.Clone(n.conf.Learners), Waiting: len(n.prop.waiting),
		Commit: n.rn.BasicStatus().GetCommit(),
	}
	if !s.Leading {
		return s
	}
	s.TakeFrom, s.Live = n.lead.takeFrom, n.live()
	match := n.matches()
	for _, id := range slices.Sorted(slices.Values(append(slices.Clone(s.Voters), s.Learners...))) {
		s.Peers = append(s.Peers, Peer{
			Raft: id, Voter: n.isVoter(id), Match: match[id], Heard: n.heard[id],
			Active: n.active(id) && n.behind(id, match) <= maxLag,
		})
	}
	return s
}

// Leases is what this leader knows of the nodes that asked it for a lease, by number; nil if it does not lead.
func (n *Node) Leases() []NodeLease {
	if len(n.lead.leases) == 0 {
		return nil
	}
	list := make([]NodeLease, 0, len(n.lead.leases))
	for number, l := range n.lead.leases { // order: sorted
		if l.heard != 0 {
			list = append(list, NodeLease{Number: number, Raft: l.raft, Until: l.until, Heard: l.heard, Note: l.note})
		}
	}
	slices.SortFunc(list, func(a, b NodeLease) int { return cmp.Compare(a.Number, b.Number) })
	return list
}
