package bucket

import (
	"github.com/opencluster/oclocks/internal/mutant"
	"github.com/opencluster/oclocks/subjects"
)

// endSession ends a session in this bucket: its waiters leave, its connection holds end, and a tombstone stays. All of it
// is one change. It returns how many holds have ended.
func (t *Table) endSession(sid uint32, why why) (ended int) {
	s := t.sessions.at(sid)
	// The waiters first, or one of them could be granted what the session itself gives up.
	var left []uint32
	for id := s.waits.first; id != 0; {
		w := t.waiters.at(id)
		next := w.snext
		left = append(left, w.lock)
		t.leave(w.ticket, why)
		id = next
	}
	for id := s.holds.first; id != 0; {
		h := t.holds.at(id)
		next := h.snext
		if h.kind() == subjects.Connection {
			t.endHold(id, why)
			ended++
		}
		id = next
	}
	for _, lock := range left {
		if t.lockThere(lock) {
			t.atLock(lock)
			t.settle()
		}
	}
	t.atZone(t.zones[s.zone].name)
	o := op{code: opCloseSession, why: why, number: uint64(ended)}
	o.session = s.id
	t.do(&o)
	return ended
}

// applyCloseSession leaves the tombstone of a session whose holds and waiters have gone.
func (t *Table) applyCloseSession(o *op) bool {
	sid, s := t.sessionOf(o.session)
	if s == nil || s.state != sessionLive || s.bound > 0 || s.waiting > 0 || o.why == whyNone || o.number > maxRecords {
		return false
	}
	t.forgetAll(s)
	s.state, s.why, s.released = sessionEndedBy, o.why, o.number
	t.zones[s.zone].live--
	t.leaveConn(sid)
	if t.primary {
		s.newer, s.parted = nil, false
		s.deadline = t.after(s.tombstoneKeep())
		t.wheel.set(timerOf(sessionTimer, sid))
	}
	return true
}

// applyDropSession forgets a session, or its tombstone. What is left as long as the session has static holds is its name.
func (t *Table) applyDropSession(o *op) bool {
	sid, s := t.sessionOf(o.session)
	if s == nil || s.state == sessionDormant || s.bound > 0 || s.waiting > 0 {
		return false
	}
	t.forgetAll(s)
	if s.state == sessionLive {
		t.zones[s.zone].live--
	}
	t.leaveConn(sid)
	s.state, s.why, s.released = sessionDormant, whyNone, 0
	t.removeDormant(sid)
	if s.id != "" && t.primary {
		s.newer, s.beat = nil, 0
		t.wheel.stop(timerOf(sessionTimer, sid))
	}
	return true
}

// removeDormant removes what is left of a forgotten session when its last hold is gone.
func (t *Table) removeDormant(sid uint32) {
	s := t.sessions.at(sid)
	if s.state != sessionDormant || s.statics > 0 {
		return
	}
	t.wheel.stop(timerOf(sessionTimer, sid))
	delete(t.zones[s.zone].sessions, s.id)
	t.texts.drop(s.user)
	t.sessions.release(sid)
}

// forgetAll forgets all requests of a session.
func (t *Table) forgetAll(s *session) {
	for s.finished.first != 0 {
		t.closeEntry(s.finished.first)
	}
	for id := s.waits.first; id != 0; id = t.waiters.at(id).snext {
		t.detach(t.waiters.at(id))
	}
	s.window = window{}
}

// sessionClose carries out a session-close.
func (t *Table) sessionClose(c *call) {
	switch {
	case c.in.Session.ID == "":
		t.refuse(c, badRequest("session", "session is missing; session-close needs the token of a session"))
	case c.session == 0:
		// The session has nothing here, and a bucket need not remember the end of a session that it never met.
		t.reply(c, &subjects.SessionClosed{})
	case t.sessions.at(c.session).state == sessionEndedBy:
		t.reply(c, &subjects.SessionClosed{Released: int(t.sessions.at(c.session).released)})
	case t.sessions.at(c.session).state == sessionDormant, mutant.On(mutant.SessionCloseEndsNothing):
		t.reply(c, &subjects.SessionClosed{})
	default:
		n := t.endSession(c.session, whyClosed)
		t.atName("")
		t.answer(c, &subjects.SessionClosed{Released: n})
	}
}

// sessionDue is the instant at which something happens to a session by itself.
func (t *Table) sessionDue(s *session) int64 {
	due := s.deadline
	switch {
	case s.state == sessionDormant:
		return never
	case s.newer != nil:
		return 0 // at once; t.now would move on each time it is asked for
	case s.state == sessionEndedBy:
		return due
	case s.bound == 0 && s.waiting == 0:
		due = later(due, s.idleKeep())
	}
	if oldest := s.finished.first; oldest != 0 {
		due = min(due, later(t.entries.at(oldest).at, requestKeep))
	}
	return due
}

// fireSession carries out what is due for a session.
func (t *Table) fireSession(sid uint32) {
	s := t.sessions.at(sid)
	s.armed = never
	t.atZone(t.zones[s.zone].name)
	o := op{code: opDropSession}
	o.session = s.id
	switch {
	case s.newer != nil: // a caller that does not ask whether it is Untold
		t.heard = sid
		t.tellHeard()
	case s.state == sessionEndedBy && s.deadline <= t.now.Boot:
		t.do(&o)
	case s.state != sessionLive:
	case t.expired(s.finished) > 0:
		o.code, o.number = opForget, uint64(t.expired(s.finished))
		t.do(&o)
	case s.deadline > t.now.Boot:
	case s.bound > 0 || s.waiting > 0:
		t.endSession(sid, whyExpired)
	case later(s.deadline, s.idleKeep()) <= t.now.Boot:
		t.do(&o)
	}
	if s.id != "" {
		t.armSession(sid)
	}
}
