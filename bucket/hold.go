package bucket

import (
	"bytes"
	"time"

	"github.com/opencluster/oclocks/internal/mutant"
	"github.com/opencluster/oclocks/subjects"
)

// crowd is the number of holders of one lock beyond which they are found by maps; it shrinks back at half of it.
const crowd = 16

// openLock finds or makes the lock at the cursor.
func (t *Table) openLock() *lock {
	if t.at.lock != 0 {
		return t.locks.at(t.at.lock)
	}
	id, l := t.locks.open(t.at.name)
	l.zone = t.at.zone.id
	t.at.lock = id
	t.at.zone.index.add(t.at.hash, id)
	t.at.zone.order.add(id)
	t.at.zone.locks++
	return l
}

// lockThere says whether a lock that was there earlier in this step still is. With the last lock goes the memory of all.
func (t *Table) lockThere(id uint32) bool { return id < t.locks.end() && t.locks.at(id).length > 0 }

// needMore gives a lock room for several holders and for waiters.
func (t *Table) needMore(l *lock) *shared {
	if l.more != 0 {
		return t.shares.at(l.more)
	}
	id, more := t.shares.take()
	l.more = id
	more.recheck = never
	if l.hold != 0 {
		more.holders = 1
		if t.holds.at(l.hold).is(holdRecall) {
			more.recalls = 1
		}
	}
	return more
}

// waiting is how many wait for a lock.
func (t *Table) waiting(l *lock) int {
	if l.more == 0 {
		return 0
	}
	return t.shares.at(l.more).waiting
}

// dropLock removes a lock that nobody holds or waits for any more.
func (t *Table) dropLock(id uint32) {
	l := t.locks.at(id)
	if l.hold != 0 || t.waiting(l) > 0 {
		return
	}
	if l.more != 0 {
		t.wheel.stop(timerOf(lockTimer, id))
		t.shares.release(l.more)
	}
	z := t.zones[l.zone]
	z.order.remove(id)
	hash := t.at.hash
	if t.at.lock == id {
		t.at.lock = 0
	} else {
		hash = t.hash(t.locks.name(l))
	}
	z.index.remove(hash, id)
	z.locks--
	t.locks.release(id)
}

// fits says whether a request is compatible with the holders of a lock.
func (t *Table) fits(l *lock, w *want) bool {
	switch {
	case l.hold == 0:
		return true
	case w.mode == subjects.Exclusive || w.mode != l.mode:
		return false
	case w.mode == subjects.Semaphore:
		more := t.shares.at(l.more)
		if mutant.On(mutant.SemaphoreMiscounts) {
			return more.holders < int(more.slots)
		}
		return uint64(more.taken)+uint64(w.take) <= uint64(more.slots)
	}
	return true
}

// agrees says whether a semaphore request has the number of slots that holders and waiters have agreed upon, if any.
func (t *Table) agrees(l *lock, w *want) bool {
	return w.mode != subjects.Semaphore || l.more == 0 || t.shares.at(l.more).slots == 0 || t.shares.at(l.more).slots == w.slots
}

// addHold makes a holder of who wants the lock at the cursor.
func (t *Table) addHold(w *want, sid uint32, token uint64, since int64) uint32 {
	l, lid := t.openLock(), t.at.lock
	id, h := t.holds.take()
	*h = hold{
		lock: lid, user: t.texts.take(w.user), holder: t.texts.take(w.holder), key: w.key, token: token, since: since, ttl: w.ttl,
	}
	h.timer.own[0] = uint8(w.kind)
	t.fillMore(h, w, sid)
	if w.mode != subjects.Exclusive {
		t.needMore(l).read = true
	}
	if l.hold == 0 {
		l.hold, l.mode = id, w.mode
	} else {
		more := t.needMore(l)
		h.prev = more.last
		if h.prev == 0 {
			h.prev = l.hold
		}
		t.holds.at(h.prev).next = id
		more.last = id
	}
	if l.more != 0 {
		t.countHold(l, h, id, w)
	}
	t.zones[l.zone].holds++
	if sid != 0 {
		t.bindHold(id, sid)
	}
	if t.primary {
		t.startHold(id, w)
	}
	return id
}

