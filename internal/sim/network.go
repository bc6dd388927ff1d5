package sim

// send brings something from one machine to another, if the network and both processes live until then. What a process sends to
// itself takes the same way without the network's faults. It stands for the publishing through a route: what is on its way to a
// process that ends is lost, since the connection is.
func (w *world) send(from, to *machine, what string, do func(p *process)) {
	if to.p == nil || from.p == nil {
		return
	}
	gen := to.gen
	var arrive func()
	arrive = func() {
		switch p := to.p; {
		case p == nil || to.gen != gen:
		case to.paused > w.now:
			w.plan(to.paused+to.lag(), arrive)
		default:
			do(p)
		}
	}
	if from == to {
		w.after(w.between(us, 100*us), arrive)
		return
	}
	w.stats.Messages++
	if w.cuts[[2]int{from.index, to.index}] {
		w.fault("message lost in a cut")
		return
	}
	if !w.healed && w.chance(w.mix.loss) {
		w.fault("message lost")
		return
	}
	w.after(w.transit(from, to), arrive)
	if !w.healed && w.chance(w.mix.twice) {
		w.fault("message twice")
		w.after(w.transit(from, to)+w.between(0, 20*ms), arrive)
	}
}

// transit is how long a message takes.
func (w *world) transit(from, to *machine) int64 {
	d := w.between(50*us, 2*ms)
	if !w.healed {
		d = w.between(50*us, w.mix.delay)
		if w.chance(w.mix.late) {
			w.fault("message late")
			d += w.between(10*ms, 1500*ms)
		}
	}
	link := [2]int{from.index, to.index}
	at := w.now + d
	switch {
	case !w.mix.reorder || w.healed:
		at = max(at, w.lastTo[link])
		w.lastTo[link] = at
	case at < w.lastTo[link]:
		w.fault("message overtakes")
	default:
		w.lastTo[link] = at
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
	return !w.cuts[[2]int{a.index, b.index}] && !w.cuts[[2]int{b.index, a.index}]
}

// opened tells both ends that there is a route between them.
func (w *world) opened(a, b *machine) {
	w.routeTold(a, b, true, w.between(ms, 30*ms))
	w.routeTold(b, a, true, w.between(ms, 30*ms))
}

// routeTold tells a machine's process about the route to another one, some time later.
func (w *world) routeTold(m, about *machine, up bool, later int64) {
	p := m.p
	if p == nil {
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
