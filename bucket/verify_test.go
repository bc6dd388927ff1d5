package bucket

import (
	"fmt"

	"github.com/opencluster/oclocks/subjects"
)

// verify looks for contradictions inside a table: links, counters, indexes and timers that do not agree with each other,
// and waiters that could be granted but were not.
func verify(t *Table) (err error) {
	v := &verifier{t: t, texts: map[uint32]int{}}
	defer func() {
		if broken, ok := recover().(contradiction); ok {
			err = fmt.Errorf("%s\n%s", string(broken), t.Describe())
		}
	}()
	if t.broken != nil {
		return t.broken
	}
	for _, z := range t.zones {
		v.zone(z)
	}
	v.that(v.locks == t.locks.live, "%d locks of %d", v.locks, t.locks.live)
	v.that(v.holds == t.holds.live, "%d holds of %d", v.holds, t.holds.live)
	v.that(v.waiters == t.waiters.live, "%d waiters of %d", v.waiters, t.waiters.live)
	v.that(v.sessions == t.sessions.live, "%d sessions of %d", v.sessions, t.sessions.live)
	v.that(v.entries == t.entries.live, "%d requests of %d", v.entries, t.entries.live)
	v.that(v.rests == t.locks.rests.live, "%d long names of %d", v.rests, t.locks.rests.live)
	v.that(v.shares == t.shares.live, "%d locks for several of %d", v.shares, t.shares.live)
	v.that(v.extras == t.extras.live, "%d holds with more of %d", v.extras, t.extras.live)
	v.that(len(v.texts) == t.texts.texts.live, "%d texts of %d", len(v.texts), t.texts.texts.live)
	for id, n := range v.texts {
		v.that(t.texts.texts.at(id).refs == n, "%q has %d references, not %d", t.texts.text(id), t.texts.texts.at(id).refs, n)
	}
	return nil
}

type verifier struct {
	t                                        *Table
	texts                                    map[uint32]int
	locks, holds, waiters, sessions, entries int
	rests, shares, extras                    int
	// Of the zone in progress.
	zoneHolds, zoneWaiters, live int
}

type contradiction string

func (v *verifier) that(ok bool, format string, args ...any) {
	if !ok {
		panic(contradiction("contradiction: " + fmt.Sprintf(format, args...)))
	}
}

func (v *verifier) zone(z *zone) {
	v.zoneHolds, v.zoneWaiters, v.live = 0, 0, 0
	n, last := 0, ""
	if z.locks > 0 {
		z.order.ascend("", func(id uint32) bool {
			name := v.t.locks.name(v.t.locks.at(id))
			v.that(n == 0 || name > last, "%q after %q", name, last)
			n, last = n+1, name
			v.lock(z, id)
			return true
		})
	}
	v.that(n == z.locks && n == z.index.n, "zone %s has %d locks, counted %d, indexed %d", z.name, n, z.locks, z.index.n)
	v.that(v.zoneHolds == z.holds, "zone %s has %d holds, counted %d", z.name, v.zoneHolds, z.holds)
	v.that(v.zoneWaiters == z.waiters && v.zoneWaiters == len(z.tickets), "zone %s has %d waiters, counted %d", z.name, v.zoneWaiters, z.waiters)
	for id, sid := range z.sessions {
		v.that(z.known.may(id), "zone %s has the session %s and does not know it", z.name, id)
		v.session(z, id, sid)
	}
	v.that(v.live == z.live, "zone %s has %d live sessions, counted %d", z.name, v.live, z.live)
	for key, id := range z.requests {
		if key.user != "" {
			v.texts[v.t.texts.ids[key.user]]++
		}
		e := v.t.entries.at(id)
		v.that(e.user == key.user && e.id == key.id && e.number == 0 && e.session == 0, "request %q of %q", key.id, key.user)
		v.entry(e, id)
	}
	v.finished(z.finished, func(e *entry) bool { return e.session == 0 })
	if v.t.primary && v.t.zoneDue(z) != never {
		v.that(z.timer.slot != 0 && z.armed <= v.t.zoneDue(z), "zone %s: timer", z.name)
	}
	v.locks += n
	v.holds += v.zoneHolds
	v.waiters += v.zoneWaiters
	v.sessions += len(z.sessions)
}

