package sim

import (
	"slices"

	"github.com/opencluster/oclocks/arbiter/core"
	"github.com/opencluster/oclocks/conf/shared"
)

// The faults that take something from a disk, and what operators do.
func diskKinds() []kind {
	return []kind{
		{"machine crashed", (*world).crashMachine},
		{"disk lost", func(w *world) bool {
			m := w.machines[w.draw(len(w.machines))]
			if !w.spare(m) {
				return false
			}
			w.stop(m, "its disk is lost")
			m.disk = newDisk(w)
			m.copies = nil
			m.restart(w.between(ms, 3*second))
			return true
		}},
		{"disk copied", func(w *world) bool {
			m := w.machines[w.draw(len(w.machines))]
			if m.disk.empty() {
				return false
			}
			m.copies = append(m.copies, m.disk.clone())
			return true
		}},
		{"old disk", (*world).oldDisk},
		{"clock of the wall set", func(w *world) bool {
			w.machines[w.draw(len(w.machines))].skew += w.between(-100_000, 100_000)
			return true
		}},
		{"leadership transferred", func(w *world) bool {
			p := w.leader()
			if p == nil {
				return false
			}
			p.arb.call(second, func(id uint64) error {
				err := p.arb.node.Transfer(0)
				if err == nil {
					p.arb.end(id, outcome{})
				}
				return err
			}, func(outcome) {})
			return true
		}},
		{"node leaves and comes back", func(w *world) bool {
			m := w.someUp()
			if m == nil || !m.p.serving || m.p.leaving {
				return false
			}
			m.p.leave()
			return true
		}},
		{"buckets doubled", func(w *world) bool {
			state := w.committed()
			if state == nil || state.Buckets() == 0 || state.Buckets() > 8 || w.draw(3) > 0 {
				return false
			}
			return w.command(shared.Command{Double: &shared.Double{Buckets: state.Buckets()}})
		}},
		{"acks changed", func(w *world) bool {
			if w.mix.acks == "majority" {
				return false
			}
			return w.command(shared.Command{Set: &shared.Set{Settings: map[string]string{"acks": [...]string{"first", "all"}[w.draw(2)]}}})
		}},
		{"node drained or not", func(w *world) bool {
			n := w.someNode()
			if n == nil {
				return false
			}
			drain := !n.Drain
			return w.command(shared.Command{Node: &shared.NodeEdit{Number: n.Number, Drain: &drain}})
		}},
		{"bucket moved by hand", func(w *world) bool {
			n, state := w.someNode(), w.committed()
			if n == nil || state.Buckets() == 0 {
				return false
			}
			return w.command(shared.Command{Pin: &shared.Pin{Bucket: uint32(w.draw(int(state.Buckets()))), Number: n.Number}})
		}},
		{"node removed", func(w *world) bool {
			n := w.someNode()
			if n == nil || w.draw(3) > 0 {
				return false
			}
			m := w.byNumber(n.Number)
			if m == nil || m.disk.raft != n.Raft || !w.spare(m) {
				return false
			}
			return w.command(shared.Command{Remove: &shared.Remove{Number: n.Number}})
		}},
	}
}

// stop ends a machine's process, if it has one.
func (w *world) stop(m *machine, why string) {
	if m.p != nil {
		m.p.die(why)
	}
}

// crashMachine takes what was not synced, and the boot-time clock begins anew.
func (w *world) crashMachine() bool {
	m := w.machines[w.draw(len(w.machines))]
	w.stop(m, "its machine crashes")
	if m.disk.files.crash() {
		w.fault("records lost with the machine")
	}
	m.boot0++
	m.offset = w.between(second, 30*second) - int64(float64(w.now)*m.rate)
	m.restart(w.between(100*ms, 5*second))
	return true
}