// fillMore gives a hold what few have.
func (t *Table) fillMore(h *hold, w *want, sid uint32) {
	if w.bits&wantRecall != 0 {
		h.mark(holdRecall)
	}
	if w.bits&wantGrace != 0 {
		h.mark(holdGrace)
	}
	enqueued := w.bits&wantEnqueue != 0 && sid != 0
	if w.take == 1 && w.bits&wantGrace == 0 && len(w.data) == 0 && !enqueued {
		return
	}
	more := t.extra(h)
	more.take, more.grace, more.data = w.take, w.grace, w.data
	if enqueued {
		more.request = w.request.number
	}
}

// extra gives a hold room for what few have.
func (t *Table) extra(h *hold) *holdMore {
	if h.more == 0 {
		id, more := t.extras.take()
		h.more = id
		more.take, more.parted, more.forced = 1, never, never
	}
	return t.extras.at(h.more)
}

func (t *Table) take(h *hold) uint32 {
	if h.more == 0 {
		return 1
	}
	return t.extras.at(h.more).take
}

// countHold counts a holder of a lock that can have several.
func (t *Table) countHold(l *lock, h *hold, id uint32, w *want) {
	more := t.shares.at(l.more)
	more.holders++
	if w.mode == subjects.Semaphore {
		more.slots = w.slots
		more.taken += w.take
	}
	if h.is(holdRecall) {
		more.recalls++
	}
	if more.byKey != nil {
		more.byKey[h.key], more.byToken[h.token] = id, id
	} else if more.holders > crowd {
		more.byKey, more.byToken = make(map[uint64]uint32), make(map[uint64]uint32)
		for each := l.hold; each != 0; each = t.holds.at(each).next {
			h := t.holds.at(each)
			more.byKey[h.key], more.byToken[h.token] = each, each
		}
	}
}

// startHold starts the clocks of a new hold.
func (t *Table) startHold(id uint32, w *want) {
	h := t.holds.at(id)
	h.limit = never
	if h.ttl > 0 {
		h.limit = t.after(h.ttl)
		t.wheel.set(timerOf(holdTimer, id))
	}
	if h.session != 0 && t.sessions.at(h.session).parted {
		t.partHold(id, t.sessions.at(h.session))
	}
	if w.mode != subjects.Exclusive {
		t.shares.at(t.locks.at(h.lock).more).lastRead = t.now.Boot
	}
}

// bindHold links a hold to its session.
func (t *Table) bindHold(id, sid uint32) {
	h, s := t.holds.at(id), t.sessions.at(sid)
	h.session, h.sprev = sid, s.holds.last
	if s.holds.last != 0 {
		t.holds.at(s.holds.last).snext = id
	} else {
		s.holds.first = id
	}
	s.holds.last = id
	if h.kind() == subjects.Connection {
		s.bound++
	} else {
		s.statics++
	}
	s.weight += weight(int(t.locks.at(h.lock).length))
	s.reckon(h.token, 1)
	t.armSession(sid)
}

// weight bounds the bytes that the end of a hold or a wait takes in a change, by the length of its lock's name.
func weight(length int) int { return length + 64 }

// reckon counts a hold in or out of what a keep-alive is told.
func (s *session) reckon(token uint64, by int) {
	s.count += by
	s.hash ^= subjects.TokenHash(token)
}

func (t *Table) unbindHold(h *hold) {
	s := t.sessions.at(h.session)
	if h.sprev != 0 {
		t.holds.at(h.sprev).snext = h.snext
	} else {
		s.holds.first = h.snext
	}
	if h.snext != 0 {
		t.holds.at(h.snext).sprev = h.sprev
	} else {
		s.holds.last = h.sprev
	}
	if h.kind() == subjects.Connection {
		s.bound--
	} else {
		s.statics--
	}
	s.weight -= weight(int(t.locks.at(h.lock).length))
	if !h.is(holdForced) {
		s.reckon(h.token, -1)
	}
	t.removeDormant(h.session)
}

