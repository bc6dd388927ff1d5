package bucket

import (
	"fmt"
	"slices"
	"strings"

	"github.com/opencluster/oclocks/internal/mutant"
	"github.com/opencluster/oclocks/subjects"
)

// Promote makes the table primary with a term that is higher than its own. Every lease, time limit, wait and quiet time
// begins anew and in full. Nothing is granted before recoverUntil, in nanoseconds of the boot clock: acquires that would
// not wait are refused until then, the others wait; 0 is at once.
//
// The change in out must be confirmed like that of a Step. Errors: ErrTerm, or ErrBroken for a table that is.
func (t *Table) Promote(now Now, term Term, recoverUntil int64, out *Output) error {
	if t.broken != nil {
		return t.broken
	}
	if term.Term <= t.term || term.Term > maxTerm || term.Counter > maxCounter {
		return fmt.Errorf("%w: %d.%d, the table is at %d", ErrTerm, term.Term, term.Counter, t.term)
	}
	t.begin(now, out)
	t.primary, t.stopping, t.recoverUntil = true, false, recoverUntil
	t.do(&op{code: opTerm, epoch: term.Epoch, term: term.Term, counter: term.Counter, number: uint64(t.buckets)})
	t.wheel.tick = max(t.wheel.tick, t.now.Boot/tickLength)
	t.restartSessions()
	t.restartHolds()
	t.restartWaiters()
	for _, z := range t.zones {
		t.restartEntries(z.finished)
		for z.finished.first != 0 && mutant.On(mutant.OutcomesNotReplicated) {
			t.atZone(z.name)
			t.do(&op{code: opForget, number: 1})
		}
		z.quiet = t.now.Boot
		t.wheel.set(timerOf(zoneTimer, z.id+1))
	}
	t.finish()
	return nil
}

// Demote makes the table a replica again: its timers stand still, and Apply takes the changes of another primary that
// follow what this table has. If it has changes that the others do not have, it must be thrown away instead.
func (t *Table) Demote() { t.primary = false }

// Recover puts off, or brings forward, the time before which nothing is granted, in nanoseconds of the boot clock; 0 ends
// it at once, and the next Tick grants what waits.
func (t *Table) Recover(now Now, until int64) {
	if !t.primary || until == t.recoverUntil {
		return
	}
	t.now.Boot = max(t.now.Boot, now.Boot)
	t.recoverUntil = until
	for id := uint32(1); id < t.locks.end(); id++ {
		if l := t.locks.at(id); l.more != 0 && t.shares.at(l.more).waiting > 0 {
			t.shares.at(l.more).recheck = max(t.now.Boot, until)
			t.wheel.set(timerOf(lockTimer, id))
		}
	}
}

// Primary says whether the table was promoted.
func (t *Table) Primary() bool { return t.primary }

func (t *Table) restartHolds() {
	for id := uint32(1); id < t.holds.end(); id++ {
		h := t.holds.at(id)
		if h.token == 0 {
			continue
		}
		h.limit = never
		if h.ttl > 0 {
			h.limit = t.after(h.ttl)
		}
		if h.ttl > 0 && mutant.On(mutant.ExpiryOnSecondary) {
			h.limit = t.after(max(h.ttl-t.heldFor(id), 0))
		}
		if h.more != 0 {
			more := t.extras.at(h.more)
			more.parted, more.forced = never, never
			if h.is(holdForced) {
				more.forced = t.forcedUntil(h)
			}
		}
		t.wheel.set(timerOf(holdTimer, id))
	}
}

func (t *Table) restartWaiters() {
	for id := uint32(1); id < t.waiters.end(); id++ {
		if w := t.waiters.at(id); w.ticket != 0 {
			w.deadline, w.parted = t.after(w.wait), never
			t.wheel.set(timerOf(waiterTimer, id))
		}
	}
	for id := uint32(1); id < t.locks.end(); id++ {
		l := t.locks.at(id)
		if l.more == 0 {
			continue
		}
		more := t.shares.at(l.more)
		more.lastRead, more.recheck = t.now.Boot, never
		if more.waiting > 0 {
			more.recheck = max(t.now.Boot, t.recoverUntil)
		}
		t.wheel.set(timerOf(lockTimer, id))
	}
}

func (t *Table) restartSessions() {
	for id := uint32(1); id < t.sessions.end(); id++ {
		s := t.sessions.at(id)
		if s.id == "" {
			continue
		}
		s.parted, s.beat, s.newer = false, 0, nil
		s.deadline = t.after(s.lease)
		if s.state == sessionEndedBy {
			s.deadline = t.after(s.tombstoneKeep())
		}
		t.restartEntries(s.finished)
		t.wheel.set(timerOf(sessionTimer, id))
	}
}

func (t *Table) restartEntries(l list) {
	for id := l.first; id != 0; id = t.entries.at(id).next {
		t.entries.at(id).at = t.now.Boot
	}
}

// stop lets the waiters leave that cannot wait for the daemon's restart.
func (t *Table) stop(in *Input) {
	t.stopping = true
	var leaving []uint32
	for id := uint32(1); id < t.waiters.end(); id++ {
		if w := t.waiters.at(id); w.ticket != 0 && (w.session == 0 || !in.KeepSessions) {
			leaving = append(leaving, id)
		}
	}
	slices.SortFunc(leaving, func(a, b uint32) int {
		v, w := t.waiters.at(a), t.waiters.at(b)
		if c := strings.Compare(t.zones[t.locks.at(v.lock).zone].name, t.zones[t.locks.at(w.lock).zone].name); c != 0 {
			return c
		}
		return int(int64(v.ticket) - int64(w.ticket))
	})
	// All of them first, or some would be granted what others give up.
	var locks []uint32
	for _, id := range leaving {
		w := t.waiters.at(id)
		lock := w.lock
		t.atLock(lock)
		t.leave(w.ticket, whyStopping)
		if t.lockThere(lock) {
			locks = append(locks, lock)
		}
	}
	for _, lock := range locks {
		if t.lockThere(lock) {
			t.atLock(lock)
			t.settle()
		}
	}
}

func (t *Table) reclaim(c *call) {
	if t.recovering() {
		t.refuse(c, t.inRecovery())
		return
	}
	t.refuse(c, &subjects.Refusal{Code: 503, Reason: subjects.ReasonUnavailable,
		Message: "the bucket is not in recovery, and only then can a lock be reclaimed; nothing was lost"})
}
