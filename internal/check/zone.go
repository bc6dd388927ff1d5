package check

import "slices"

// seen takes what a query or a list shows of a lock.
func (c *Checker) seen(cl *client, e *Event) {
	l := cl.zone.locks[e.Name]
	if l == nil {
		if len(e.Holders)+len(e.Queue) > 0 {
			c.fail(Zones, e, "%s sees that %s is held or waited for, for which nobody in zone %s has asked", cl.name, e.Name, cl.zone.name)
		}
		return
	}
	since := e.Since
	if since == 0 {
		since = c.now
	}
	c.foreign(l, e)
	for i := range e.Holders {
		c.seenHolder(l, e, &e.Holders[i], since)
	}
	for i := 1; i < len(e.Queue); i++ {
		if e.Queue[i].Ticket <= e.Queue[i-1].Ticket {
			c.failLock(Queue, l, "ticket %d of %s stands behind ticket %d", e.Queue[i].Ticket, l.name, e.Queue[i-1].Ticket)
		}
	}
	if e.Part {
		return
	}
	for _, h := range l.believed {
		if c.throughout(h, since) && !slices.ContainsFunc(e.Holders, func(o Holder) bool { return o.Token == h.token }) {
			c.failLock(Kept, l, "%s is seen, asked for at %s, without %s", l.name, clock(since), h)
		}
	}
	c.read(l, e, since)
}

// throughout says whether a hold was there all the time since then, by what its client may believe.
func (c *Checker) throughout(h *hold, since int64) bool {
	return h.at <= since && h.trusted(c, c.now) && !h.doubted && !h.forced
}

// seenHolder compares a holder that is shown with what is known of it.
func (c *Checker) seenHolder(l *lock, e *Event, o *Holder, since int64) {
	h := l.holds[o.Token]
	switch {
	case h == nil && (o.Token <= l.forgot || l.unclear > 0 || l.doubts > 0):
	case h == nil && len(l.open) == 0:
		c.failLock(Once, l, "%s is held with token %d, which nobody was granted, and no request is open that it could be for", l.name, o.Token)
	case h == nil:
	case h.ended != "" && h.endAt < since && h.doubts == l.doubts:
		c.failLock(Over, l, "%s is held by %s", l.name, h)
	case o.Client != "" && o.Client != h.client.name:
		c.failLock(Zones, l, "token %d of %s is shown as held by %s, and belongs to %s", o.Token, l.name, o.Client, h)
	}
}

// foreign looks for clients of other zones in what is shown.
func (c *Checker) foreign(l *lock, e *Event) {
	look := func(name, what string) {
		if o := c.clients[name]; o != nil && o.zone != l.zone {
			c.failLock(Zones, l, "%s shows %s as %s of %s, who is in zone %s", l.zone.name, name, what, l.name, o.zone.name)
		}
	}
	for _, h := range e.Holders {
		look(h.Client, "holder")
	}
	for _, w := range e.Queue {
		look(w.Client, "waiter")
	}
}

// checked takes the answer to a fence check.
func (c *Checker) checked(cl *client, e *Event) {
	l := cl.zone.locks[e.Name]
	if l == nil {
		if e.Current {
			c.fail(Zones, e, "%s hears that token %d of %s is current, for which nobody in zone %s has asked", cl.name, e.Token, e.Name, cl.zone.name)
		}
		return
	}
	since := max(e.Since, 0)
	if since == 0 {
		since = c.now
	}
	h := l.holds[e.Token]
	switch {
	case h == nil:
	case e.Current && h.ended != "" && h.endAt < since && h.doubts == l.doubts:
		c.failLock(Over, l, "a check says that it is current: %s", h)
	case !e.Current && c.throughout(h, since):
		c.failLock(Kept, l, "a check, asked for at %s, says that it is not current: %s", clock(since), h)
	}
	for _, o := range l.believed {
		if c.throughout(o, since) && (o.token < e.Oldest || o.token > e.Newest) {
			c.failLock(Kept, l, "a check, asked for at %s, says that tokens from %d to %d are valid: but %s", clock(since), e.Oldest, e.Newest, o)
		}
	}
}

// noticed takes what a client is told of a lock without being concerned.
func (c *Checker) noticed(cl *client, e *Event) {
	l := cl.zone.locks[e.Name]
	switch {
	case l == nil:
		c.fail(Zones, e, "%s hears of %s, for which nobody in zone %s has asked", cl.name, e.Name, cl.zone.name)
	case e.Token != 0 && e.Token > l.forgot && l.holds[e.Token] == nil && len(l.open)+l.unclear+l.doubts == 0:
		c.failLock(Zones, l, "%s hears of token %d of %s, which nobody in zone %s was granted", cl.name, e.Token, e.Name, cl.zone.name)
	}
}
