package sim

import "github.com/opencluster/oclocks/conf/shared"

// kinds are the faults that the driver causes, one at a time.
var kinds = []kind{
	{"process killed", func(w *world) bool {
		m := w.someUp()
		if m == nil {
			return false
		}
		m.p.die("killed")
		m.restart(w.between(ms, 4*second))
		return true
	}},
	{"process killed at its next write", func(w *world) bool {
		m := w.someUp()
		if m == nil || m.tear {
			return false
		}
		m.tear = true
		gen := m.gen
		w.after(2*second, func() {
			if m.gen == gen {
				m.tear = false
			}
		})
		m.restart(w.between(2*second, 4*second))
		return true
	}},
	{"machine stands still", func(w *world) bool {
		m := w.someUp()
		if m == nil {
			return false
		}
		m.paused = w.now + w.between(50*ms, 4*second)
		w.tell("%v stands still for %s", m, span(m.paused-w.now))
		return true
	}},
	{"machine slow", func(w *world) bool {
		m := w.someUp()
		if m == nil {
			return false
		}
		m.slow = w.now + w.between(100*ms, 4*second)
		w.tell("%v is slow for %s", m, span(m.slow-w.now))
		return true
	}},
	{"goroutine stalled", func(w *world) bool {
		m := w.someUp()
		if m == nil || m.p.arb == nil {
			return false
		}
		actors := []*actor{m.p.arb.actor, m.p.desk.actor}
		for _, s := range m.p.shards {
			actors = append(actors, s.actor)
		}
		if m.p.reign != nil {
			actors = append(actors, m.p.reign.actor)
		}
		at := w.draw(len(actors))
		actors[at].stall = w.now + w.between(20*ms, 2*second)
		w.tell("goroutine %d of %v stalls for %s", at, m, span(actors[at].stall-w.now))
		return true
	}},
	{"one-way cut", func(w *world) bool { return w.cut(true) }},
	{"cut", func(w *world) bool { return w.cut(false) }},
	{"machine isolated", func(w *world) bool {
		m := w.machines[w.draw(len(w.machines))]
		d := w.between(100*ms, 6*second)
		for _, o := range w.machines {
			if o != m {
				w.cutFor(m, o, d)
				w.cutFor(o, m, d)
			}
		}
		return true
	}},
	{"all processes killed", func(w *world) bool {
		if w.draw(3) > 0 {
			return false
		}
		for _, m := range w.machines {
			if m.p != nil {
				m.p.die("killed with all others")
				m.restart(w.between(ms, 2*second))
			}
		}
		return true
	}},
	{"client killed", func(w *world) bool {
		if len(w.clients) == 0 {
			return false
		}
		c := w.clients[w.draw(len(w.clients))]
		for _, a := range c.asks { // order: each by itself
			a.gone = true
		}
		clear(c.asks)
		c.busy = 0
		return true
	}},
	{"client stands still", func(w *world) bool {
		if len(w.clients) == 0 {
			return false
		}
		w.clients[w.draw(len(w.clients))].paused = w.now + w.between(50*ms, 5*second)
		return true
	}},
	{"journal compacted by hand", func(w *world) bool {
		m := w.someUp()
		if m == nil || !m.p.serving || m.p.keeping.compacting {
			return false
		}
		m.p.compact()
		return true
	}},
}

// someUp is any machine that is up; nil if there is none.
func (w *world) someUp() *machine {
	m := w.machines[w.draw(len(w.machines))]
	if m.p == nil {
		return nil
	}
	return m
}

// trouble causes faults until it is over.
func (w *world) trouble(until int64) {
	if w.now >= until || len(w.mix.faults) == 0 {
		return
	}
	k := w.mix.faults[w.draw(len(w.mix.faults))]
	if w.now >= w.quiet && k.do(w) {
		w.fault(k.name)
	}
	w.after(w.between(ms, 2*w.mix.pause), func() { w.trouble(until) })
}

func (w *world) cut(oneWay bool) bool {
	a, b := w.machines[w.draw(len(w.machines))], w.machines[w.draw(len(w.machines))]
	if a == b {
		return false
	}
	d := w.between(50*ms, 6*second)
	w.cutFor(a, b, d)
	if !oneWay {
		w.cutFor(b, a, d)
	}
	return true
}

// cutFor lets nothing pass for a while. After some time both ends notice that their route is gone.
func (w *world) cutFor(a, b *machine, d int64) {
	link := [2]int{a.index, b.index}
	if w.cuts[link] {
		return
	}
	w.tell("nothing passes from %v to %v for %s", a, b, span(d))
	w.cuts[link] = true
	if w.draw(2) == 0 {
		notice := w.between(0, 2*d)
		w.routeTold(a, b, false, notice)
		w.routeTold(b, a, false, notice)
	}
	w.after(d, func() { w.mend(a, b) })
}

func (w *world) mend(a, b *machine) {
	link := [2]int{a.index, b.index}
	if !w.cuts[link] {
		return
	}
	delete(w.cuts, link)
	if w.connected(a, b) {
		w.opened(a, b)
	}
}

// heal ends all that goes wrong.
func (w *world) heal() {
	w.tell("everything is healed")
	w.healed = true
	for _, a := range w.machines {
		for _, b := range w.machines {
			if a != b && w.cuts[[2]int{a.index, b.index}] {
				w.mend(a, b)
			}
		}
		a.slow, a.tear = 0, false // who stands still goes on by itself, so that nothing overtakes what waits for it
		a.down = false
		if a.p == nil {
			a.restart(ms)
		}
	}
	w.undrain()
	w.after(3*second, w.dismiss)
}

// undrain gives every node its share again.
func (w *world) undrain() {
	if state := w.committed(); state != nil {
		for i := range state.Nodes {
			if n := &state.Nodes[i]; n.Drain {
				no := false
				w.command(shared.Command{Node: &shared.NodeEdit{Number: n.Number, Drain: &no}})
			}
		}
	}
}

// dismiss is an operator who ends the processes of nodes that were removed and do not know it, since they were cut off then.
func (w *world) dismiss() {
	state := w.committed()
	for _, m := range w.machines {
		if state != nil && m.p != nil && m.p.number != 0 && state.Node(m.p.number) == nil {
			w.stats.Zombies++
			m.p.die("it was removed, and has not heard of it")
			m.leaveCluster()
			m.restart(ms)
		}
	}
	w.after(5*second, w.dismiss)
}