func (v *verifier) lock(z *zone, id uint32) {
	t, l := v.t, v.t.locks.at(id)
	name := t.locks.name(l)
	found := z.index.find(t.hash(name), func(each uint32) bool { return t.locks.is(t.locks.at(each), name) })
	v.that(found == id, "%q is not indexed", name)
	if len(name) > headMax {
		v.rests++
	}
	v.that(l.zone == z.id, "%q is in zone %d", name, l.zone)
	holders, taken, recalls, token, prev := 0, uint32(0), 0, uint64(0), uint32(0)
	for hid := l.hold; hid != 0; hid = t.holds.at(hid).next {
		h := t.holds.at(hid)
		v.that(h.lock == id && h.prev == prev, "%q: links of hold %s", name, drawToken(h.token))
		v.that(h.token > token && h.token <= z.token, "%q: token %s after %s", name, drawToken(h.token), drawToken(token))
		if h.is(holdRecall) {
			recalls++
		}
		holders, taken, token, prev = holders+1, taken+t.take(h), h.token, hid
		v.hold(h)
		if t.primary && t.holdDue(h) != never {
			v.that(h.timer.slot != 0, "%q: hold %s has no timer", name, drawToken(h.token))
		}
		if l.more != 0 && t.shares.at(l.more).byKey != nil {
			v.that(t.shares.at(l.more).byKey[h.key] == hid && t.shares.at(l.more).byToken[h.token] == hid, "%q: maps", name)
		}
	}
	v.zoneHolds += holders
	v.that(l.mode != subjects.Exclusive || holders <= 1, "%q: %d exclusive holders", name, holders)
	if l.more == 0 {
		v.that(holders == 1 && l.mode == subjects.Exclusive, "%q: %d holders and no room for them", name, holders)
		return
	}
	more := t.shares.at(l.more)
	v.shares++
	v.that(more.holders == holders, "%q: %d holders, counted %d", name, holders, more.holders)
	v.that(more.recalls == recalls, "%q: %d to be recalled, counted %d", name, recalls, more.recalls)
	v.that(holders+more.waiting > 0, "%q: nobody is there", name)
	v.that(more.byKey == nil || len(more.byKey) == holders && len(more.byToken) == holders, "%q: sizes of maps", name)
	if holders > 1 {
		v.that(more.last == prev, "%q: last holder", name)
	} else {
		v.that(more.last == 0, "%q: last of one holder", name)
	}
	if l.hold != 0 && l.mode == subjects.Semaphore {
		v.that(more.taken == taken && taken <= more.slots, "%q: taken %d, counted %d of %d", name, taken, more.taken, more.slots)
	} else {
		v.that(more.taken == 0, "%q: %d taken by nobody", name, more.taken)
	}
	v.queue(z, l, name)
	if t.primary && !t.recovering() && more.waiting > 0 {
		was := more.recheck
		next := t.next(l)
		if next != 0 {
			// A quiet time may just be over, and its timer not carried out yet.
			v.that(was <= t.now.Boot, "%q: waiter %d should have been granted", name, t.waiters.at(next).ticket)
		}
		more.recheck = was
	}
	v.that(!t.primary || more.recheck == never || more.timer.slot != 0, "%q: no timer for the queue", name)
}

func (v *verifier) hold(h *hold) {
	if h.user != 0 {
		v.texts[h.user]++
	}
	if h.holder != 0 {
		v.texts[h.holder]++
	}
	if h.more != 0 {
		v.extras++
	}
	if h.session == 0 {
		v.that(h.kind() == subjects.Static, "a connection hold without a session")
		return
	}
	s := v.t.sessions.at(h.session)
	v.that(s.state == sessionLive || h.kind() == subjects.Static, "session %s is over and holds", s.id)
}

func (v *verifier) queue(z *zone, l *lock, name string) {
	t, more := v.t, v.t.shares.at(l.more)
	n, semaphores, ticket, prev, firm, firmPrev := 0, 0, uint64(0), uint32(0), more.firm, uint32(0)
	for wid := more.first; wid != 0; wid = t.waiters.at(wid).next {
		w := t.waiters.at(wid)
		v.that(w.ticket > ticket && w.ticket <= z.ticket, "%q: ticket %d after %d", name, w.ticket, ticket)
		v.that(w.prev == prev && t.locks.at(w.lock) == l && z.tickets[w.ticket] == wid, "%q: links of waiter %d", name, w.ticket)
		if w.firm() {
			v.that(firm == wid && w.firmPrev == firmPrev, "%q: firm waiter %d", name, w.ticket)
			firm, firmPrev = w.firmNext, wid
		}
		if w.mode == subjects.Semaphore {
			semaphores++
			v.that(w.slots == more.slots, "%q: slots of waiter %d", name, w.ticket)
		}
		v.that(!t.primary || w.timer.slot != 0, "%q: waiter %d has no timer", name, w.ticket)
		if w.entry != 0 {
			e := t.entries.at(w.entry)
			v.that(e.waiter == wid && e.request == w.request, "%q: request of waiter %d", name, w.ticket)
		}
		n, ticket, prev = n+1, w.ticket, wid
	}
	v.that(firm == 0 && firmPrev == more.firmEnd && prev == more.end, "%q: ends of the queue", name)
	v.that(n == more.waiting && semaphores == more.semaphores, "%q: %d wait, counted %d", name, n, more.waiting)
	v.that(semaphores > 0 || l.hold != 0 && l.mode == subjects.Semaphore || more.slots == 0, "%q: slots of nobody", name)
	v.zoneWaiters += n
}

