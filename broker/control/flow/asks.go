package flow

import (
	"slices"

	"github.com/opencluster/oclocks/bucket/chain"
)

// Ask is a view that is to be committed for a bucket, if the bucket's epoch is still the one before it.
type Ask struct {
	Bucket uint32
	View   chain.View
}

// Outcome is what became of an Ask in a command that was applied.
type Outcome struct {
	Bucket    uint32
	Taken     bool   // the view was committed
	Committed uint64 // the bucket's epoch after the command
}

// Asks collects views until they go into one command, and knows what becomes of them. At most one command is in flight;
// whatever comes meanwhile waits for the next one, so that many copies that want a view cost few commands.
//
// A copy asks for one view at a time and repeats the question. It may be told "refused" only when no copy of the question
// can be committed any more. Here is why [Asks.Done] may say so. A question has at most these copies: those in commands
// whose outcome was not known in time, and the one whose outcome has just come. A view of epoch e is committed only on top of
// e-1. If the bucket's epoch is e or more by now, no copy can be committed: the copy learns that by the view of epoch e that
// it is given, and needs no refusal. If it is e-1 still, the view was refused for what it says, and such a refusal is for
// ever: a view that cannot be one stays that, a node that was removed never comes back under its number, and a life that is
// over does not begin again. So an older copy that is applied later is refused too.
//
// A question whose outcome is not known is asked again, until it is.
type Asks struct {
	limit   int
	waiting map[uint32]chain.View
	order   []uint32 // of waiting
	flight  []Ask    // in the command that is on its way
}

// NewAsks has room for questions about as many buckets as limit says.
func NewAsks(limit int) *Asks { return &Asks{limit: limit, waiting: map[uint32]chain.View{}} }

// Add takes a question. A newer one about the same bucket replaces one that waits; one that is on its way already is not
// asked twice. It says false if there is no room; the copy asks again by itself.
func (a *Asks) Add(q Ask) bool {
	old, waits := a.waiting[q.Bucket]
	if waits && q.View.Epoch < old.Epoch {
		return true
	}
	if slices.ContainsFunc(a.flight, func(f Ask) bool { return f.Bucket == q.Bucket && equal(f.View, q.View) }) {
		if waits { // it has come back to what it asked before
			a.drop(func(bucket uint32) bool { return bucket == q.Bucket })
		}
		return true
	}
	if !waits {
		if len(a.order) >= a.limit {
			return false
		}
		a.order = append(a.order, q.Bucket)
	}
	a.waiting[q.Bucket] = q.View
	return true
}

// Take gives what goes into the next command, at most so many views with at most so many members in all of them (one view
// always goes); nothing while a command is in flight.
func (a *Asks) Take(views, members int) []Ask {
	if len(a.flight) > 0 {
		return nil
	}
	for _, bucket := range a.order[:min(views, len(a.order))] {
		view := a.waiting[bucket]
		members -= len(view.Chain)
		if len(a.flight) > 0 && members < 0 {
			break
		}
		a.flight = append(a.flight, Ask{bucket, view})
		delete(a.waiting, bucket)
	}
	a.order = slices.Delete(a.order, 0, len(a.flight))
	return slices.Clone(a.flight)
}

// Done takes the outcomes of the command in flight, and gives the questions that are refused for ever, if nothing else was
// asked about their bucket since.
func (a *Asks) Done(outcomes []Outcome) (refused []Ask) {
	byBucket := make(map[uint32]Outcome, len(outcomes))
	for _, o := range outcomes {
		byBucket[o.Bucket] = o
	}
	flight := a.flight
	a.flight = nil
	for _, q := range flight {
		o, known := byBucket[q.Bucket]
		_, asked := a.waiting[q.Bucket]
		switch {
		case asked:
		case !known:
			a.waiting[q.Bucket] = q.View
			a.order = append(a.order, q.Bucket)
		case !o.Taken && o.Committed < q.View.Epoch:
			refused = append(refused, q)
		}
	}
	a.drop(func(bucket uint32) bool {
		o, known := byBucket[bucket]
		return known && o.Committed >= a.waiting[bucket].Epoch
	})
	return refused
}

// Unknown says that the outcome of the command in flight is not known: everything in it is asked again, before the rest.
func (a *Asks) Unknown() {
	var again []uint32
	for _, q := range a.flight {
		if _, asked := a.waiting[q.Bucket]; !asked {
			a.waiting[q.Bucket] = q.View
			again = append(again, q.Bucket)
		}
	}
	a.flight = nil
	a.order = append(again, a.order...)
}

// Committed forgets what waits about a bucket whose epoch is so far by now.
func (a *Asks) Committed(bucket uint32, epoch uint64) {
	if view, waits := a.waiting[bucket]; waits && view.Epoch <= epoch {
		a.drop(func(b uint32) bool { return b == bucket })
	}
}

// Waiting is how many questions wait for a command.
func (a *Asks) Waiting() int { return len(a.order) }

// InFlight is how many questions are on their way.
func (a *Asks) InFlight() int { return len(a.flight) }

func (a *Asks) drop(gone func(bucket uint32) bool) {
	a.order = slices.DeleteFunc(a.order, func(bucket uint32) bool {
		if !gone(bucket) {
			return false
		}
		delete(a.waiting, bucket)
		return true
	})
}

func equal(a, b chain.View) bool {
	return a.Epoch == b.Epoch && a.InSync == b.InSync && a.Recovery == b.Recovery && slices.Equal(a.Chain, b.Chain)
}
