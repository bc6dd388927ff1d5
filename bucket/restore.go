package bucket

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/opencluster/oclocks/subjects"
)

// Restore gives a new table the state of a snapshot. A table that was restored is a replica: feed it with Apply, or promote
// it. Error: ErrSnapshot, and then the table must be thrown away.
func (t *Table) Restore(b []byte) error {
	if t.seq != 0 || len(t.zones) > 0 || t.primary || t.broken != nil {
		return fmt.Errorf("%w: the table is not new", ErrSnapshot)
	}
	defer func() { t.at = cursor{} }()
	c := coder{buf: b, reading: true}
	t.headFields(&c)
	var n int
	c.count(&n)
	last := ""
	for i := range n {
		var name string
		c.text(&name, maxZone)
		if c.bad || i > 0 && name <= last {
			return t.unreadable("zone %d", i)
		}
		last = name
		t.atZone(name)
		t.at.zone = t.openZone(name)
		if err := t.readZone(&c); err != nil {
			return err
		}
	}
	if c.bad || len(c.buf) > 0 {
		return t.unreadable("end")
	}
	return nil
}

// unreadable breaks the table.
func (t *Table) unreadable(format string, args ...any) error {
	t.broken = fmt.Errorf("%w: "+format, append([]any{ErrSnapshot}, args...)...)
	return t.broken
}

func (t *Table) readZone(c *coder) error {
	z := t.at.zone
	z.headFields(c)
	var n int
	c.count(&n)
	for range n {
		var e end
		e.fields(c)
		z.ended.add(e)
	}
	if c.bad || n > ringSize || z.token>>counterBits > uint64(t.term) {
		return t.unreadable("zone %q", z.name)
	}
	c.count(&n)
	last := ""
	for range n {
		var s session
		s.fields(c)
		if c.bad || s.id <= last || s.state == 0 || s.lease <= 0 || (s.state == sessionEndedBy) != (s.why != whyNone) {
			return t.unreadable("session %q", s.id)
		}
		last = s.id
		if sid := t.restoreSession(&s); !t.readFinished(c, sid) {
			return t.unreadable("requests of session %q", s.id)
		}
	}
	if !t.readFinished(c, 0) {
		return t.unreadable("requests of zone %q", z.name)
	}
	c.count(&n)
	last = ""
	for range n {
		var name string
		c.text(&name, subjects.MaxName)
		if c.bad || name <= last {
			return t.unreadable("name %q", name)
		}
		last = name
		t.atName(name)
		if !t.readLock(c) {
			return t.unreadable("lock %q", name)
		}
	}
	t.orderSessions(z)
	return nil
}

func (t *Table) restoreSession(image *session) uint32 {
	z := t.at.zone
	sid, s := t.sessions.take()
	conn := image.conn
	*s = *image
	s.user = t.texts.share(s.user)
	s.zone, s.armed, s.conn = z.id, never, Conn{}
	z.sessions[s.id] = sid
	z.known.mark(s.id, z.sessions)
	if s.state == sessionLive {
		z.live++
		s.conn = conn
		t.joinConn(sid)
	}
	return sid
}

// readFinished reads the finished requests of a session, or of the zone without one.
func (t *Table) readFinished(c *coder, sid uint32) bool {
	var n int
	c.count(&n)
	for range n {
		var e entry
		e.fields(c)
		if c.bad || e.op == subjects.OpNone || (sid != 0) != (e.number > 0) {
			return false
		}
		if sid != 0 {
			if s := t.sessions.at(sid); s.state != sessionLive || e.number < s.done || e.user != s.user {
				return false
			}
		}
		if _, ok := unpackBody(e.outcome, e.user, t.sessionName(sid)); !ok {
			return false
		}
		id, ok := t.newEntry(e.request, e.user, sid, e.name)
		if !ok {
			return false
		}
		t.finishPacked(id, e.outcome, t.at.zone)
	}
	return !c.bad
}

