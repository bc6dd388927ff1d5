package chain

import "github.com/opencluster/oclocks/internal/mutant"

// Install tells of a view that the control plane has committed. A view that is not newer than what is known is ignored.
// The error wraps ErrView.
func (r *Replica) Install(v View) error {
	if err := v.Validate(); err != nil {
		return err
	}
	if v.Epoch <= r.view.Epoch || v.Epoch < r.state.Epoch {
		return nil
	}
	r.dirty = true
	// A copy that was restarted finds the view that it had. It may follow on under it, since its journal is complete, but
	// not lead: an epoch is one uninterrupted life of a primary.
	unknown := v.Epoch > r.state.Epoch
	goesOn := r.lead != nil && r.view.Epoch > r.state.Sealed && v.Epoch == r.view.Epoch+1 && v.Primary() == r.state.Self
	r.view, r.place = v.Clone(), v.Place(r.state.Self)
	r.proposal, r.replan = nil, true
	r.out.Propose = nil
	r.shown = !unknown
	r.wanted = r.wanted || r.place >= 0 && !r.leaving
	if unknown {
		r.state.Epoch = v.Epoch
		r.store()
	}
	switch {
	case goesOn:
		r.goOn()
	case r.place == 0 && unknown && r.stopped == "":
		r.takeOver()
	default:
		r.step(nil)
	}
	if r.place < 0 && unknown && (r.stopped != "" || r.leaving) {
		r.discard()
	}
	r.relinkUp()
	r.relinkDown()
	if r.place == 0 && r.stopped != "" {
		r.Seal(v.Epoch) // it cannot drop itself, and whoever made it primary did not know: another copy has to take over
	}
	return nil
}

// step sets or ends this copy's being the primary.
func (r *Replica) step(l *lead) {
	if r.promoted && l == nil {
		r.out.Demoted, r.promoted = true, false
	}
	r.lead = l
}

// takeOver begins a primary's life. Everything that this copy has becomes the bucket's history.
func (r *Replica) takeOver() {
	last := r.log.last().Seq
	l := &lead{since: r.view.Epoch, floor: last, pending: size(r.log.between(r.confirmed, last))}
	l.follow(r)
	if r.view.Recovery && !mutant.On(mutant.RecoveryDoesNotWait) {
		l.recover = r.now + r.cfg.Recovery
	}
	r.step(l)
}

// goOn continues a primary's life in the next epoch: its own proposal was committed, or one of the control plane that
// leaves it where it is. What it knows about those that count stays true: they throw away nothing that the primary has.
func (r *Replica) goOn() {
	l := r.lead
	l.yielding, l.release = false, false
	l.follow(r)
	switch {
	case !r.view.Recovery:
		l.recover = 0
	case l.recover == 0:
		l.recover = r.now + r.cfg.Recovery
	}
}

// relinkUp finds out whom changes come from under the new view, and shows it where to begin.
func (r *Replica) relinkUp() {
	was := r.up
	r.up = upstream{again: was.again}
	if was.matched && mutant.On(mutant.OldTailCounts) {
		r.up.matched, r.up.verified = true, was.verified
	}
	switch {
	case r.place > 0:
		r.up.peer = r.view.Chain[r.place-1]
	case r.place < 0 && r.wanted && was.peer != (Member{}) && r.stopped == "":
		// Standing behind somebody who is still where one can stand: behind the tail, or behind another who joins.
		if at := r.view.Place(was.peer); at < 0 || at == len(r.view.Chain)-1 {
			r.up.peer = was.peer
		}
	}
	r.join = joining{}
	if r.up.peer == (Member{}) {
		return
	}
	r.up.heardAt, r.up.fresh = r.now, was.fresh
	if r.up.peer == was.peer {
		r.up.stage = was.stage
	}
	r.up.hello = true
}

// relinkDown finds out whom changes go to under the new view.
func (r *Replica) relinkDown() {
	was := r.down
	r.down = nil
	switch {
	case r.place >= 0 && r.place+1 < len(r.view.Chain):
		r.down = newLink(r.view.Chain[r.place+1], r.now)
	case was != nil && was.joins && r.view.Place(was.peer) < 0 && (r.place >= 0 || r.up.peer != (Member{})):
		r.down = newLink(was.peer, r.now) // the end is still where it was, and somebody joins there
		r.down.joins = true
	}
	if r.down != nil && was != nil && was.peer == r.down.peer {
		r.down.snap, r.down.wait = was.snap, was.wait
	}
}

// discard throws this copy away, after a view without it was committed, and makes it another member that has nothing.
func (r *Replica) discard() {
	again := r.stopped != "" // who was damaged comes back, who wanted to leave does not
	r.state.Self.Inc++
	r.store()
	r.out.Discard, r.out.Restore, r.out.Truncate = true, nil, false
	r.log.reset(Origin(r.cfg.Bucket))
	r.confirmed, r.delivered, r.unstored = 0, 0, 0
	r.stopped, r.leaving = "", false
	r.wanted = r.wanted && again
	r.up, r.down = upstream{again: r.up.again}, nil
}