func (v *verifier) session(z *zone, id string, sid uint32) {
	t, s := v.t, v.t.sessions.at(sid)
	v.that(s.id == id && s.zone == z.id, "session %q", id)
	if s.user != "" { // a change from anywhere may leave it out
		v.texts[t.texts.ids[s.user]]++
	}
	if s.conn.Server != "" {
		v.texts[t.texts.ids[s.conn.Server]]++
	}
	bound, statics, count, hash, prev, token := 0, 0, 0, uint64(0), uint32(0), uint64(0)
	heavy := 0
	for hid := s.holds.first; hid != 0; hid = t.holds.at(hid).snext {
		h := t.holds.at(hid)
		v.that(h.session == sid && h.sprev == prev && h.token > token, "session %s: links of hold %s", id, drawToken(h.token))
		if h.kind() == subjects.Connection {
			bound++
		} else {
			statics++
		}
		if !h.is(holdForced) {
			count, hash = count+1, hash^subjects.TokenHash(h.token)
		}
		heavy += weight(int(t.locks.at(h.lock).length))
		prev, token = hid, h.token
	}
	v.that(s.holds.last == prev && bound == s.bound && statics == s.statics, "session %s: %d+%d holds", id, bound, statics)
	v.that(s.count == count && s.hash == hash, "session %s: hash of a keep-alive", id)
	n, prev := 0, uint32(0)
	for wid := s.waits.first; wid != 0; wid = t.waiters.at(wid).snext {
		w := t.waiters.at(wid)
		v.that(w.session == sid && w.sprev == prev, "session %s: links of waiter %d", id, w.ticket)
		heavy += weight(int(t.locks.at(w.lock).length))
		n, prev = n+1, wid
	}
	v.that(heavy == s.weight, "session %s weighs %d, not %d", id, heavy, s.weight)
	v.that(n == s.waiting && s.waits.last == prev, "session %s: %d wait", id, n)
	v.that(s.state == sessionLive || bound+n == 0, "session %s is over and has something", id)
	v.that(s.state != sessionDormant || statics > 0, "session %s is dormant and has nothing", id)
	if s.state == sessionLive {
		v.live++
	}
	if t.primary && s.state != sessionDormant {
		v.that(s.timer.slot != 0 && s.armed <= max(t.sessionDue(s), t.now.Boot), "session %s: timer", id)
	}
	v.window(s)
}

func (v *verifier) window(s *session) {
	t, w := v.t, &s.window
	n, dead, last := 0, 0, uint64(0)
	for i, slot := range w.slots[w.head:] {
		v.that(i == 0 || slot.number > last, "session %s: request %d after %d", s.id, slot.number, last)
		v.that(slot.number >= s.done, "session %s: request %d below done", s.id, slot.number)
		last = slot.number
		if slot.entry == 0 {
			dead++
			v.that(i > 0, "session %s: an empty slot at the head", s.id)
			continue
		}
		e := t.entries.at(slot.entry)
		v.that(e.number == slot.number && t.sessions.at(e.session) == s, "session %s: request %d", s.id, slot.number)
		v.entry(e, slot.entry)
		if e.finished() {
			n++
		}
	}
	v.that(dead == w.dead, "session %s: %d empty slots, counted %d", s.id, dead, w.dead)
	v.that(n == s.outcomes, "session %s: %d outcomes, counted %d", s.id, n, s.outcomes)
	v.that(n == v.finished(s.finished, func(e *entry) bool { return t.sessions.at(e.session) == s }), "session %s: finished", s.id)
}

func (v *verifier) entry(e *entry, id uint32) {
	v.entries++
	if e.waiter != 0 {
		v.that(v.t.waiters.at(e.waiter).entry == id, "request %s: its waiter", e.text())
		return
	}
	_, ok := unpackBody(e.outcome, e.user, v.t.sessionName(e.session))
	v.that(ok, "request %s: its outcome", e.text())
}

func (v *verifier) finished(l list, of func(*entry) bool) int {
	n, prev := 0, uint32(0)
	for id := l.first; id != 0; id = v.t.entries.at(id).next {
		e := v.t.entries.at(id)
		v.that(e.prev == prev && e.finished() && of(e), "request %s: links", e.text())
		n, prev = n+1, id
	}
	v.that(l.last == prev, "end of the finished requests")
	return n
}
