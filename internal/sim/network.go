package sim

import "slices"

// maxMachines is how many there may be.
const maxMachines = 8

// link is the way from one machine to another.
type link struct {
	last int64       // when the newest message arrives
	cut  *impairment // nothing passes
	weak []*impairment
}

// impairment is what is wrong with a link. It counts as a fault once it has had an effect.
type impairment struct {
	kind   string
	what   string  // of which messages; "" of all
	loss   float64 // chance of one to be lost
	delay  int64   // the most that one takes longer
	steady int64   // and what each takes longer
	until  int64
	hit    bool
}

func (i *impairment) strikes(w *world) {
	if !i.hit {
		i.hit = true
		w.fault(i.kind)
	}
}

func (w *world) link(from, to *machine) *link { return &w.links[from.index*maxMachines+to.index] }

// send brings something from one machine to another, if the network and both processes live until then. What a process sends to
// itself takes the same way without the network's faults. It stands for the publishing through a route: what is on its way to a
// process that ends is lost, since the connection is.
func (w *world) send(from, to *machine, what string, do func(p *process)) {
	if to.p == nil || from.p == nil {
		return
	}
	arrival := &parcel{to: to, gen: to.gen, do: do}
	if from == to {
		w.bring(w.between(us, 100*us), arrival)
		return
	}
	w.stats.Messages++
	l := w.link(from, to)
	if l.cut != nil {
		l.cut.strikes(w)
		w.fault("message lost in a cut")
		return
	}
	late, passes := l.weakness(w, what)
	if !passes {
		w.fault("message lost in a weak link")
		return
	}
	if !w.healed && w.chance(w.mix.loss) {
		w.fault("message lost")
		return
	}
	w.bring(w.transit(l)+late, arrival)
	if !w.healed && w.chance(w.mix.twice) {
		w.fault("message twice")
		w.bring(w.transit(l)+w.between(0, 20*ms), arrival)
	}
}

// parcel is something on its way to a process.
type parcel struct {
	to  *machine
	gen int // of the process that it is meant for
	do  func(p *process)
}

func (w *world) bring(d int64, a *parcel) {
	w.order++
	w.agenda.push(event{at: max(w.now+d, w.now), order: w.order, turn: a})
}

// act is the arrival, which waits for a machine that stands still.
func (a *parcel) act() {
	w := a.to.w
	switch p := a.to.p; {
	case p == nil || a.to.gen != a.gen:
	case a.to.paused > w.now:
		w.bring(a.to.paused+a.to.lag()-w.now, a)
	default:
		a.do(p)
	}
}

// isWeak says whether messages are lost or late on a link.
func (l *link) isWeak(w *world) bool {
	l.weak = slices.DeleteFunc(l.weak, func(i *impairment) bool { return i.until <= w.now })
	return len(l.weak) > 0
}

// weakness is what the weak places of a link do to a message.
func (l *link) weakness(w *world, what string) (late int64, passes bool) {
	if !l.isWeak(w) {
		return 0, true
	}
	for _, i := range l.weak {
		if i.what != "" && i.what != what {
			continue
		}
		if w.chance(i.loss) {
			i.strikes(w)
			return 0, false
		}
		if i.delay > 0 || i.steady > 0 {
			i.strikes(w)
			late += i.steady + w.between(0, i.delay)
		}
	}
	return late, true
}

// transit is how long a message takes.
func (w *world) transit(l *link) int64 {
	d := w.between(50*us, 2*ms)
	if !w.healed {
		d = w.between(50*us, w.mix.delay)
		if w.chance(w.mix.late) {
			w.fault("message late")
			d += w.between(10*ms, 1500*ms)
		}
	}
	at := w.now + d
	switch {
	case !w.mix.reorder || w.healed:
		at = max(at, l.last)
		l.last = at
	case at < l.last:
		w.fault("message overtakes")
	default:
		l.last = at
	}
	return at - w.now
}

// others calls for every other machine that is up.
func (m *machine) others(do func(o *machine)) {
	for _, o := range m.w.machines {
		if o != m && o.p != nil {
			do(o)
		}
	}
}

// connected says whether messages pass both ways.
func (w *world) connected(a, b *machine) bool {
	return w.link(a, b).cut == nil && w.link(b, a).cut == nil
}

// opened tells both ends that there is a route between them.
func (w *world) opened(a, b *machine) {
	w.routeTold(a, b, true, w.between(ms, 30*ms))
	w.routeTold(b, a, true, w.between(ms, 30*ms))
}

// routeTold tells a machine's process about the route to another one, some time later. Routes to one that has another node's
// identifier are not told of: they are not those of that node.
func (w *world) routeTold(m, about *machine, up bool, later int64) {
	p := m.p
	if p == nil || about.twin != nil {
		return
	}
	id, gen := about.id, about.gen
	w.after(later, func() {
		if p.dead || up && (about.p == nil || about.gen != gen || !w.connected(m, about)) {
			return
		}
		if !up && about.gen == gen && about.p != nil && w.connected(m, about) {
			return // it is there again
		}
		if !up && p.gens[id] > gen {
			return // another process of it has come since
		}
		p.routeTold(id, gen, up)
	})
}