// readLock reads the lock at the cursor.
func (t *Table) readLock(c *coder) bool {
	var read bool
	c.flag(&read)
	var holds, waiters int
	c.count(&holds)
	token := uint64(0)
	for range holds {
		var image holdImage
		image.fields(c)
		if c.bad || image.token <= token || image.token > t.at.zone.token || !t.restoreHold(&image) {
			return false
		}
		token = image.token
	}
	c.count(&waiters)
	ticket := uint64(0)
	for range waiters {
		var image waiterImage
		image.fields(c)
		if c.bad || image.ticket <= ticket || image.ticket > t.at.zone.ticket || !t.restoreWaiter(&image) {
			return false
		}
		ticket = image.ticket
	}
	if c.bad || holds+waiters == 0 {
		return false
	}
	l := t.lock()
	if read {
		t.needMore(l).read = true
	}
	return read || l.more == 0 || !t.shares.at(l.more).read
}

func (t *Table) restoreHold(image *holdImage) bool {
	w := &image.want
	sid, ok := t.restored(w)
	if !ok || w.wait != 0 || w.drain != subjects.Hard || w.reply != "" {
		return false
	}
	if l := t.lock(); l != nil && (!t.agrees(l, w) || !t.fits(l, w)) {
		return false
	}
	id := t.addHold(w, sid, image.token, image.since)
	if image.forced {
		h := t.holds.at(id)
		h.mark(holdForced)
		t.extra(h) // has the instant at which it ends
		if sid != 0 {
			t.sessions.at(sid).reckon(image.token, -1)
		}
	}
	return true
}

func (t *Table) restoreWaiter(image *waiterImage) bool {
	w := &image.want
	sid, ok := t.restored(w)
	if !ok || w.wait == 0 || t.at.zone.tickets[image.ticket] != 0 {
		return false
	}
	if l := t.lock(); l != nil && !t.agrees(l, w) {
		return false
	}
	id := t.addWaiter(w, sid, image.ticket, image.since)
	if !image.known {
		return true
	}
	if sid != 0 && w.request.number < t.sessions.at(sid).done || w.request.op != subjects.OpAcquire {
		return false
	}
	entry, ok := t.newEntry(w.request, w.user, sid, t.at.index)
	if !ok {
		return false
	}
	if image.outcome != nil || w.bits&wantEnqueue != 0 {
		if _, ok := unpackBody(image.outcome, w.user, w.session); !ok {
			return false
		}
	}
	t.waiters.at(id).entry = entry
	e := t.entries.at(entry)
	e.waiter, e.outcome = id, image.outcome
	return true
}

// restored finds the session of a hold or waiter. A static hold outlives it; what else there is needs it alive.
func (t *Table) restored(w *want) (sid uint32, ok bool) {
	if w.check() != nil || w.kind == subjects.KindDefault {
		return 0, false
	}
	if w.session == "" {
		return 0, true
	}
	sid, s := t.sessionOf(w.session)
	if s == nil || s.user != w.user {
		return 0, false
	}
	return sid, s.state == sessionLive || w.kind == subjects.Static && w.wait == 0
}

// orderSessions links what each session has in the order in which it got it, which is not the order of names.
func (t *Table) orderSessions(z *zone) {
	// order: each session is ordered by itself
	for _, sid := range z.sessions {
		s := t.sessions.at(sid)
		var holds, waits []uint32
		for id := s.holds.first; id != 0; id = t.holds.at(id).snext {
			holds = append(holds, id)
		}
		slices.SortFunc(holds, func(a, b uint32) int { return cmp.Compare(t.holds.at(a).token, t.holds.at(b).token) })
		s.holds = list{}
		for _, id := range holds {
			h := t.holds.at(id)
			h.sprev, h.snext = s.holds.last, 0
			if h.sprev != 0 {
				t.holds.at(h.sprev).snext = id
			} else {
				s.holds.first = id
			}
			s.holds.last = id
		}
		for id := s.waits.first; id != 0; id = t.waiters.at(id).snext {
			waits = append(waits, id)
		}
		slices.SortFunc(waits, func(a, b uint32) int { return cmp.Compare(t.waiters.at(a).ticket, t.waiters.at(b).ticket) })
		s.waits = list{}
		for _, id := range waits {
			w := t.waiters.at(id)
			w.sprev, w.snext = s.waits.last, 0
			if w.sprev != 0 {
				t.waiters.at(w.sprev).snext = id
			} else {
				s.waits.first = id
			}
			s.waits.last = id
		}
	}
}
