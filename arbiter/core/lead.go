package core

import (
	"encoding/binary"

	"go.etcd.io/raft/v3"

	"github.com/opencluster/oclocks/internal/mutant"
)

// lead is what only a leader has. It begins anew with each term.
type lead struct {
	ready    bool  // an entry of this term is applied, and so everything from before it
	since    int64 // when the term began here
	takeFrom int64 // since + Lease: what older leaders granted has ended
	tick     int64 // when Raft's clock goes on; Never for others

	leases   map[uint64]*nodeLease // by node number
	fences   []*fence
	asks     []waitingAsk // wait for the next ReadIndex
	inFlight []waitingAsk // wait for the one that was begun; empty: none was
	read     uint64       // number of the ReadIndex begun last

	snapshots map[uint64]int64 // when a member was sent a snapshot

	member *proposal // a change of membership that is not applied yet
	hand   handover

	digests []digestAt // of this node's FSM, ascending by change; every node keeps them
}

type digestAt struct{ change, digest uint64 }

type waitingAsk struct {
	from uint64
	ask  ask
}

// remember keeps the digest of a change, to compare others' with.
func (l *lead) remember(change, digest uint64) {
	if k := len(l.digests); k > 0 && l.digests[k-1].change >= change {
		l.digests[k-1] = digestAt{change, digest}
		return
	}
	if len(l.digests) >= keepDigests {
		l.digests = l.digests[1:]
	}
	l.digests = append(l.digests, digestAt{change, digest})
}

func (l *lead) digestAt(change uint64) (uint64, bool) {
	for _, d := range l.digests {
		if d.change == change {
			return d.digest, true
		}
	}
	return 0, false
}

func (l *lead) sentSnapshot(to uint64, now int64) {
	if l.snapshots != nil {
		l.snapshots[to] = now
	}
}

func (n *Node) beginToLead() {
	n.lead = lead{
		since: n.now, takeFrom: n.now + n.cfg.Lease, tick: n.now + n.cfg.Heartbeat,
		leases: map[uint64]*nodeLease{}, snapshots: map[uint64]int64{}, read: n.lead.read,
		hand: n.lead.hand, digests: n.lead.digests,
	}
	if mutant.On(mutant.NewLeaderDoesNotWait) {
		n.lead.takeFrom = n.now
	}
}

func (n *Node) ceaseToLead() {
	n.loseProposals()
	n.lead = lead{tick: Never, read: n.lead.read, hand: n.lead.hand, digests: n.lead.digests}
}

// leaderTick advances Raft's clock, by at most one election time after a pause.
func (n *Node) leaderTick() {
	if n.now < n.lead.tick {
		return
	}
	for range 1 + min((n.now-n.lead.tick)/n.cfg.Heartbeat, n.cfg.Election/n.cfg.Heartbeat) {
		n.rn.Tick()
		if n.rn.BasicStatus().RaftState != raft.StateLeader {
			return
		}
	}
	n.lead.tick = n.now + n.cfg.Heartbeat
	n.checkSnapshots()
	n.prefer()
}

func (n *Node) leaderDue() int64 {
	if n.alone() && len(n.conf.Learners) == 0 {
		return Never
	}
	return n.lead.tick
}

// checkSnapshots: Raft waits for ever for a member that was sent a snapshot and did not get it.
func (n *Node) checkSnapshots() {
	if len(n.lead.snapshots) == 0 {
		return
	}
	stuck := n.stuckInSnapshot()
	for id, at := range n.lead.snapshots { // order: each member is judged for itself
		switch {
		case !stuck[id]:
			delete(n.lead.snapshots, id)
		case n.now-at >= 4*n.cfg.Election:
			delete(n.lead.snapshots, id)
			n.rn.ReportSnapshot(id, raft.SnapshotFailure)
		}
	}
}

// receiveAsk queues what a member asks. Nobody asks who is no member, and only a leader answers.
func (n *Node) receiveAsk(from uint64, a *ask) {
	if !n.elect.leads || !n.isMember(from) || len(n.lead.asks) >= maxAsks {
		return
	}
	if a.Lease {
		n.noteAsk(from, a)
	}
	n.lead.asks = append(n.lead.asks, waitingAsk{from, *a})
	n.beginRead()
}

// beginRead begins a ReadIndex for everything that has been asked up to now. One is under way at a time: who comes in between
// waits for the next, because the index must be of a time after it asked. Not before an entry of this term is applied: a
// single voter is told an index by Raft that is too low.
func (n *Node) beginRead() {
	if !n.Leading() || len(n.lead.inFlight) > 0 || len(n.lead.asks) == 0 {
		return
	}
	n.lead.inFlight, n.lead.asks = n.lead.asks, nil
	n.lead.read++
	ctx := binary.LittleEndian.AppendUint64(nil, n.lead.read)
	if mutant.On(mutant.ReadIndexSkipped) {
		n.answerAsks(raft.ReadState{Index: n.applied, RequestCtx: ctx})
		return
	}
	n.rn.ReadIndex(ctx)
}

// restartRead begins the ReadIndex that is under way once more, because the members have changed: those whose answer it waits
// for may be none any more, and a leader that is left alone asks nobody.
func (n *Node) restartRead() {
	if n.elect.leads && len(n.lead.inFlight) > 0 {
		n.lead.asks, n.lead.inFlight = append(n.lead.inFlight, n.lead.asks...), nil
		n.beginRead()
	}
}

// answerAsks: the ReadIndex is confirmed, so this node led after those asked who wait for it.
func (n *Node) answerAsks(rs raft.ReadState) {
	if !n.Leading() || len(rs.RequestCtx) != 8 || binary.LittleEndian.Uint64(rs.RequestCtx) != n.lead.read {
		return
	}
	waited := n.lead.inFlight
	n.lead.inFlight = nil
	for _, w := range waited {
		a := answer{ID: w.ask.ID, Index: rs.Index}
		if w.ask.Lease && !n.grant(w, &a) {
			continue
		}
		if w.from == n.cfg.ID {
			n.receiveAnswer(w.from, &a)
			continue
		}
		n.post(w.from, encodeAnswer(n.cfg.ID, w.from, &a))
	}
	n.beginRead()
}
