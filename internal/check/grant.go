package check

import "github.com/opencluster/oclocks/subjects"

// granted takes a grant that is told for the first time.
func (c *Checker) granted(a *ask, e *Event) {
	c.stats.Grants++
	l := a.lock
	if e.Token == 0 {
		c.failLock(Malformed, l, "%s is granted without a token", a)
		return
	}
	if a.left && a.since == l.doubts {
		c.failLock(Queue, l, "%s is granted with token %d, and its cancel was answered before: it had left", a, e.Token)
	}
	if e.Token <= a.floor && !c.opt.Wild {
		c.failLock(Tokens, l, "%s is granted with token %d, and token %d was told before it was asked for", a, e.Token, a.floor)
	}
	if o := l.holds[e.Token]; o != nil {
		c.failLock(Tokens, l, "token %d is given to %s and to %s", e.Token, o, a)
		return
	}
	l.high = max(l.high, e.Token)
	h := &hold{
		lock: l, client: a.client, ask: a, token: e.Token, ticket: e.Ticket, key: e.Key, ttl: e.TTL, lease: e.Lease, at: c.now, touched: c.now,
		index: -1, loose: Never,
	}
	a.hold = h
	if e.Session != "" {
		a.session = e.Session
	}
	c.tickets(a, h)
	l.holds[h.token] = h
	h.index = len(a.client.holds)
	a.client.holds = append(a.client.holds, h)
	if a.since != l.doubts {
		h.doubt(c)
		h.loosen(l.doubtAt)
	}
	if a.cancelled != nil { // it was granted before the cancel came, which ends it
		h.giveBack(c.now)
		h.loosen(a.cancelled.at)
	}
	if at, closing := a.client.closing[a.session]; closing && a.session != "" { // it was granted before the close came, which ends it
		h.giveBack(c.now)
		h.loosen(at)
	}
	if a.kind == subjects.Connection && a.client.superseded(a.session) {
		h.share(c.now)
	}
	if f, early := l.forces[h.token]; early {
		h.force(f.at, f.now)
		delete(l.forces, h.token)
	}
	if a.freed {
		c.end(h, "cancelled", a.cancelled.at)
	}
}

// end notes that the hold is over, and that its client knows, by what the broker has said at some time since then: what it said before a
// recovery and was late on its way, that recovery may have lost.
func (c *Checker) end(h *hold, how string, since int64) {
	h.disbelieve(c.now)
	if h.ended != "" {
		return
	}
	h.ended, h.endAt, h.doubts = how, c.now, h.lock.doubts
	if h.lock.doubts > 0 && since <= h.lock.doubtAt {
		h.doubts = -1
	}
	h.leave()
	c.fade(nil, h)
}

// leave takes the hold out of its client's.
func (h *hold) leave() {
	if h.index < 0 {
		return
	}
	list := h.client.holds
	last := list[len(list)-1]
	list[h.index], last.index = last, h.index
	list[len(list)-1] = nil
	h.client.holds, h.index = list[:len(list)-1], -1
}
