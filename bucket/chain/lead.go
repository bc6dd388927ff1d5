package chain

import (
	"cmp"
	"slices"

	"github.com/opencluster/oclocks/internal/mutant"
)

// lead is what only a primary has. It lives from a takeover until another one is primary, over all epochs between.
type lead struct {
	since     uint64 // epoch of the takeover
	floor     uint64 // the end of its history then: all that may have been answered before it is up to here
	announced bool   // Output.Promoted was given for this takeover
	pending   int    // bytes of the changes that wait for confirmation
	peers     []peer // the others in the chain, in its order; then those who join
	recover   int64  // nothing is granted before; 0 if this is no recovery
	end       uint64 // the end of the history at the last Output
	owed      bool   // another view could be better before long, with no input that would tell

	release bool // a copy outside of the chain waits for another view, be it the same again

	handover Member
	yielding bool // nothing new is taken, so that the successor can have everything
	yieldAt  int64
}

// peer is what the primary knows of another copy.
type peer struct {
	Progress
	movedAt int64 // when it last had everything or got something
	leaving bool  // it asked to be dropped
	stuck   bool  // it had its time, and has made no progress in it nor since
}

// score says how good a node would be as first secondary.
type score struct {
	node  uint64
	value int64
}

// follow makes the list of peers that of the new view. What is known of those that count is kept.
func (l *lead) follow(r *Replica) {
	old := l.peers
	l.peers = nil
	for _, m := range r.view.Chain {
		if m == r.state.Self {
			continue
		}
		p := peer{Progress: Progress{Member: m}, movedAt: r.now}
		if i := find(old, m); i >= 0 {
			p = old[i]
			p.movedAt = r.now // it may have to find its place first
			if !r.view.Counts(m) {
				p.Seq = 0 // before it confirms anything under this view it may begin anew
			}
		}
		l.peers = append(l.peers, p)
	}
}

func find(peers []peer, m Member) int {
	return slices.IndexFunc(peers, func(p peer) bool { return p.Member == m })
}

// begin starts the time in which a peer that had everything has to make progress. A primary that may not act, or did not run
// for a while, learns of none.
func (l *lead) begin(r *Replica) {
	if l == nil {
		return
	}
	deaf := !r.leased() || r.now-r.readyAt >= r.lim.Drop/2
	for i := range l.peers {
		if p := &l.peers[i]; p.Seq >= l.end || deaf {
			p.movedAt = r.now
		}
	}
	l.end = r.log.last().Seq
}

// note takes over what the copies below have told.
func (l *lead) note(r *Replica, list []Progress) {
	inChain := len(r.view.Chain) - 1
	l.peers = slices.DeleteFunc(l.peers, func(p peer) bool {
		return r.view.Place(p.Member) < 0 && !slices.ContainsFunc(list, func(q Progress) bool { return q.Member == p.Member })
	})
	for _, p := range list {
		if mutant.On(mutant.NeighbourSpeaksForAll) {
			p.Seq = list[0].Seq
		}
		i := find(l.peers, p.Member)
		switch {
		case i >= 0 && p.Seq > l.peers[i].Seq:
			l.peers[i].Seq, l.peers[i].movedAt, l.peers[i].stuck = p.Seq, r.now, false
		case i < 0 && p.Member != r.state.Self && len(l.peers) < inChain+MaxChain:
			l.peers = append(l.peers, peer{Progress: p, movedAt: r.now})
		}
	}
}

// incomplete says whether somebody could be added to the chain or to the in-sync set.
func (l *lead) incomplete(r *Replica) bool {
	full := len(r.view.Chain)
	if r.cfg.Acks == First {
		full = min(full, 2)
	}
	return r.view.InSync < full || len(l.peers) >= len(r.view.Chain)
}

// has is how far a member is known to have the primary's history.
func (r *Replica) has(m Member) uint64 {
	if m == r.state.Self {
		return r.log.last().Seq
	}
	if i := find(r.lead.peers, m); i >= 0 {
		return r.lead.peers[i].Seq
	}
	return 0
}

// reached is the number up to which as many of the members have everything as an answer needs.
func (r *Replica) reached(members []Member) uint64 {
	seqs := make([]uint64, 0, MaxChain)
	for _, m := range members {
		seqs = append(seqs, r.has(m))
	}
	slices.SortFunc(seqs, func(a, b uint64) int { return cmp.Compare(b, a) })
	return seqs[r.cfg.Acks.need(len(seqs))-1]
}

// confirm finds what can be answered: what the in-sync set has and, while a new one is proposed, what that has too. Changes
// of an earlier primary are confirmed only together with one of this primary's own (Raft, section 5.4.2).
func (r *Replica) confirm() {
	if !r.acting() {
		return
	}
	seq := r.reached(r.view.Members())
	if r.proposal != nil && !mutant.On(mutant.ProposedSetIgnored) {
		seq = min(seq, r.reached(r.proposal.Members()))
	}
	if r.proposal != nil && mutant.On(mutant.OutOfSyncCounts) {
		seq = r.reached(r.proposal.Members())
	}
	if seq <= r.confirmed {
		return
	}
	if p, ok := r.log.at(seq); !ok || p.Epoch < r.lead.since {
		return
	}
	r.lead.pending -= size(r.log.between(r.confirmed, seq))
	r.confirmed = seq
}

// answered is a number that nothing beyond was ever answered: what this primary has confirmed and, from before it took
// over, everything that there was.
func (r *Replica) answered() uint64 { return max(r.confirmed, r.lead.floor) }

// tail is what the last member of the chain has.
func (r *Replica) tail() uint64 {
	if len(r.view.Chain) == 0 {
		return 0
	}
	return r.has(r.view.Tail())
}

// Score says how good the node would be as first secondary; the highest is best, and nodes that were never named have 0.
// The primary promotes a better one when it has caught up.
func (r *Replica) Score(node uint64, value int64) {
	r.replan, r.dirty = true, true
	for i := range r.scores {
		if r.scores[i].node == node {
			r.scores[i].value = value
			return
		}
	}
	r.scores = append(r.scores, score{node, value})
}

func (r *Replica) score(m Member) int64 {
	for _, s := range r.scores {
		if s.node == m.Node {
			return s.value
		}
	}
	return 0
}

// Away tells whether the control plane takes a node for dead. The primary drops it then without waiting.
func (r *Replica) Away(node uint64, away bool) {
	r.replan, r.dirty = true, true
	r.away = slices.DeleteFunc(r.away, func(n uint64) bool { return n == node })
	if away {
		r.away = append(r.away, node)
	}
}

// onLeave notes that a copy wants to be dropped. One that is in no view may have been about to get into the next one: it
// wants a view that says that it did not.
func (r *Replica) onLeave(m *Message) {
	if r.lead == nil {
		return
	}
	if r.view.Place(m.From) < 0 {
		r.lead.release, r.replan = true, true
	}
	if i := find(r.lead.peers, m.From); i >= 0 {
		r.lead.peers[i].leaving, r.replan = true, true
	}
}
