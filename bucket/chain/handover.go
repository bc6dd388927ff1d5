package chain

import (
	"fmt"

	"github.com/opencluster/oclocks/internal/mutant"
)

// HandOver makes this primary give its place to another member of the chain, and stay in the chain behind it. New changes
// are taken until the successor has nearly everything; then Propose returns ErrHandOver for the time of a round trip, this
// copy seals itself, and Output.Propose names the successor. What waits for confirmation comes along and is answered by
// the successor. If the successor gets lost before that, an alert tells so and the primary stays what it is.
//
// Errors: ErrNotPrimary, ErrMember.
func (r *Replica) HandOver(to Member) error {
	switch {
	case !r.acting() || !r.lead.announced: // its table has to be promoted first
		return ErrNotPrimary
	case r.view.Place(to) < 1:
		return fmt.Errorf("%w in the chain: %v", ErrMember, to)
	}
	r.lead.handover, r.replan, r.dirty = to, true, true
	return nil
}

// handover takes the next step of a planned hand-over, and says whether nothing else may be planned.
func (r *Replica) handover() bool {
	l := r.lead
	if l.handover == (Member{}) {
		return false
	}
	good, _ := r.judge()
	at := -1
	for i, m := range good {
		if m == l.handover {
			at = i
		}
	}
	if at < 0 || l.yielding && r.now-l.yieldAt >= r.lim.Drop {
		// Not worth an alert: in a stop of all nodes this is how it goes, and who asked for it asks again.
		l.handover, l.yielding = Member{}, false
		return false
	}
	if !r.view.Counts(l.handover) {
		return false // first of all it has to become one who may take over
	}
	has, last := r.has(l.handover), r.log.last().Seq
	switch {
	case l.yielding:
	case last-has > r.lim.Lag:
		return false // perhaps another view is what it needs to catch up
	default:
		l.yielding, l.yieldAt = true, r.now
	}
	if has < last && !mutant.On(mutant.HandOverTooEarly) {
		return true
	}
	next := r.view.Clone()
	next.Chain = front(next.Chain, next.Place(l.handover))
	if mutant.On(mutant.SkipSeal) {
		l.yielding = false
	} else {
		r.Seal(r.view.Epoch)
	}
	r.propose(next)
	return true
}
