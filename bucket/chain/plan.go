package chain

import "slices"

// plan asks the control plane for another view if this one could be better. At most one proposal is on its way: until its
// outcome is known, an answer needs what both sets ask for, and more than two would be hard to argue about.
func (r *Replica) plan() {
	handing := r.lead != nil && r.lead.handover != (Member{})
	if r.place != 0 || r.proposal != nil || !r.replan && !handing || !r.open() || !r.leased() {
		return
	}
	r.replan = false
	if r.lead == nil {
		// It was primary of this epoch before it was restarted: the same again, in an epoch of its own.
		r.propose(r.view.Clone())
		return
	}
	r.lead.owed = true
	if r.handover() || !r.lead.announced {
		return
	}
	for i, next := range r.wishes() {
		if next.same(&r.view) && !r.lead.release {
			r.lead.owed = i > 0 || r.restless()
			return
		}
		if r.safe(&next) {
			r.propose(next)
			return
		}
	}
}

// restless says whether another view could be better before long though nobody tells: whoever is behind may catch up and be
// the better first secondary, or may not.
func (r *Replica) restless() bool {
	last := r.log.last().Seq
	return r.lead.handover != (Member{}) || len(r.lead.peers) >= len(r.view.Chain) ||
		slices.ContainsFunc(r.lead.peers, func(p peer) bool { return p.Seq < last })
}

func (r *Replica) propose(next View) {
	next.Epoch = r.view.Epoch + 1
	r.proposal = &next
	r.ask()
}

func (r *Replica) ask() {
	next := r.proposal.Clone()
	r.out.Propose = &next
	r.proposedAt = r.now
}

// Refused tells that the control plane will never commit the view that was asked for in Output.Propose with this epoch, and
// that no copy of the question is on its way any more. A primary that has sealed itself for a hand-over stays sealed: the
// control plane owes the next view.
func (r *Replica) Refused(epoch uint64) {
	if r.proposal == nil || r.proposal.Epoch != epoch {
		return
	}
	r.proposal, r.dirty = nil, true
	r.out.Propose = nil // it must not go out once more now that an answer needs only the old set
	if r.lead == nil {
		r.replan = true
		return
	}
	// The same may be wished again, and be refused again: not at once.
	r.lead.owed, r.plannedAt = true, r.now+r.lim.Drop/4
}

// safe says whether every change that may have been answered is where an in-sync set must have it: with as many members
// as an answer of the new view will need.
func (r *Replica) safe(next *View) bool {
	answered := r.answered()
	if r.cfg.Acks != Majority {
		// Every member of the old set has it all, known or not.
		for _, m := range next.Members() {
			if !r.view.Counts(m) && r.has(m) < answered {
				return false
			}
		}
		return true
	}
	have, kept := 0, 0
	for _, m := range next.Members() {
		if r.has(m) >= answered {
			have++
		}
		if r.view.Counts(m) {
			kept++
		}
	}
	same := kept == next.InSync && next.InSync == r.view.InSync
	return same || have >= r.cfg.Acks.need(next.InSync)
}

// caughtUp says whether a copy can join the in-sync set without anybody having to wait for it.
func (r *Replica) caughtUp(m Member) bool {
	seq := r.has(m)
	return seq >= r.answered() && r.log.last().Seq-seq <= r.lim.Lag
}

// wishes are the views that this primary would like, the best one first.
func (r *Replica) wishes() []View {
	good, bad := r.judge()
	for _, p := range r.lead.peers {
		if r.view.Place(p.Member) < 0 && !p.leaving && !slices.Contains(r.away, p.Member.Node) &&
			len(good)+len(bad)+1 < MaxChain && r.caughtUp(p.Member) &&
			!slices.ContainsFunc(r.view.Chain, func(m Member) bool { return m.Node == p.Member.Node }) {
			good = append(good, p.Member)
			break // one at a time: who joins behind it keeps its place
		}
	}
	good = r.firstFirst(good)
	if r.cfg.Acks == First {
		n := 1
		if len(good) > 0 && (r.view.Counts(good[0]) || r.caughtUp(good[0])) {
			n = 2
		}
		return []View{r.wish(n, good)}
	}
	in := func(m Member) bool { return r.view.Counts(m) || r.caughtUp(m) }
	counted, others := split(good, in)
	views := []View{r.wish(1+len(counted), counted, others)}
	if r.cfg.Acks == Majority {
		// A half of the set may be all that has what was answered. Whoever cannot be left out yet stands at its end.
		lost, gone := split(bad, r.view.Counts)
		_ = gone // they are dropped in any case
		views = append(views, r.wish(1+len(counted)+len(lost), counted, lost, others))
		kept, rest := split(good, r.view.Counts)
		views = append(views, r.wish(1+len(kept)+len(lost), kept, lost, rest))
	}
	return views
}

func (r *Replica) wish(inSync int, parts ...[]Member) View {
	v := View{Epoch: r.view.Epoch + 1, Chain: []Member{r.state.Self}, InSync: inSync}
	for _, p := range parts {
		v.Chain = append(v.Chain, p...)
	}
	v.Recovery = r.view.Recovery && r.now < r.lead.recover
	return v
}

func split(list []Member, first func(Member) bool) (yes, no []Member) {
	for _, m := range list {
		if first(m) {
			yes = append(yes, m)
		} else {
			no = append(no, m)
		}
	}
	return yes, no
}

// judge says which of the others in the chain can stay. One that makes no progress is dropped, but only the first of
// those in the chain, and not while one before it is about to be: what comes after it depends on it. With Majority it may
// have to stay in the set for a while, at its end; it remains bad until it makes progress, since otherwise two of them could
// take turns in front of each other for ever.
func (r *Replica) judge() (good, bad []Member) {
	last := r.log.last().Seq
	blamed := false
	for _, m := range r.view.Chain[1:] {
		p := &r.lead.peers[find(r.lead.peers, m)]
		silent := r.now - p.movedAt
		p.stuck = p.stuck || p.Seq < last && silent >= r.lim.Drop && !blamed
		if p.leaving || p.stuck || slices.Contains(r.away, m.Node) {
			bad = append(bad, m)
			blamed = true
			continue
		}
		blamed = blamed || p.Seq < last && silent >= r.lim.Drop/2
		good = append(good, m)
	}
	return good, bad
}

// firstFirst puts the best first secondary before the others: who is to take over soon, else who has the highest score of
// those who have caught up. The one that is there stays if no other one is better.
func (r *Replica) firstFirst(good []Member) []Member {
	best := -1
	for i, m := range good {
		switch {
		case !r.caughtUp(m) && !r.view.Counts(m):
		case m == r.lead.handover && r.caughtUp(m):
			best = i
			return front(good, best)
		case best < 0 || r.score(m) > r.score(good[best]) && r.caughtUp(m):
			best = i
		}
	}
	return front(good, best)
}

// front gives the list with the one at i moved to its beginning.
func front(list []Member, i int) []Member {
	if i <= 0 {
		return list
	}
	out := append([]Member{list[i]}, list[:i]...)
	return append(out, list[i+1:]...)
}
