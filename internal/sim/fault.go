package sim

import "math/rand/v2"

// kind is a fault that the driver causes. do says whether it has happened; a fault that counts only when it has an effect counts
// itself later, and says no.
type kind struct {
	name string
	do   func(w *world) bool
}

// allKinds are the faults that the driver causes.
func allKinds() []kind {
	var all []kind
	for _, list := range [][]kind{processKinds, networkKinds, trapKinds, diskKinds, clockKinds, operatorKinds, simpleKinds, clientKinds(), laneKinds()} {
		all = append(all, list...)
	}
	return all
}

// cause is one fault of a run, known by its index: the same recipe without some causes is the same otherwise, as far as it can be.
type cause struct {
	Index int
	Kind  string
	At    int64
}

// burstsFrom is the index of the first cause that is part of a burst.
const burstsFrom = 1_000_000

// trouble causes one fault after the other until it is over.
func (w *world) trouble(until int64) {
	if w.now >= until || len(w.mix.faults) == 0 {
		return
	}
	w.causes++
	w.cause(w.causes, w.mix.faults)
	w.after(w.between(ms, 2*w.mix.pause), func() { w.trouble(until) })
}

// cause lets the fault with an index happen. What it is and how it goes depends on the index alone, and on the state of things.
func (w *world) cause(index int, from []kind) {
	rnd := w.rnd
	w.rnd = rand.New(rand.NewPCG(w.seed, uint64(index)))
	defer func() { w.rnd = rnd }()
	k := from[w.draw(len(from))]
	if w.now < w.quiet || w.healed || w.recipe.without(k.name) || w.recipe.skips(index) {
		return
	}
	w.caused = append(w.caused, cause{index, k.name, w.now})
	w.tell("FAULT %d: %s", index, k.name)
	if k.do(w) {
		w.fault(k.name)
	}
}

// fault counts that something went wrong on purpose.
func (w *world) fault(kind string) { w.stats.Faults[kind]++ }

// burst follows a change of views: more goes wrong within milliseconds.
func (w *world) burst() {
	if !w.mix.bursts || w.healed || w.now < w.calm || w.now-w.began < 4*second || !w.chance(0.2) {
		return
	}
	w.calm = w.now + w.between(500*ms, 6*second)
	for range 2 {
		w.after(w.between(0, 6*ms), func() {
			if w.now >= w.began+w.mix.time {
				return
			}
			w.bursts++
			before := len(w.caused)
			w.cause(burstsFrom+w.bursts, sharpKinds)
			if len(w.caused) > before {
				w.fault("fault within milliseconds of a change of views")
			}
		})
	}
}

// sharpKinds are the faults of bursts.
var sharpKinds = []kind{
	{"process killed", killProcess},
	{"process killed", killPrimary},
	{"process killed at its next write", killAtWrite},
	{"machine stands still", (*world).standStill},
	{"machine crashed", (*world).crashMachine},
	{"goroutine stalled", (*world).stall},
	{"one-way cut", func(w *world) bool { return w.cut("one-way cut", true) }},
	{"cut", func(w *world) bool { return w.cut("cut", false) }},
	{"link slow", func(w *world) bool { return w.weaken(impairment{kind: "link slow", delay: w.between(5*ms, 500*ms)}) }},
	{"leadership transferred", (*world).transfer},
}

// heal ends all that goes wrong.
func (w *world) heal() {
	w.tell("everything is healed")
	w.healed = true
	w.quietNetwork()
	for _, m := range w.machines {
		m.slow, m.tear = 0, false // who stands still goes on by itself, so that nothing overtakes what waits for it
		m.down = false
		m.disk.files.room, m.disk.files.failing = -1, false
		if m.twin != nil {
			m.untwin()
		}
		if m.p == nil {
			m.restart(ms)
		}
	}
	w.undo()
	w.after(3*second, w.dismiss)
}

// someUp is any machine that is up; nil if there is none.
func (w *world) someUp() *machine {
	m := w.anyMachine()
	if m.p == nil {
		return nil
	}
	return m
}

// someServing is any machine whose node serves; nil if the one that was drawn does not.
func (w *world) someServing() *machine {
	if m := w.someUp(); m != nil && m.p.serving {
		return m
	}
	return nil
}
