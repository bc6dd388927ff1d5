package bucket

import (
	"strings"
	"time"

	"github.com/opencluster/oclocks/internal/mutant"
	"github.com/opencluster/oclocks/subjects"
)

// The queue of a lock is one list in the order of tickets. Who may be granted past whom:
//
//   - an exclusive waiter with drain soft or timed stops the exclusive ones behind it, and nobody else;
//   - every other waiter that cannot be granted stops everybody behind it. Such waiters are called firm.
//
// So only two waiters can ever be next: the first of all, and the first firm one. The firm ones have a list of their own,
// and the queue is never searched.

// addWaiter appends a waiter to the queue of the lock at the cursor.
func (t *Table) addWaiter(w *want, sid uint32, ticket uint64, since int64) uint32 {
	l, lid := t.openLock(), t.at.lock
	more := t.needMore(l)
	id, waits := t.waiters.take()
	*waits = waiter{
		want: *w, lock: lid, prev: more.end, ticket: ticket, since: since, deadline: never, parted: never,
	}
	waits.reply = t.lasting(w.reply)
	if more.end != 0 {
		t.waiters.at(more.end).next = id
	} else {
		more.first = id
	}
	more.end = id
	if w.firm() {
		waits.firmPrev = more.firmEnd
		if more.firmEnd != 0 {
			t.waiters.at(more.firmEnd).firmNext = id
		} else {
			more.firm = id
		}
		more.firmEnd = id
	}
	more.waiting++
	if w.mode == subjects.Semaphore {
		more.semaphores++
		more.slots = w.slots
	}
	z := t.zones[l.zone]
	z.waiters++
	z.tickets[ticket] = id
	if sid != 0 {
		t.bindWaiter(id, sid)
	}
	if t.primary {
		t.startWait(id)
	}
	return id
}

// lasting is a copy of a request's text that stays as long as a waiter: it may be a part of a longer one. What a replica keeps of a
// change is its own already.
func (t *Table) lasting(text string) string {
	if t.primary {
		return strings.Clone(text)
	}
	return text
}

func (t *Table) bindWaiter(id, sid uint32) {
	w, s := t.waiters.at(id), t.sessions.at(sid)
	w.session, w.sprev = sid, s.waits.last
	if s.waits.last != 0 {
		t.waiters.at(s.waits.last).snext = id
	} else {
		s.waits.first = id
	}
	s.waits.last = id
	w.user, w.want.session = s.user, s.id // one copy for all
	s.waiting++
	s.weight += weight(int(t.locks.at(w.lock).length))
	t.armSession(sid)
}

// startWait starts the clock of a waiter.
func (t *Table) startWait(id uint32) {
	w := t.waiters.at(id)
	w.deadline = t.after(w.wait)
	if w.session != 0 && t.sessions.at(w.session).parted {
		w.parted = t.after(t.sessions.at(w.session).lease)
	}
	t.wheel.set(timerOf(waiterTimer, id))
}

// removeWaiter takes a waiter out of its queue. The lock stays, whoever is left.
func (t *Table) removeWaiter(id uint32) {
	w := t.waiters.at(id)
	l := t.locks.at(w.lock)
	more := t.shares.at(l.more)
	t.wheel.stop(timerOf(waiterTimer, id))
	if w.prev != 0 {
		t.waiters.at(w.prev).next = w.next
	} else {
		more.first = w.next
	}
	if w.next != 0 {
		t.waiters.at(w.next).prev = w.prev
	} else {
		more.end = w.prev
	}
	if w.firm() {
		if w.firmPrev != 0 {
			t.waiters.at(w.firmPrev).firmNext = w.firmNext
		} else {
			more.firm = w.firmNext
		}
		if w.firmNext != 0 {
			t.waiters.at(w.firmNext).firmPrev = w.firmPrev
		} else {
			more.firmEnd = w.firmPrev
		}
	}
	more.waiting--
	if w.mode == subjects.Semaphore {
		more.semaphores--
	}
	z := t.zones[l.zone]
	z.waiters--
	delete(z.tickets, w.ticket)
	if w.session != 0 {
		t.unbindWaiter(w)
	}
	t.waiters.release(id)
	t.forgetSlots(l)
}

