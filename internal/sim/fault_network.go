package sim

// networkKinds are the faults between machines. They count when a message has met them.
var networkKinds = []kind{
	{"one-way cut", func(w *world) bool { return w.cut("one-way cut", true) }},
	{"cut", func(w *world) bool { return w.cut("cut", false) }},
	{"machine isolated", func(w *world) bool {
		m := w.anyMachine()
		return w.cutBetween("machine isolated", []*machine{m}, w.except(m), w.between(100*ms, 6*second), false)
	}},
	{"machine hears and is not heard", func(w *world) bool {
		m := w.anyMachine()
		return w.cutBetween("machine hears and is not heard", []*machine{m}, w.except(m), w.between(100*ms, 6*second), true)
	}},
	{"machine is heard and does not hear", func(w *world) bool {
		m := w.anyMachine()
		return w.cutBetween("machine is heard and does not hear", w.except(m), []*machine{m}, w.between(100*ms, 6*second), true)
	}},
	{"machine hears late, then is not heard", (*world).congest},
	{"machine is not heard at all", func(w *world) bool {
		m := w.somePrimary()
		return m != nil && w.silence(m)
	}},
	{"machine is heard late", func(w *world) bool {
		m := w.somePrimary()
		if m == nil {
			return false
		}
		i := &impairment{kind: "machine is heard late", steady: w.between(300*ms, 3*second), until: w.now + w.between(second, 5*second)}
		w.tell("%v is heard %s late until %s", m, span(i.steady), stamp(i.until))
		for _, o := range w.except(m) {
			l := w.link(m, o)
			l.weak = append(l.weak, i)
		}
		return false
	}},
	{"network in two halves", func(w *world) bool {
		var a, b []*machine
		for _, m := range w.machines {
			if w.draw(2) == 0 {
				a = append(a, m)
			} else {
				b = append(b, m)
			}
		}
		return w.cutBetween("network in two halves", a, b, w.between(100*ms, 6*second), false)
	}},
	{"leader isolated", func(w *world) bool {
		p := w.leader()
		if p == nil {
			return false
		}
		return w.cutBetween("leader isolated", []*machine{p.m}, w.except(p.m), w.between(100*ms, 4*second), w.draw(2) == 0)
	}},
	{"link flaps", func(w *world) bool {
		a, b, ok := w.pair()
		if !ok {
			return false
		}
		for range 3 + w.draw(8) {
			w.after(w.between(0, 4*second), func() {
				if !w.healed {
					w.cutBetween("link flaps", []*machine{a}, []*machine{b}, w.between(10*ms, 300*ms), false)
				}
			})
		}
		return false
	}},
	{"link slow", func(w *world) bool {
		return w.weaken(impairment{kind: "link slow", delay: w.between(5*ms, 500*ms)})
	}},
	{"link far", func(w *world) bool {
		return w.weaken(impairment{kind: "link far", steady: w.between(100*ms, 900*ms)})
	}},
	{"link loses much", func(w *world) bool {
		return w.weaken(impairment{kind: "link loses much", loss: 0.2 + 0.7*w.rnd.Float64()})
	}},
	{"link loses the chain's messages", func(w *world) bool {
		return w.weaken(impairment{kind: "link loses the chain's messages", what: "chain", loss: 1})
	}},
	{"link loses Raft's messages", func(w *world) bool {
		return w.weaken(impairment{kind: "link loses Raft's messages", what: "raft", loss: 1})
	}},
	{"network slow", func(w *world) bool {
		i := &impairment{kind: "network slow", delay: w.between(10*ms, 400*ms), until: w.now + w.between(200*ms, 4*second)}
		w.tell("the network is slow until %s", stamp(i.until))
		for _, a := range w.machines {
			for _, b := range w.machines {
				l := w.link(a, b)
				l.weak = append(l.weak, i)
			}
		}
		return false
	}},
}

