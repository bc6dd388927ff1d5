package sim

// Some mistakes show only if something goes wrong at one moment. The driver waits for these moments.

// moment is one of them.
type moment uint8

const (
	asksForView moment = iota // a primary proposes a view
	getsLease                 // a node gets a lease that had none any more
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
	{"leader slow to commit when a lease ends", (*world).lapse},
}

// lapse silences a primary until its lease is about over, while what the leader decides takes its time. It asks for the next lease
// while its buckets are taken from it, and what comes to it comes late: the lease, and later what it has missed meanwhile.
func (w *world) lapse() bool {
	m, p := w.somePrimary(), w.leader()
	if m == nil || p == nil || p.m == m {
		return false
	}
	const kind = "leader slow to commit when a lease ends"
	alone := w.between(700*ms, 1100*ms)
	w.cutBetween(kind, []*machine{m}, w.except(m), alone, false)
	slow := &impairment{kind: kind, steady: w.between(20*ms, 140*ms), until: w.now + alone + 400*ms}
	late := &impairment{kind: kind, steady: w.between(80*ms, 300*ms), until: w.now + alone + second}
	w.after(alone-w.between(50*ms, 250*ms), func() {
		if w.healed {
			return
		}
		w.set("balance changed", "balance", "true", "false") // something to miss
		for _, o := range w.except(m) {
			in := w.link(o, m)
			in.weak = append(in.weak, late)
			if o != p.m {
				there, here := w.link(p.m, o), w.link(o, p.m)
				there.weak, here.weak = append(there.weak, slow), append(here.weak, slow)
			}
		}
	})
	return false
}
