package sim

import "slices"

// diskKinds take something from a disk, or put something else in.
var diskKinds = []kind{
	{"disk lost", func(w *world) bool {
		m := w.anyMachine()
		if !w.spare(m) {
			return false
		}
		w.stop(m, "its disk is lost")
		m.disk = newDisk(w)
		m.copies = nil
		m.restart(w.between(ms, 3*second))
		return true
	}},
	{"journal lost", func(w *world) bool {
		m := w.anyMachine()
		w.stop(m, "its journal is lost")
		m.disk.files, m.disk.flipped = newFiles(w), nil
		m.restart(w.between(ms, 3*second))
		return true
	}},
	{"in-sync set gone at once", (*world).loseInSync},
	{"disk copied", func(w *world) bool {
		m := w.anyMachine()
		if m.twin != nil || m.disk.empty() || len(m.copies) > 4 {
			return false
		}
		m.copyDisk()
		return true
	}},
	{"old journal", func(w *world) bool {
		m := w.anyMachine()
		i := slices.IndexFunc(m.copies, func(c disk) bool {
			return c.gen == c.copied && c.copied < m.disk.gen && c.files.lineage == m.disk.files.lineage
		})
		if m.twin != nil || i < 0 {
			return false // one process must have been registered before the copy was made, another one since: journal.Replay.Lacks
		}
		w.stop(m, "an old journal is put in")
		m.disk.files, m.disk.flipped = m.copies[i].files.clone(), nil
		m.restart(w.between(ms, 3*second))
		return false
	}},
	{"old disk", (*world).oldDisk},
	{"whole cluster started with an old disk", (*world).startWithOldDisk},
	{"disk full", func(w *world) bool {
		d := w.anyMachine().disk.files
		d.room = int64(w.draw(64 << 10))
		w.tell("a disk has room for %d bytes only", d.room)
		w.after(w.between(500*ms, 5*second), func() { d.room = -1 })
		return false
	}},
	{"fsync failed", func(w *world) bool {
		d := w.anyMachine().disk.files
		d.failing = true
		w.tell("a disk cannot be synced")
		w.after(w.between(500*ms, 3*second), func() { d.failing = false })
		return false
	}},
	{"bit flipped in a journal", func(w *world) bool { return w.flipAtRest("bit flipped in a journal", false) }},
	{"bit flipped in a snapshot on disk", func(w *world) bool { return w.flipAtRest("bit flipped in a snapshot on disk", true) }},
	{"bit flipped in a control store", func(w *world) bool {
		m := w.anyMachine()
		if m.disk.empty() || !w.spare(m) {
			return false
		}
		m.disk.spoiled = true
		w.stop(m, "to find a flipped bit in its control store")
		m.restart(w.between(ms, 3*second))
		return false
	}},
	{"journal of a newer version", func(w *world) bool {
		m := w.anyMachine()
		w.stop(m, "to go back to an older program")
		if !m.disk.files.version(2) {
			m.restart(ms)
			return false
		}
		m.restart(w.between(ms, 500*ms))
		return false
	}},
	{"another node's identifier", func(w *world) bool {
		m, victim, ok := w.pair()
		if !ok || m.twin != nil || victim.twin != nil || m.p == nil || !m.p.serving || victim.p == nil || !victim.p.serving || !w.spare(victim) {
			return false
		}
		w.stop(m, "it is started with the identifier of another node")
		own := m.disk
		m.twin, m.twinID = &own, m.id
		m.id, m.disk = victim.id, newDisk(w)
		m.restart(ms)
		w.after(w.between(500*ms, 4*second), m.untwin)
		return false // it counts when it was refused
	}},
}

// copyDisk makes a backup, which knows which process ran then.
func (m *machine) copyDisk() {
	c := m.disk.clone()
	c.copied = m.gen
	m.copies = append(m.copies, c)
}

// untwin gives a machine its own identifier and disk again.
func (m *machine) untwin() {
	if m.twin == nil {
		return
	}
	m.w.stop(m, "it gets its own identifier back")
	m.id, m.disk, m.twin = m.twinID, *m.twin, nil
	m.restart(ms)
}

// loseInSync crashes the machines of all that have what was answered in a bucket, within milliseconds; what comes after the last second
// before may be on no other machine, since the rest of the chain hears nothing any more. Journals may be lost.
func (w *world) loseInSync() bool {
	state := w.committed()
	if state == nil || len(state.Views) == 0 {
		return false
	}
	v := &state.Views[w.draw(len(state.Views))]
	var gone []*machine
	for _, member := range v.Members() {
		if m := w.byNumber(member.Node); m != nil {
			gone = append(gone, m)
		}
	}
	pause := w.between(200*ms, 800*ms)
	deaf := &impairment{kind: "the rest of a chain hears nothing", what: "chain", loss: 1, until: w.now + pause + 10*ms}
	lost := w.draw(3) // journals: none, one, all
	for i, m := range gone {
		for _, o := range w.machines {
			if !slices.Contains(gone, o) {
				l := w.link(m, o)
				l.weak = append(l.weak, deaf)
			}
		}
		w.after(pause+w.between(0, 8*ms), func() {
			if w.healed {
				return
			}
			w.crash(m)
			if lost == 2 || lost == 1 && i == 0 {
				m.disk.files, m.disk.flipped = newFiles(w), nil
			}
		})
	}
	return true
}

// flipAtRest flips a bit in some node's journal; mostly its process ends then and has to read it.
func (w *world) flipAtRest(kind string, snapshot bool) bool {
	m := w.anyMachine()
	if m.twin != nil || !m.disk.flipAtRest(w, kind, snapshot) {
		return false
	}
	if w.draw(3) > 0 {
		w.stop(m, "a bit has flipped in its journal")
		m.restart(w.between(ms, 2*second))
	}
	return false // it counts when it was found: journal.go
}

// spare says whether the group can do without what a machine has stored. While one node votes (a young cluster: docs/reliability.md) the
// machine may be on its way to be the second voter of two, and then it cannot (seed 12000012144).
func (w *world) spare(m *machine) bool {
	p := w.leader()
	if p == nil {
		return false
	}
	if w.now < w.spared {
		return false // what was lost before is not made good yet
	}
	voters := p.arb.node.Status().Voters
	if len(voters) == 1 {
		return false
	}
	intact, there := 0, 0
	for _, o := range w.machines {
		if slices.Contains(voters, o.disk.raft) && o.twin == nil {
			there++
			if o != m {
				intact++
			}
		}
	}
	if m.twin != nil || there < len(voters) || intact <= len(voters)/2 {
		return false
	}
	w.spared = w.now + 8*second
	return true
}
