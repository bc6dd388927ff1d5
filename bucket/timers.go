package bucket

import "github.com/opencluster/oclocks/subjects"

// A timer of the wheel is a kind and a number: of a hold, a waiter, a session, a lock, or a zone's number plus one.
const (
	holdTimer uint32 = iota
	waiterTimer
	sessionTimer
	lockTimer // the queue must be looked at again: a quiet time or the recovery is over
	zoneTimer // the oldest outcomes of requests without a session can be forgotten, or ended holds

	timerIDBits = 29
)

func timerOf(kind, id uint32) timer { return timer(kind<<timerIDBits | id) }

func (t timer) split() (kind, id uint32) { return uint32(t) >> timerIDBits, uint32(t) & maxRecords }

// timerNode is where the wheel keeps a timer.
func (t *Table) timerNode(which timer) *node {
	switch kind, id := which.split(); kind {
	case holdTimer:
		return &t.holds.at(id).timer
	case waiterTimer:
		return &t.waiters.at(id).timer
	case sessionTimer:
		return &t.sessions.at(id).timer
	case lockTimer:
		return &t.shares.at(t.locks.at(id).more).timer
	default:
		return &t.zones[id-1].timer
	}
}

// timerAt is the instant for which a timer is set. The timers of sessions and zones remember it, since what they wait for
// is put off all the time and they are only set again when it comes earlier.
func (t *Table) timerAt(which timer) int64 {
	switch kind, id := which.split(); kind {
	case holdTimer:
		return t.holdDue(t.holds.at(id))
	case waiterTimer:
		w := t.waiters.at(id)
		return min(w.deadline, w.parted)
	case sessionTimer:
		s := t.sessions.at(id)
		s.armed = t.sessionDue(s)
		return s.armed
	case lockTimer:
		return t.shares.at(t.locks.at(id).more).recheck
	default:
		z := t.zones[id-1]
		z.armed = t.zoneDue(z)
		return z.armed
	}
}

// due is when a hold ends by itself.
func (t *Table) holdDue(h *hold) int64 {
	if h.more == 0 {
		return h.limit
	}
	more := t.extras.at(h.more)
	return min(h.limit, more.parted, more.forced)
}

func (t *Table) zoneDue(z *zone) int64 {
	due := t.endsDue(z)
	if z.finished.first != 0 {
		due = min(due, later(t.entries.at(z.finished.first).at, requestKeep))
	}
	return due
}

// tick carries out one timer that is due, if there is one. Timers that were put off meanwhile go back.
func (t *Table) tick() {
	t.wheel.advance(t.now.Boot)
	for which := t.wheel.due(); which != 0; which = t.wheel.due() {
		if t.timerAt(which) > t.now.Boot {
			t.wheel.set(which)
			continue
		}
		t.fire(which)
		return
	}
}

func (t *Table) fire(which timer) {
	switch kind, id := which.split(); kind {
	case holdTimer:
		t.fireHold(id)
	case waiterTimer:
		t.fireWait(id)
	case sessionTimer:
		t.fireSession(id)
	case lockTimer:
		t.atLock(id)
		t.settle()
	default:
		t.fireZone(id)
	}
}

func (t *Table) fireZone(id uint32) {
	z := t.zones[id-1]
	z.armed = never
	t.atZone(z.name)
	if n := t.expired(z.finished); n > 0 {
		t.do(&op{code: opForget, number: uint64(n)})
	} else if t.endsDue(z) <= t.now.Boot { // last, since the memory of what was forgotten before goes with them
		t.do(&op{code: opForgetEnds, number: uint64(len(z.ended.ends) - t.cfg.Limits.Ended)})
	}
	t.wheel.set(timerOf(zoneTimer, id))
}

// fireHold ends a hold whose time is over.
func (t *Table) fireHold(id uint32) {
	h := t.holds.at(id)
	if h.more != 0 && t.extras.at(h.more).parted <= t.now.Boot && h.kind() == subjects.Connection {
		t.endHold(id, whyDisconnected)
		return
	}
	t.endHold(id, whyExpired)
}