// silence has nobody hear a machine for a while, or only the leader not.
func (w *world) silence(m *machine) bool {
	deaf := w.except(m)
	if p := w.leader(); p != nil && p.m != m && w.draw(2) == 0 {
		deaf = []*machine{p.m}
	}
	return w.cutBetween("machine is not heard at all", []*machine{m}, deaf, w.between(second, 3*second), true)
}

// congest is a machine to which everything comes late, until nothing comes from it any more.
func (w *world) congest() bool {
	m := w.somePrimary()
	if m == nil {
		return false
	}
	good := w.between(300*ms, 1500*ms)
	i := &impairment{kind: "machine hears late, then is not heard", steady: w.between(100*ms, 700*ms), until: w.now + good + 2*second}
	w.tell("%v hears all %s late until %s", m, span(i.steady), stamp(i.until))
	for _, o := range w.except(m) {
		l := w.link(o, m)
		l.weak = append(l.weak, i)
	}
	w.after(good, func() {
		if !w.healed {
			w.silence(m)
		}
	})
	return false
}

func (w *world) anyMachine() *machine { return w.machines[w.draw(len(w.machines))] }

// except are all machines but one.
func (w *world) except(m *machine) []*machine {
	var list []*machine
	for _, o := range w.machines {
		if o != m {
			list = append(list, o)
		}
	}
	return list
}

func (w *world) pair() (a, b *machine, ok bool) {
	a, b = w.anyMachine(), w.anyMachine()
	return a, b, a != b
}

func (w *world) cut(kind string, oneWay bool) bool {
	a, b, ok := w.pair()
	return ok && w.cutBetween(kind, []*machine{a}, []*machine{b}, w.between(50*ms, 6*second), oneWay)
}

// cutBetween lets nothing pass for a while from some machines to others, and back. It counts itself.
func (w *world) cutBetween(kind string, from, to []*machine, d int64, oneWay bool) bool {
	i := &impairment{kind: kind}
	for _, a := range from {
		for _, b := range to {
			w.cutFor(i, a, b, d)
			if !oneWay {
				w.cutFor(i, b, a, d)
			}
		}
	}
	return false
}

// cutFor lets nothing pass for a while. After some time both ends notice that their route is gone.
func (w *world) cutFor(i *impairment, a, b *machine, d int64) {
	l := w.link(a, b)
	if l.cut != nil {
		return
	}
	w.tell("nothing passes from %v to %v for %s (%s)", a, b, span(d), i.kind)
	l.cut = i
	if w.draw(2) == 0 {
		notice := w.between(0, 2*d)
		if w.draw(2) == 0 { // as when a connection is reset: before any lease is over
			notice = w.between(0, 200*ms)
		}
		w.routeTold(a, b, false, notice)
		w.routeTold(b, a, false, notice)
	}
	w.after(d, func() {
		if l.cut == i {
			w.mend(a, b)
		}
	})
}

func (w *world) mend(a, b *machine) {
	l := w.link(a, b)
	if l.cut == nil {
		return
	}
	l.cut = nil
	if w.connected(a, b) {
		w.opened(a, b)
	}
}

// weaken makes a link bad for a while, one way or both.
func (w *world) weaken(i impairment) bool {
	a, b, ok := w.pair()
	if !ok {
		return false
	}
	i.until = w.now + w.between(100*ms, 5*second)
	w.tell("%s from %v to %v until %s", i.kind, a, b, stamp(i.until))
	there := w.link(a, b)
	there.weak = append(there.weak, &i)
	if w.draw(2) == 0 {
		back := w.link(b, a)
		back.weak = append(back.weak, &i)
	}
	return false
}

// quietNetwork ends all that is wrong with the network.
func (w *world) quietNetwork() {
	for _, a := range w.machines {
		for _, b := range w.machines {
			w.link(a, b).weak = nil
			if a != b {
				w.mend(a, b)
			}
		}
	}
}

// whole says whether messages pass on all links, and in time.
func (w *world) whole() bool {
	for i := range w.links {
		if l := &w.links[i]; l.cut != nil || l.isWeak(w) {
			return false
		}
	}
	return true
}
