package core

import (
	"cmp"
	"slices"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
)

// elect is when a follower gives up its leader and campaigns. Raft's own timer for that is never advanced (only a leader's
// RawNode is ticked): it would draw its timeout from crypto/rand.
type elect struct {
	term, vote, leader uint64
	leads              bool
	unsaved            bool // the term or the vote has changed since the last Persist

	heard    int64  // from the leader, last
	campaign int64  // when to campaign, if there is no leader
	eager    int64  // until when to repeat it quickly: the transport says that the leader is gone
	attempts uint64 // campaigns so far
	refused  int64  // reluctant: when to campaign because a candidate was refused for its shorter log; Never
}

// watch looks at what became of Raft's state after an input.
func (n *Node) watch() {
	e := &n.elect
	st := n.rn.BasicStatus()
	if st.GetTerm() != e.term || st.GetVote() != e.vote {
		// Somebody campaigns: give it the time of an election.
		e.campaign, e.eager = n.now+n.cfg.Election+n.delay(), 0
	}
	newTerm := st.GetTerm() != e.term
	leads := st.RaftState == raft.StateLeader
	changed := st.Lead != e.leader || newTerm
	if e.leads && (!leads || newTerm) {
		n.ceaseToLead()
	}
	began := leads && (!e.leads || newTerm)
	e.term, e.vote, e.leader, e.leads = st.GetTerm(), st.GetVote(), st.Lead, leads
	if began {
		n.beginToLead()
	}
	if !changed {
		return
	}
	if e.leader == 0 { // not by this node's own doing: that has set e.leader already
		e.campaign = n.now + n.cfg.Election + n.delay()
		return
	}
	e.heard, e.eager, e.refused = n.now, 0, Never
	n.holder.due = n.now
	n.prop.hurry(n.now)
	n.reads.hurry()
}

// electionTick gives up a silent leader, and campaigns.
func (n *Node) electionTick() {
	e := &n.elect
	if n.now < n.electionDue() {
		return
	}
	if e.leader != 0 && n.down[e.leader] {
		n.leaderGone()
		return
	}
	if e.leader != 0 {
		// From here on this node votes for others, and a little later it stands itself.
		_ = n.rn.ForgetLeader() // errors are for messages from the network
		e.leader = 0
		e.campaign = n.now + n.delay()
		return
	}
	e.attempts++
	e.refused = Never
	if e.eager > n.now {
		e.campaign = n.now + n.cfg.Heartbeat + n.stagger()
	} else {
		e.campaign = n.now + n.cfg.Election + n.delay()
	}
	_ = n.rn.Campaign() // errors are for messages from the network
}

func (n *Node) electionDue() int64 {
	e := &n.elect
	switch {
	case e.leads || !n.isMember(n.cfg.ID):
		return Never
	case e.leader != 0 && n.down[e.leader]:
		return e.heard + 2*n.cfg.Heartbeat // something of it was still on its way, or it is there after all
	case e.leader != 0:
		return e.heard + n.cfg.Election
	case !n.isVoter(n.cfg.ID):
		return Never // but it votes: it may have been promoted and not know it
	case n.cfg.Reluctant && !n.alone():
		return e.refused
	}
	return e.campaign
}

// leaderGone: the transport says so. Those who know vote for each other at once, and stand one after the other.
func (n *Node) leaderGone() {
	_ = n.rn.ForgetLeader() // errors are for messages from the network
	e := &n.elect
	e.leader = 0
	e.eager = n.now + n.cfg.Election
	e.campaign = n.now + n.stagger()
}

// stagger is how long this node lets better ones go first: half a heartbeat for each.
func (n *Node) stagger() int64 {
	rank := int64(0)
	for _, id := range n.conf.Voters {
		if id != n.cfg.ID && !n.down[id] && n.better(id, n.cfg.ID) {
			rank++
		}
	}
	return rank * n.cfg.Heartbeat / 2
}

// better compares two members as leaders.
func (n *Node) better(a, b uint64) bool {
	return cmp.Or(cmp.Compare(n.priority(a), n.priority(b)), cmp.Compare(a, b)) < 0
}

// delay spreads the campaigns of several nodes over one election time, differently at each attempt. It is a hash and not
// drawn, so that a run can be repeated.
func (n *Node) delay() int64 {
	x := n.cfg.ID ^ n.elect.term*0x9e3779b97f4a7c15 ^ n.elect.attempts*0xbf58476d1ce4e5b9 ^ n.cfg.Life<<32
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	x ^= x >> 31
	d := int64(x % uint64(n.cfg.Election))
	if n.priority(n.cfg.ID) == lastPriority {
		d += n.cfg.Election
	}
	return d
}

// considerRefusal: a reluctant node stands if somebody wants to lead who must not, since its log is shorter than this one's,
// and if nobody leads for an election time after that. Nobody else may have what this node has.
func (n *Node) considerRefusal(m *pb.Message) {
	if !n.cfg.Reluctant || n.elect.leader != 0 || n.elect.refused != Never {
		return
	}
	last, err := n.log.LastIndex()
	if err != nil {
		return
	}
	term, err := n.log.Term(last)
	if err != nil {
		return
	}
	if m.GetLogTerm() < term || m.GetLogTerm() == term && m.GetIndex() < last {
		n.elect.refused = n.now + n.cfg.Election
	}
}

// leadAlone: a single voter has nobody to wait for.
func (n *Node) leadAlone() {
	st := n.rn.BasicStatus()
	if n.alone() && st.Lead == 0 && st.RaftState == raft.StateFollower {
		_ = n.rn.Campaign() // errors are for messages from the network
	}
}

// voters by preference, without those that keep excludes.
func (n *Node) votersBy(keep func(id uint64) bool) []uint64 {
	var list []uint64
	for _, id := range n.conf.Voters {
		if keep(id) {
			list = append(list, id)
		}
	}
	slices.SortFunc(list, func(a, b uint64) int { return cmp.Or(cmp.Compare(n.priority(a), n.priority(b)), cmp.Compare(a, b)) })
	return list
}
