package plan

// leases is how far the planner is with leases that are longer than max_lease allows by now.
type leases struct {
	change uint64 // that made max_lease shorter
	since  int64  // when this leader saw it
	told   int64  // when Outlived was given last; 0: it was not
}

// outlive tells when no lease is out any more that is longer than max_lease: the argument is in conf/shared.
func (t *turn) outlive() {
	l := &t.leases
	if t.State.Shortened != l.change {
		*l = leases{change: t.State.Shortened, since: t.Now}
	}
	if l.change == 0 || t.wait(l.since+int64(t.State.Outlive())) {
		return
	}
	if l.told == 0 || t.Now >= l.told+t.cfg.Repeat {
		l.told, t.out.Outlived = t.Now, l.change
	}
	t.wake(l.told + t.cfg.Repeat)
}
