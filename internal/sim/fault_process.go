package sim

import "github.com/opencluster/oclocks/bucket/chain"

// processKinds are the faults of processes and of whole machines.
var processKinds = []kind{
	{"process killed", killProcess},
	{"primary killed", killPrimary},
	{"primary killed in a recovery", (*world).killRecovering},
	{"process killed at its next write", killAtWrite},
	{"all processes killed", func(w *world) bool {
		if w.draw(3) > 0 {
			return false
		}
		for _, m := range w.machines {
			w.stop(m, "killed with all others")
			m.restart(w.between(ms, 2*second))
		}
		return true
	}},
	{"process killed again and again", func(w *world) bool {
		m := w.anyMachine()
		at := w.now
		for range 3 + w.draw(4) {
			at += w.between(20*ms, 900*ms)
			w.plan(at, func() {
				if m.p != nil && !w.healed {
					w.fault("process killed again and again")
					m.p.die("killed again")
					m.restart(w.between(ms, 100*ms))
				}
			})
		}
		return false
	}},
	{"rolling restart", (*world).rollingRestart},
	{"machine stands still", (*world).standStill},
	{"machine slow", func(w *world) bool {
		m := w.someUp()
		if m == nil {
			return false
		}
		m.slow = w.now + w.between(100*ms, 4*second)
		w.tell("%v is slow for %s", m, span(m.slow-w.now))
		return true
	}},
	{"goroutine stalled", (*world).stall},
	{"machine crashed", (*world).crashMachine},
	{"all machines crashed", func(w *world) bool {
		if w.draw(6) > 0 {
			return false
		}
		for _, m := range w.machines {
			w.crash(m)
		}
		return true
	}},
}

func killProcess(w *world) bool {
	m := w.someUp()
	if m == nil {
		return false
	}
	m.p.die("killed")
	m.restart(w.between(ms, 4*second))
	return true
}

// killPrimary kills the process that is primary of some bucket.
func killPrimary(w *world) bool {
	state := w.committed()
	if state == nil || len(state.Views) == 0 {
		return false
	}
	return w.killPrimaryOf(&state.Views[w.draw(len(state.Views))])
}

func (w *world) killPrimaryOf(v *chain.View) bool {
	m := w.byNumber(v.Primary().Node)
	if m == nil {
		return false
	}
	m.p.die("killed as a primary")
	m.restart(w.between(ms, 4*second))
	return true
}

// killRecovering kills the primary of a bucket that recovers, soon after another copy has what it has. It waits for that.
func (w *world) killRecovering() bool {
	const kind = "primary killed in a recovery"
	until := w.now + 5*second
	var look func()
	look = func() {
		state := w.committed()
		if state == nil || w.healed || w.now > until {
			return
		}
		for i := range state.Views {
			if v := &state.Views[i]; v.Recovery && v.InSync > 1 && w.killPrimaryOf(v) {
				w.fault(kind)
				return
			}
		}
		w.after(w.between(20*ms, 200*ms), look)
	}
	look()
	return false
}

// somePrimary is the machine of a primary; nil if the one that was drawn is down.
func (w *world) somePrimary() *machine {
	state := w.committed()
	if state == nil || len(state.Views) == 0 {
		return nil
	}
	return w.byNumber(state.Views[w.draw(len(state.Views))].Primary().Node)
}

// killAtWrite has a process die while it writes, or between storing and sending.
func killAtWrite(w *world) bool {
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
	return false // it counts when it has died: journal.go, disk.go
}

func (w *world) standStill() bool {
	m := w.someUp()
	if m == nil {
		return false
	}
	m.paused = max(m.paused, w.now+w.between(50*ms, 4*second))
	w.tell("%v stands still for %s", m, span(m.paused-w.now))
	return true
}

// stall lets one goroutine of a process wait for a processor. It counts when the goroutine had something to do.
func (w *world) stall() bool {
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
	actors[at].stall, actors[at].stalled = w.now+w.between(20*ms, 2*second), false
	w.tell("%s of %v stalls for %s", actors[at].name, m, span(actors[at].stall-w.now))
	return false
}

// rollingRestart ends one node after the other in an orderly way, as an upgrade does, or kills them.
func (w *world) rollingRestart() bool {
	orderly := w.draw(3) > 0
	pause := w.between(300*ms, 3*second)
	upgrade := w.draw(2) == 0
	for i, m := range w.machines {
		w.after(int64(i)*pause, func() {
			if w.healed || m.p == nil || !m.p.serving || m.p.leaving != nil {
				return
			}
			w.fault("node restarted in its turn")
			if upgrade && m.program() < laterLevel {
				w.fault("program upgraded in its turn")
				m.level = laterLevel // the process that runs is of the one before
			}
			if orderly {
				m.p.leave()
				return
			}
			m.p.die("killed in its turn")
			m.restart(w.between(10*ms, 300*ms))
		})
	}
	return true
}

// crashMachine takes what was not synced, and the boot-time clock begins anew.
func (w *world) crashMachine() bool {
	w.crash(w.anyMachine())
	return true
}

func (w *world) crash(m *machine) {
	w.stop(m, "its machine crashes")
	if m.disk.files.crash() {
		w.fault("records lost with the machine")
	}
	m.boots0++
	m.offset = w.between(second, 30*second) - int64(float64(w.now)*m.rate)
	w.fault("boot-time clock began anew")
	m.restart(w.between(100*ms, 5*second))
}

// stop ends a machine's process, if it has one.
func (w *world) stop(m *machine, why string) {
	if m.p != nil {
		m.p.die(why)
	}
}
