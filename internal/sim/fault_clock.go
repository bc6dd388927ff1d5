package sim

// clockKinds are what happens to clocks while a cluster runs. That their rates differ from the start is drawn for the whole run.
var clockKinds = []kind{
	{"clock of the wall set", func(w *world) bool {
		w.anyMachine().skew += w.between(-100_000, 100_000)
		return true
	}},
	{"clock of the wall wrong by days", func(w *world) bool {
		w.anyMachine().skew += w.between(-400, 400) * 24 * 3600 * 1000
		return true
	}},
	{"clock's rate changed", func(w *world) bool {
		if !w.mix.skewed {
			return false
		}
		m := w.anyMachine()
		shown := m.clock()
		m.rate = w.mix.rate(w.rnd)
		m.offset = shown - int64(float64(w.now)*m.rate)
		return true
	}},
}

// countClocks counts the clocks that are wrong for the whole run.
func (w *world) countClocks() {
	for _, m := range w.machines {
		switch {
		case m.rate == 1:
		case w.mix.wild:
			w.fault("clock's rate beyond the promise")
		default:
			w.fault("clock's rate within the promise")
		}
	}
}
