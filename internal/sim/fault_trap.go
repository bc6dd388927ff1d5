package sim

import "slices"

// Some mistakes show only if something goes wrong at one moment. The driver waits for these moments.

// moment is one of them.
type moment uint8

const (
	asksForView  moment = iota // a primary proposes a view
	getsLease                  // a node gets a lease that had none any more
	losesBuckets               // the leader proposes views that take a node's buckets, since its lease has ended
)

// trap is what the driver does when a moment comes, once.
type trap struct {
	moment moment
	until  int64
	do     func(p *process) bool // false: it waits for the next time
}

// maxTraps is how many there are at a time.
const maxTraps = 4

func (w *world) trap(m moment, until int64, do func(p *process) bool) bool {
	if len(w.traps) >= maxTraps {
		return false
	}
	w.traps = append(w.traps, trap{m, until, do})
	return false // it counts when it has had an effect
}

// moment tells that a moment has come.
func (w *world) moment(m moment, p *process) {
	if m == losesBuckets && w.mix.bursts && w.chance(0.2) && w.comesBack(p.m) {
		return
	}
	kept := w.traps[:0]
	for _, t := range w.traps {
		if w.now >= t.until || w.healed || t.moment == m && t.do(p) {
			continue
		}
		kept = append(kept, t)
	}
	clear(w.traps[len(kept):])
	w.traps = kept
}

// trapKinds are the faults that wait for a moment, or make one.
var trapKinds = []kind{
	// What it asks for comes when another one has been made primary.
	{"primary cut off as it asks for a view", func(w *world) bool {
		return w.trap(asksForView, w.now+6*second, func(p *process) bool {
			if p.reign != nil {
				return false // the leader's own proposals are in the log at once
			}
			later := w.between(0, ms)
			w.after(later, func() {
				if p.dead || w.healed {
					return
				}
				w.cutBetween("primary cut off as it asks for a view", []*machine{p.m}, w.except(p.m), w.between(800*ms, 2500*ms), false)
			})
			return true
		})
	}},
	// It hears of its lease, and not of the view that was decided before.
	{"machine cut off as it gets a lease again", func(w *world) bool {
		return w.trap(getsLease, w.now+6*second, func(p *process) bool {
			if p.reign != nil {
				return false
			}
			w.cutBetween("machine cut off as it gets a lease again", w.except(p.m), []*machine{p.m}, w.between(200*ms, 2*second), w.draw(2) == 0)
			return true
		})
	}},
	// It asks for a lease while its buckets are taken.
	{"machine comes back as its buckets are taken", func(w *world) bool {
		return w.trap(losesBuckets, w.now+6*second, func(p *process) bool { return w.comesBack(p.m) })
	}},
	{"primary silent until its buckets are taken", (*world).lapse},
}

// lapse silences a primary until its buckets are taken from it.
func (w *world) lapse() bool {
	const kind = "primary silent until its buckets are taken"
	m, p := w.somePrimary(), w.leader()
	if m == nil || p == nil || p.m == m {
		return false
	}
	w.cutBetween(kind, []*machine{m}, w.except(m), w.between(1000*ms, 2500*ms), false)
	return w.trap(losesBuckets, w.now+3*second, func(p *process) bool { return p.m == m && w.comesBack(p.m) })
}

// comesBack ends within milliseconds what cuts a machine off whose buckets are being taken, and says whether something does. It asks for a
// lease while that is decided, which may take a while; and what it has missed may come late.
func (w *world) comesBack(m *machine) bool {
	const kind = "machine comes back as its buckets are taken"
	cut := slices.ContainsFunc(w.except(m), func(o *machine) bool { return !w.connected(m, o) })
	leads := w.leader()
	if !cut || w.healed || w.now < w.quiet || w.recipe.without(kind) || leads == nil || leads.m == m {
		return false
	}
	if w.draw(4) > 0 {
		slow := &impairment{kind: kind, steady: w.between(2*ms, 60*ms), until: w.now + 400*ms}
		for _, o := range w.except(m) {
			if o != leads.m {
				there, here := w.link(leads.m, o), w.link(o, leads.m)
				there.weak, here.weak = append(there.weak, slow), append(here.weak, slow)
			}
		}
	}
	w.after(w.between(0, 10*ms), func() {
		if w.healed {
			return
		}
		w.tell("%v comes back", m)
		w.fault(kind)
		for _, o := range w.except(m) {
			w.mend(m, o)
			w.mend(o, m)
		}
	})
	late := &impairment{kind: kind, steady: w.between(20*ms, 450*ms), until: w.now + 1200*ms}
	w.after(w.between(0, 80*ms), func() {
		if w.healed {
			return
		}
		for _, o := range w.except(m) {
			in := w.link(o, m)
			in.weak = append(in.weak, late)
		}
	})
	return true
}
