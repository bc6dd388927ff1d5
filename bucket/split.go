package bucket

import (
	"fmt"

	"github.com/opencluster/oclocks/internal/mutant"
	"github.com/opencluster/oclocks/subjects"
)

// When the number of buckets is doubled from n to 2n, bucket b keeps the names whose index has b in its lower bits, and
// gives the others to bucket b + n. That is one change of the table, like any other: who applied it has the same table
// left, and the same other table to begin the new bucket with.
//
// The other table has everything of its names, and a copy of what belongs to no name: sessions, the ring of ended holds, the
// counters. So a session goes on in both, an outcome is remembered where its name is, and the first token there is higher
// than any that the names had here, because its primary begins with a higher term.

// Bucket is the number of this one.
func (t *Table) Bucket() uint32 { return t.cfg.Bucket }

// Buckets is how many buckets there are, as far as this table knows: names that belong to another one by that are not here.
func (t *Table) Buckets() uint32 { return t.buckets }

// Born is how many there were when this bucket began; 0 before its first change.
func (t *Table) Born() uint32 { return t.born }

// split gives half of the names away.
func (t *Table) split(in *Input) {
	if in.Buckets == 2*t.buckets {
		t.do(&op{code: opSplit, number: uint64(in.Buckets)})
	}
}

// applySplit makes two tables of one.
func (t *Table) applySplit(o *op) bool {
	count := uint32(o.number)
	if t.buckets == 0 || o.number != 2*uint64(t.buckets) || t.cfg.Bucket >= t.buckets {
		return false
	}
	cfg := t.cfg
	cfg.Bucket, cfg.Buckets = t.cfg.Bucket+t.buckets, count
	other := New(cfg)
	if err := other.Restore(t.AppendSnapshot(nil)); err != nil {
		t.broken = fmt.Errorf("%w: split: %w", ErrBroken, err)
		return false
	}
	for _, half := range []*Table{t, other} {
		half.buckets = count
		if half == t && mutant.On(mutant.SplitKeepsBoth) {
			continue
		}
		half.keepOwn()
	}
	other.seq, other.epoch, other.born = 0, 0, count
	t.out.Other = other
	return true
}

// keepOwn forgets every name that belongs to another bucket, and the requests about it.
func (t *Table) keepOwn() {
	own := func(index uint64) bool { return uint32(index)&(t.buckets-1) == t.cfg.Bucket }
	for id := uint32(1); id < t.locks.end(); id++ {
		if t.lockThere(id) && !own(subjects.Index(t.locks.name(t.locks.at(id)))) {
			t.forgetLock(id)
		} else if t.lockThere(id) && mutant.On(mutant.SplitForgetsQueue) {
			t.forgetQueue(id)
		}
	}
	for _, z := range t.zones {
		t.atZone(z.name)
		t.keepOutcomes(z.finished.first, own)
		for _, sid := range z.sessions { // order: each is by itself
			t.keepOutcomes(t.sessions.at(sid).finished.first, own)
		}
	}
	t.at = cursor{}
}

// forgetLock takes a lock away with everybody who holds it or waits for it, and tells nobody.
func (t *Table) forgetLock(id uint32) {
	t.forgetQueue(id)
	for t.lockThere(id) && t.locks.at(id).hold != 0 {
		t.removeHold(t.locks.at(id).hold)
	}
	if t.lockThere(id) {
		t.dropLock(id)
	}
}

// forgetQueue takes away who waits for a lock.
func (t *Table) forgetQueue(id uint32) {
	t.at = cursor{}
	t.atLock(id)
	l := t.locks.at(id)
	if l.more == 0 {
		return
	}
	more := t.shares.at(l.more)
	for wid := more.first; wid != 0; wid = more.first {
		t.detach(t.waiters.at(wid))
		t.removeWaiter(wid)
	}
}

// keepOutcomes forgets outcomes about names that belong elsewhere. One that is about no name stays in both halves.
func (t *Table) keepOutcomes(id uint32, own func(index uint64) bool) {
	for id != 0 {
		e := t.entries.at(id)
		next := e.next
		if e.name != 0 && (!own(e.name) || mutant.On(mutant.SplitForgetsOutcomes)) {
			t.closeEntry(id)
		}
		id = next
	}
}
