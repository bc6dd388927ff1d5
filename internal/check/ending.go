package check

import "github.com/opencluster/oclocks/subjects"

// released takes the first answer to a release.
func (c *Checker) released(a *ask, e *Event, done bool) {
	if !done {
		c.notHeld(a, e)
		return
	}
	if a.token != 0 && e.Token != a.token {
		if h := c.another(a, e, "released"); h != nil {
			c.end(h, "released", a.at)
		}
		return
	}
	l, h := a.lock, a.hold
	if h == nil {
		h = l.holds[e.Token]
		a.hold = h
	}
	if !c.effective(a, h, e.Token) {
		return
	}
	if h.ended != "" && h.endAt < a.at && h.doubts == l.doubts {
		c.failLock(Over, l, "%s is done, though it is about %s", a, h)
	}
	c.end(h, "released", a.at)
}

// another takes an effect on another token than was meant, and gives the hold of that, if its client was told of it. Requests go by the
// key, and an acquire keeps its key: if a recovery has undone its grant, it may be granted again, with another token.
func (c *Checker) another(a *ask, e *Event, done string) *hold {
	l, h := a.lock, a.lock.holds[e.Token]
	switch {
	case a.hold == nil && l.doubts == 0 || a.hold != nil && a.hold.ask.since == l.doubts:
		c.failLock(Once, l, "%s is about token %d and has %s token %d", a, a.token, done, e.Token)
	case h != nil && a.key != 0 && h.key != 0 && a.key != h.key:
		c.failLock(Kept, l, "%s has an effect on %s, with another key", a, h)
	default:
		return h
	}
	return nil
}

// effective says whether a request by key could have an effect on the hold.
func (c *Checker) effective(a *ask, h *hold, token uint64) bool {
	switch {
	case h == nil && (token <= a.lock.forgot || a.since != a.lock.doubts):
		return false
	case h == nil:
		c.failLock(Zones, a.lock, "%s has an effect on token %d, which nobody was granted in zone %s", a, token, a.lock.zone.name)
		return false
	case a.key != 0 && h.key != 0 && a.key != h.key:
		c.failLock(Kept, a.lock, "%s has an effect on %s, with another key", a, h)
		return false
	}
	return true
}

// renewed takes the answer to a renew.
func (c *Checker) renewed(a *ask, e *Event, done bool) {
	if !done {
		c.notHeld(a, e)
		return
	}
	if a.token != 0 && e.Token != a.token {
		if h := c.another(a, e, "renewed"); h != nil {
			h.ttl = e.TTL
		}
		return
	}
	l, h := a.lock, a.hold
	if !c.effective(a, h, e.Token) {
		return
	}
	if h.ended != "" && h.endAt < a.at && h.doubts == l.doubts {
		c.failLock(Over, l, "%s is done, though it is about %s", a, h)
	}
	h.ttl = e.TTL
	h.doubted = h.doubted && a.since != l.doubts
}

// notHeld takes an answer that the hold which a release or renew is about is over.
func (c *Checker) notHeld(a *ask, e *Event) {
	if a.hold == nil {
		return
	}
	h := a.hold
	returned := h.returned && (h.ask.cancelled != nil || !(a.op == subjects.OpRelease && a.first && !a.plain))
	if !returned && h.mustBe(c, e, max(a.trust, h.until)) {
		c.failLock(Kept, h.lock, "%s is answered %s: but %s", a, answerText(e), h)
	}
	switch e.Code {
	case 403, 404, 410:
		c.told(a.hold, e, answerText(e), a.at)
	}
}

// told takes what a client hears of the end of its hold, which was not told before since. One that was forced may be there still: it waits
// for that client to be done. So may be any, if clocks are beyond the promise: it may be an earlier primary that has never heard of it.
func (c *Checker) told(h *hold, e *Event, how string, since int64) {
	if h.forced || e.Why == subjects.WhyForced || c.opt.Wild {
		h.returned = true
		h.disbelieve(c.now)
		h.loosen(c.now)
		return
	}
	c.end(h, how, since)
}

func answerText(e *Event) string {
	text := map[int]string{403: "403 denied", 404: "404 not held", 410: "410 lost"}[e.Code]
	if text == "" {
		text = "that it is over"
	}
	if e.Why != "" {
		text += " (" + e.Why + ")"
	}
	return text
}

// mustBe says whether a hold that its client believed in until a time had to be there, when it is told now that it is over.
func (h *hold) mustBe(c *Checker, e *Event, until int64) bool {
	switch {
	case h.ended != "" || h.forced || h.exempt || h.doubted || h.client.dead:
		return false
	case e.Why == subjects.WhyClosed && h.ask.session == "": // its client's doing, nobody knows when
		h.loosen(h.at)
		return false
	}
	return !h.leased() || until > c.now && h.loose > c.now && !c.opt.Wild
}

// lost takes what a client is told without having asked.
func (c *Checker) lost(cl *client, e *Event) {
	h := cl.zone.hold(e.Name, e.Token)
	if h == nil {
		l := cl.zone.locks[e.Name]
		switch {
		case l == nil:
			c.fail(Zones, e, "%s hears that it has lost %s, for which nobody in zone %s has asked", cl.name, e.Name, cl.zone.name)
		case e.Token > l.forgot && len(l.open)+l.unclear == 0 && l.doubts == 0:
			c.fail(Zones, e, "%s hears that it has lost token %d of %s, which nobody in zone %s was granted", cl.name, e.Token, e.Name, cl.zone.name)
		}
		return
	}
	if !h.returned && h.mustBe(c, e, h.until) {
		c.failLock(Kept, h.lock, "%s hears that it has lost %s (%s): but %s", cl.name, h.lock.name, e.Why, h)
	}
	c.told(h, e, "lost, "+e.Why, h.ask.at)
}

// forced takes the answer to a force.
func (c *Checker) forced(a *ask, e *Event, done bool) {
	if done && e.Ended && a.hold != nil {
		c.end(a.hold, "forced", a.at)
	}
}

// closed takes the answer to a session-close. It ends what the client had heard of when it asked. An acquire that was under way then may
// come after it, to a bucket that knows nothing of the session: it is granted there, and ends with its lease.
func (c *Checker) closed(a *ask) {
	for i := len(a.client.holds) - 1; i >= 0; i-- {
		h := a.client.holds[i]
		switch {
		case !a.closes(h):
		case h.heardOf() < a.at:
			c.end(h, "its session is closed", a.at)
		default:
			h.orphan = true
		}
	}
}

// heardOf is when the client first heard that the broker has its request: with the ticket or with the grant.
func (h *hold) heardOf() int64 {
	if h.ask.ticket != 0 && h.ask.since == h.lock.doubts {
		return min(h.at, h.ask.ticketAt)
	}
	return h.at
}
