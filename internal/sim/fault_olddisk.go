package sim

import (
	"slices"

	"github.com/opencluster/oclocks/conf/shared"
)

// oldDisk puts back a copy that was made before the node's last registered start, while the others can tell: who may decide
// without it is there, and messages pass. What happens otherwise is named in broker/control, "What remains".
func (w *world) oldDisk() bool {
	return w.outdate("old disk", 1, func(m *machine, old disk) {
		w.stop(m, "an old disk is put in")
		m.disk = old
		m.restart(ms)
		w.quiet = w.now + 3*second
	})
}

// startWithOldDisk ends all processes at once. One node gets an old disk and is there first, with nobody to ask: its registration finds
// out. All others have everything that was decided, so none of that rests on what it has forgotten. One of them is late. A disk of a time
// when the node was the only voter would decide alone (seed 12000009532): with three voters then, the disk knows of two at least, since it
// may not know yet that the last change of membership is decided.
func (w *world) startWithOldDisk() bool {
	return w.outdate("whole cluster started with an old disk", 3, func(m *machine, old disk) {
		for _, o := range w.machines {
			w.stop(o, "killed with all others")
		}
		m.disk = old
		m.restart(ms)
		rest := w.except(m)
		late := w.draw(2 * len(rest)) // in half of the cases
		for i, o := range rest {
			d := w.between(5*ms, 500*ms)
			if i == late {
				d = w.between(2*second, 5*second)
			}
			o.restart(d)
		}
		w.quiet = w.now + 6*second
	})
}

// outdate copies the disk of a machine that is in step, and ends its process, so that another start is registered on the disk. After a
// while the copy is put in, if the others are in step then. It counts then. voters is of how many the machine must know when it is copied.
func (w *world) outdate(kind string, voters int, put func(m *machine, old disk)) bool {
	m := w.anyMachine()
	if w.mix.loss > 0 || w.mix.late > 0 || w.mix.jitter > 0 || m.twin != nil || m.p == nil || !m.p.serving || m.disk.empty() {
		return false
	}
	if len(m.p.arb.node.Status().Voters) < voters {
		return false
	}
	old := m.disk.clone()
	old.copied = m.gen
	w.tell("the disk of %v is copied", m)
	m.p.die("killed, so that its disk becomes older than it")
	m.restart(w.between(ms, 300*ms))
	tries := 10
	var step func()
	step = func() {
		if tries--; tries < 0 || w.healed || w.now >= w.began+w.mix.time {
			return
		}
		if w.now < w.quiet || !w.outdated(m, &old) || !w.spare(m) {
			w.after(w.between(300*ms, second), step)
			return
		}
		w.fault(kind)
		// What was copied since is of another branch of its history. The journal alone cannot be told from one of this branch (seed 3026).
		m.copies = slices.DeleteFunc(m.copies, func(c disk) bool { return c.copied > old.copied })
		put(m, old.clone())
	}
	w.after(w.between(second, 4*second), step)
	return false
}

// outdated says whether a copy of a machine's disk is older than its last registration, and all others are in step and can tell.
func (w *world) outdated(m *machine, old *disk) bool {
	state := w.committed()
	if state == nil || !w.whole() {
		return false
	}
	n := state.NodeByID(m.id)
	if n == nil || n.Raft != m.disk.raft || old.raft != n.Raft || old.starts.Known == n.Start || slices.Contains(old.starts.Since, n.Start) {
		return false
	}
	index, term := m.disk.lastEntry()
	return !slices.ContainsFunc(w.machines, func(o *machine) bool {
		i, t := o.disk.lastEntry() // an entry of a term that has just begun is no change, and decided all the same (seed 9010000939)
		return !o.inStep(state) || i != index || t != term
	})
}

// inStep says whether nothing is wrong with a machine and it has applied everything.
func (m *machine) inStep(state *shared.State) bool {
	return m.p != nil && m.p.serving && m.paused <= m.w.now && m.slow <= m.w.now && !m.boots && !m.tear && m.twin == nil &&
		m.p.shared().Change == state.Change && m.disk.files.room < 0 && !m.disk.files.failing
}

// lastEntry is the end of Raft's log on a disk.
func (d *disk) lastEntry() (index, term uint64) {
	if n := len(d.start.Entries); n > 0 {
		return d.start.Entries[n-1].GetIndex(), d.start.Entries[n-1].GetTerm()
	}
	meta := d.start.Snapshot.GetMetadata()
	return meta.GetIndex(), meta.GetTerm()
}
