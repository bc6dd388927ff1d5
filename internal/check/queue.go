package check

import (
	"slices"

	"github.com/opencluster/oclocks/subjects"
)

// queued takes the ticket of a request that waits.
func (c *Checker) queued(a *ask, e *Event) {
	if a.op != subjects.OpAcquire {
		c.failLock(Malformed, a.lock, "%s is answered that it is queued", a)
		return
	}
	a.undone = true // what follows is an event, which may be lost
	c.ticket(a, e.Ticket)
}

// ticket takes a ticket as it is told, in a grant or before it.
func (c *Checker) ticket(a *ask, ticket uint64) {
	l := a.lock
	if ticket == 0 || a.since != l.doubts {
		return
	}
	switch {
	case a.ticket != 0 && a.ticket != ticket:
		c.failLock(Queue, l, "%s has ticket %d, and had ticket %d", a, ticket, a.ticket)
	case a.ticket == 0 && ticket <= a.above && !c.opt.Wild:
		c.failLock(Queue, l, "%s has ticket %d, and ticket %d was told before it was asked for", a, ticket, a.above)
	}
	if a.ticket == 0 {
		a.ticketAt = c.now
	}
	a.ticket = ticket
	l.ticket = max(l.ticket, ticket)
}

// tickets compares a grant with all others that were told since the oldest request that is open: tickets and tokens have one order.
func (c *Checker) tickets(a *ask, h *hold) {
	c.ticket(a, h.ticket)
	l := h.lock
	if h.ticket == 0 || a.since != l.doubts {
		return
	}
	if !(h.token > l.tickets[0] && h.ticket > l.tickets[1]) && !c.opt.Wild {
		for _, o := range l.recent {
			switch {
			case o.ask.since != l.doubts:
			case o.ticket == h.ticket:
				c.failLock(Queue, l, "ticket %d is given to %s and to %s", h.ticket, o.ask, a)
			case o.ticket < h.ticket && o.token > h.token && !passes(h.ask, o.ask):
				c.failLock(Queue, l, "%s (ticket %d, token %d) was overtaken by %s (ticket %d, token %d)", o.ask, o.ticket, o.token, a, h.ticket, h.token)
			case o.ticket > h.ticket && o.token < h.token && !passes(o.ask, h.ask):
				c.failLock(Queue, l, "%s (ticket %d, token %d) was overtaken by %s (ticket %d, token %d)", a, h.ticket, h.token, o.ask, o.ticket, o.token)
			}
		}
	}
	l.trim()
	if len(l.open) == 0 {
		return
	}
	l.recent = append(l.recent, h)
	l.tickets = [2]uint64{max(l.tickets[0], h.token), max(l.tickets[1], h.ticket)}
}

// passes says whether a request may be granted before one that came earlier: readers pass a writer that lets them.
func passes(who, whom *ask) bool {
	return whom.mode == subjects.Exclusive && whom.drain != subjects.Hard && who.mode != subjects.Exclusive
}

// trim leaves out the grants that were told before anybody asked whose end is not known.
func (l *lock) trim() {
	if len(l.open) == 0 {
		l.recent, l.tickets = l.recent[:0], [2]uint64{}
		return
	}
	oldest := l.open[0].at
	n := slices.IndexFunc(l.recent, func(h *hold) bool { return h.at >= oldest })
	if n < 0 {
		n = len(l.recent)
	}
	l.recent = slices.Delete(l.recent, 0, n)
	if len(l.recent) == 0 {
		l.tickets = [2]uint64{}
	}
}

// refused takes the end of an acquire that is not granted.
func (c *Checker) refused(a *ask, e *Event) {
	l := a.lock
	switch {
	case e.Code == 408 && !c.opt.Wild && c.now < a.at+early(a.wait):
		c.failLock(Wait, l, "the wait of %s is over at %s, and was to last %s", a, clock(c.now), a.wait)
	case e.Code == 408 && a.ticket != 0 && a.since == l.doubts && !c.opt.Wild:
		for _, o := range l.recent {
			if o.ask.since == l.doubts && o.ticket > a.ticket && o.at < a.at+early(a.wait) && !passes(o.ask, a) {
				c.failLock(Queue, l, "%s (ticket %d) waited, and was overtaken by %s (ticket %d, token %d, told at %s)", a, a.ticket, o.ask, o.ticket,
					o.token, clock(o.at))
				return
			}
		}
	case e.Code == 410 && e.Reason == subjects.ReasonLost:
		l.unclear++ // it had a token, which nobody was told
	case e.Code == 410 && e.Reason == subjects.ReasonCancelled && a.cancelled == nil:
		c.failLock(Wait, l, "%s is answered that it was cancelled, and nobody has cancelled it", a)
	}
}

// cancelled takes the answer to a cancel.
func (c *Checker) cancelled(a *ask, e *Event, done bool) {
	t := a.target
	if t == nil || !done || a.since != a.lock.doubts {
		return
	}
	l := a.lock
	switch e.Was {
	case "waiting", "unseen":
		if t.hold != nil && t.since == l.doubts {
			c.failLock(Queue, l, "%s was granted with token %d, and its cancel is answered that it was %s", t, t.hold.token, e.Was)
		}
		if e.Was == "unseen" && t.ticket != 0 && t.ticketAt < a.at && t.since == l.doubts {
			c.failLock(Queue, l, "%s was told its ticket %d, and its cancel is answered that it was never seen", t, t.ticket)
		}
		t.left = true
	case "granted":
		if t.hold != nil && e.Token != 0 && e.Token != t.hold.token && t.since == l.doubts {
			c.failLock(Once, l, "%s was granted with token %d, and its cancel has released token %d", t, t.hold.token, e.Token)
		}
		t.freed = true
		if t.hold != nil {
			c.end(t.hold, "cancelled", a.at)
		}
	}
}
