package chain

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/opencluster/oclocks/internal/mutant"
)

// Report is what a sealed copy tells the control plane.
type Report struct {
	Member    Member
	Epoch     uint64 // sealed for this epoch and all before it
	Last      Point  // the end of its history
	Confirmed uint64 // it knows that this much was confirmed; more may have been
	Failed    bool   // it has found itself damaged and must not be primary
}

// Takeover gives the view that follows old when its primary is to be replaced without asking it. The reports come from
// members that are sealed for old's epoch; which ones were asked is the control plane's business.
//
// The caller must know that the primary of old answers nothing any more: its node's lease has ended, or it is among the
// reports. The new primary is the member of the old in-sync set with the newest history (of equals the first in the chain).
// With First and All, who did not report is left out. With Majority the in-sync set stays what it is, since only the new
// primary will know which half of it has what was answered.
//
// ErrTooFewSealed comes back if the reports do not prove what was answered: seal more members, or give up the in-sync set
// with [Recover].
func Takeover(old View, acks Acks, reports []Report) (View, error) {
	if err := old.Validate(); err != nil {
		return View{}, err
	}
	sound := usable(old, reports)
	var counted []Report
	members := old.Members()
	if mutant.On(mutant.TakeoverOutOfSync) {
		members = old.Chain
	}
	for _, m := range members {
		if i := slices.IndexFunc(sound, func(r Report) bool { return r.of(m) }); i >= 0 {
			counted = append(counted, sound[i])
		}
	}
	if need := acks.seals(old.InSync); len(counted) < need {
		return View{}, fmt.Errorf("%w: %d of the in-sync set, %d are needed", ErrTooFewSealed, len(counted), need)
	}
	newestFirst(counted)
	next := View{Epoch: old.Epoch + 1, Recovery: old.Recovery && !mutant.On(mutant.RecoveryEndsByTakeover)}
	for _, r := range counted {
		next.Chain = append(next.Chain, r.Member)
	}
	if acks == Majority {
		next.add(old.Members()...)
	}
	next.InSync = len(next.Chain)
	if acks == First {
		next.InSync = 1 // there were at most two, and one is being replaced; whoever else reported is confirmed anew
	}
	for _, m := range old.Chain {
		if slices.ContainsFunc(sound, func(r Report) bool { return r.Member == m }) {
			next.add(m)
		}
	}
	return next, nil
}

// Recover gives the view that follows old when too few of its in-sync set are left for a Takeover: whoever has the newest
// history goes on with it alone, and the view has the recovery flag. The caller must know that no lease of a member of the
// in-sync set is left. ErrNoCopy comes back if nobody reported: the view has to stay.
func Recover(old View, reports []Report) (View, error) {
	if err := old.Validate(); err != nil {
		return View{}, err
	}
	sound := usable(old, reports)
	if len(sound) == 0 {
		return View{}, ErrNoCopy
	}
	newestFirst(sound)
	next := View{Epoch: old.Epoch + 1, InSync: 1, Recovery: true}
	for _, r := range sound {
		next.add(r.Member)
	}
	return next, nil
}

// of says whether the report is that member's.
func (r *Report) of(m Member) bool {
	return r.Member == m || r.Member.Node == m.Node && mutant.On(mutant.TakeoverEmptyNode)
}

// usable are the reports that may be used to follow old, in the order of its chain, others behind.
func usable(old View, reports []Report) []Report {
	var out []Report
	for _, r := range reports {
		if !r.Failed && r.Epoch >= old.Epoch && r.Member.Node != 0 {
			out = append(out, r)
		}
	}
	place := func(r Report) int {
		if at := old.Place(r.Member); at >= 0 {
			return at
		}
		return len(old.Chain)
	}
	slices.SortStableFunc(out, func(a, b Report) int { return cmp.Compare(place(a), place(b)) })
	return out
}

func newestFirst(reports []Report) {
	slices.SortStableFunc(reports, func(a, b Report) int {
		switch {
		case a.Last.Newer(b.Last):
			return -1
		case b.Last.Newer(a.Last):
			return 1
		}
		return 0
	})
}

// add appends those whose node is not in the chain yet, as long as there is room.
func (v *View) add(members ...Member) {
	for _, m := range members {
		known := slices.ContainsFunc(v.Chain, func(o Member) bool { return o.Node == m.Node })
		if !known && len(v.Chain) < MaxChain {
			v.Chain = append(v.Chain, m)
		}
	}
}