func (t *Table) unbindWaiter(w *waiter) {
	s := t.sessions.at(w.session)
	if w.sprev != 0 {
		t.waiters.at(w.sprev).snext = w.snext
	} else {
		s.waits.first = w.snext
	}
	if w.snext != 0 {
		t.waiters.at(w.snext).sprev = w.sprev
	} else {
		s.waits.last = w.sprev
	}
	s.waiting--
	s.weight -= weight(int(t.locks.at(w.lock).length))
}

// grantable says whether a request that was appended to the queue of the lock at the cursor would be granted at once.
func (t *Table) grantable(w *want) bool {
	l := t.lock()
	switch {
	case l == nil:
		return true
	case !t.fits(l, w):
		return false
	case t.waiting(l) == 0:
		return t.quietUntil(l, w) <= t.now.Boot
	case w.mode == subjects.Exclusive:
		return false
	}
	return t.shares.at(l.more).firm == 0 || mutant.On(mutant.WaiterOvertaken)
}

// quietUntil is when the quiet time is over that a timed exclusive request asks for.
func (t *Table) quietUntil(l *lock, w *want) int64 {
	if w.drain != subjects.Timed || l.more == 0 || !t.shares.at(l.more).read {
		return t.now.Boot
	}
	return later(t.shares.at(l.more).lastRead, w.quiet)
}

// next is the waiter of the lock at the cursor that may be granted now, 0 if there is none. If time alone is what it
// waits for, the lock is looked at again then.
func (t *Table) next(l *lock) uint32 {
	more := t.shares.at(l.more)
	if t.recovering() && !mutant.On(mutant.RecoveryHandsOn) {
		more.recheck = t.recoverUntil
		return 0
	}
	more.recheck = never
	first := t.waiters.at(more.first)
	if !first.firm() && t.fits(l, &first.want) {
		at := t.quietUntil(l, &first.want)
		if at <= t.now.Boot {
			return more.first
		}
		more.recheck = at
	}
	if more.firm == 0 {
		return 0
	}
	firm := t.waiters.at(more.firm)
	if firm.mode == subjects.Exclusive && more.firm != more.first || !t.fits(l, &firm.want) {
		return 0
	}
	return more.firm
}

// settle hands the lock at the cursor on to every waiter that may have it now. Everything that begins a wait or ends a
// hold or a wait is followed by it, within the same change.
func (t *Table) settle() {
	l := t.lock()
	if l == nil || l.more == 0 {
		return
	}
	last := t.at.zone.token
	for t.shares.at(l.more).waiting > 0 && t.broken == nil {
		id := t.next(l)
		if id == 0 || !t.reserveToken() {
			break
		}
		t.admit(id)
	}
	if t.shares.at(l.more).waiting == 0 {
		t.shares.at(l.more).recheck = never
	}
	t.wheel.set(timerOf(lockTimer, t.at.lock))
	if t.shares.at(l.more).waiting == 0 {
		return
	}
	if t.shares.at(l.more).recalls > 0 {
		t.recallSince(l, last)
	}
	if first := t.waiters.at(t.shares.at(l.more).first); first.bits&(wantEnqueue|wantPlaced) == wantEnqueue {
		t.do(&op{code: opPlace, ticket: first.ticket})
	}
}

// recallSince tells the holders that were granted after a token that somebody waits behind them.
func (t *Table) recallSince(l *lock, token uint64) {
	id := t.shares.at(l.more).last
	if id == 0 {
		id = l.hold
	}
	for ; id != 0; id = t.holds.at(id).prev {
		h := t.holds.at(id)
		if h.token <= token {
			return
		}
		if h.is(holdRecall) {
			t.do(&op{code: opRecall, token: h.token})
		}
	}
}

// admit grants a waiter.
func (t *Table) admit(id uint32) {
	w := t.waiters.at(id)
	o := op{code: opAdmit, ticket: w.ticket, since: t.now.Wall}
	o.span = time.Duration(max(0, t.now.Wall-w.since)) * time.Millisecond
	o.durable, o.beat = t.durable(w.kind, w.ttl, w.session), t.beat(w.session)
	t.do(&o)
}

// leave takes a waiter out of the queue without a grant. Who calls it settles the lock.
func (t *Table) leave(ticket uint64, why why) {
	t.do(&op{code: opLeave, ticket: ticket, why: why})
}