// removeHold takes a holder away, and its lock if nobody is left.
func (t *Table) removeHold(id uint32) {
	h := t.holds.at(id)
	lid := h.lock
	l := t.locks.at(lid)
	t.wheel.stop(timerOf(holdTimer, id))
	if h.prev != 0 {
		t.holds.at(h.prev).next = h.next
	} else {
		l.hold = h.next
	}
	if h.next != 0 {
		t.holds.at(h.next).prev = h.prev
	}
	if l.more != 0 {
		if more := t.shares.at(l.more); more.last == id {
			more.last = h.prev
		}
		t.discountHold(l, h)
	}
	if h.session != 0 {
		t.unbindHold(h)
	}
	t.zones[l.zone].holds--
	t.texts.release(h.user)
	t.texts.release(h.holder)
	if h.more != 0 {
		t.extras.release(h.more)
	}
	t.holds.release(id)
	t.dropLock(lid)
}

func (t *Table) discountHold(l *lock, h *hold) {
	more := t.shares.at(l.more)
	more.holders--
	if more.last == l.hold {
		more.last = 0
	}
	if l.mode == subjects.Semaphore {
		more.taken -= t.take(h)
	}
	if h.is(holdRecall) {
		more.recalls--
	}
	if more.byKey != nil {
		delete(more.byKey, h.key)
		delete(more.byToken, h.token)
		if more.holders <= crowd/2 {
			more.byKey, more.byToken = nil, nil
		}
	}
	t.forgetSlots(l)
}

// forgetSlots ends the agreement on the number of slots with the last semaphore holder or waiter.
func (t *Table) forgetSlots(l *lock) {
	if more := t.shares.at(l.more); more.semaphores == 0 && (l.hold == 0 || l.mode != subjects.Semaphore) {
		more.slots = 0
	}
}

// holdByToken finds a holder of the lock at the cursor, 0 if there is none.
func (t *Table) holdByToken(token uint64) uint32 {
	l := t.lock()
	if l == nil {
		return 0
	}
	if l.more != 0 {
		if byToken := t.shares.at(l.more).byToken; byToken != nil {
			return byToken[token]
		}
	}
	id := l.hold
	for id != 0 && t.holds.at(id).token != token {
		id = t.holds.at(id).next
	}
	return id
}

// holdByKey finds a holder of the lock at the cursor, 0 if there is none.
func (t *Table) holdByKey(key uint64) uint32 {
	l := t.lock()
	if l == nil {
		return 0
	}
	if l.more != 0 {
		if byKey := t.shares.at(l.more).byKey; byKey != nil {
			return byKey[key]
		}
	}
	id := l.hold
	for id != 0 && t.holds.at(id).key != key {
		id = t.holds.at(id).next
	}
	return id
}

// restart begins a hold's time limit anew, and the lease of its session if it lives by that: who has the key has been
// told, or is about to be, that it may count from now.
func (t *Table) restart(id uint32) {
	h := t.holds.at(id)
	if h.ttl > 0 {
		h.limit = t.after(h.ttl)
	} else {
		h.limit = never
	}
	t.wheel.set(timerOf(holdTimer, id))
	if h.kind() == subjects.Connection {
		t.touch(h.session)
	}
}

// lease is what the holder may count on between two signs of life, 0 if its hold has no end.
func (t *Table) lease(kind subjects.Kind, ttl time.Duration, sid uint32) time.Duration {
	if kind == subjects.Connection {
		return t.sessions.at(sid).lease
	}
	return ttl
}

// sameData says whether a renew brings the data that the hold has.
func (t *Table) sameData(h *hold, data []byte) bool {
	return h.more != 0 && bytes.Equal(t.extras.at(h.more).data, data) || h.more == 0 && len(data) == 0
}