// spare says whether the group can do without what a machine has stored.
func (w *world) spare(m *machine) bool {
	p := w.leader()
	if p == nil {
		return false
	}
	if w.now < w.spared {
		return false // what was lost before is not made good yet
	}
	voters := p.arb.node.Status().Voters
	intact, there := 0, 0
	for _, o := range w.machines {
		if slices.Contains(voters, o.disk.raft) {
			there++
			if o != m {
				intact++
			}
		}
	}
	if there < len(voters) || intact <= len(voters)/2 {
		return false
	}
	w.spared = w.now + 8*second
	return true
}

// leader is the process that leads, nil if there is none.
func (w *world) leader() *process {
	var found *process
	for _, m := range w.machines {
		if m.p != nil && m.p.reign != nil && m.p.arb.node.Leading() && (found == nil || m.p.reign.term > found.reign.term) {
			found = m.p
		}
	}
	return found
}

func (w *world) someNode() *shared.Node {
	state := w.committed()
	if state == nil || len(state.Nodes) == 0 {
		return nil
	}
	return &state.Nodes[w.draw(len(state.Nodes))]
}

// command is what an operator has any node do: Control.Change.
func (w *world) command(c shared.Command) bool {
	m := w.someUp()
	if m == nil || !m.p.serving {
		return false
	}
	m.p.arb.propose(2*second, c.Encode(), core.Condition{}, func(outcome) {})
	return true
}

// oldDisk puts back a copy that was made before the node's last registered start, while the others can tell: who may decide
// without it is there, and messages pass. What happens otherwise is named in broker/control, "What remains".
func (w *world) oldDisk() bool {
	m := w.machines[w.draw(len(w.machines))]
	state := w.committed()
	if state == nil || len(m.copies) == 0 || w.mix.loss > 0 || w.mix.late > 0 || w.mix.jitter > 0 || !w.spare(m) || len(w.cuts) > 0 {
		return false
	}
	n := state.NodeByID(m.id)
	if n == nil || n.Raft != m.disk.raft {
		return false
	}
	for _, o := range w.machines {
		if o != m && (o.p == nil || !o.p.serving || o.paused > w.now || o.slow > w.now || o.boots || o.tear) {
			return false
		}
	}
	at := w.draw(len(m.copies))
	old := m.copies[at]
	if old.raft != n.Raft || old.starts.Known == n.Start || slices.Contains(old.starts.Since, n.Start) {
		return false
	}
	w.stop(m, "an old disk is put in")
	m.disk = old.clone()
	m.copies = slices.Delete(m.copies, at, at+1)
	m.restart(ms)
	w.quiet = w.now + 3*second
	return true
}

// leave is Control.Leave and Daemon.stop: the node's buckets are handed over, then it goes, and comes back after a while.
func (p *process) leave() {
	p.leaving = true
	p.w.tell("%v leaves", p.m)
	until := p.m.clock() + 5*second // leaveTime
	var step func()
	step = func() {
		number := p.identity.Number
		if primaries(p.shared(), number) == 0 || p.m.clock() >= until {
			p.abdicate()
			return
		}
		for _, o := range p.w.machines {
			if o.p != nil && o.p.reign != nil && o.p.reign.listening() {
				p.w.send(p.m, o, "leaving", func(q *process) {
					if q.reign != nil {
						q.reign.leave(number)
					}
				})
			}
		}
		p.timer(250*ms, step)
	}
	step()
}

// abdicate is the end of Control.Leave.
func (p *process) abdicate() {
	if p.arb.node.Leading() {
		p.arb.call(second, func(id uint64) error {
			err := p.arb.node.Transfer(0)
			if err == nil {
				p.arb.end(id, outcome{})
			}
			return err
		}, func(outcome) {})
	}
	p.timer(300*ms, func() {
		if err := p.arb.identify(0); err != nil {
			p.w.fail("%v: %v", p.m, err)
		}
		id, start := p.m.id, p.start
		p.m.others(func(o *machine) {
			p.w.send(p.m, o, "away", func(q *process) { q.desk.farewell(id, start) })
		})
		p.timer(5*ms, func() {
			if err := p.keeping.Close(true); err != nil {
				p.m.disk.files.suffer(err)
			}
			p.die("stopped")
			p.m.restart(p.w.between(100*ms, 3*second))
		})
	})
}
