package check

import (
	"slices"
	"time"

	"github.com/opencluster/oclocks/subjects"
)

// leased says whether the broker may end the hold by itself.
func (h *hold) leased() bool { return h.ttl > 0 || h.lease > 0 || h.ask.kind == subjects.Connection }

// trusted says whether its client believes in it beyond a time, and that this excludes others by what is promised.
func (h *hold) trusted(c *Checker, at int64) bool {
	return h.until > at && !h.exempt && (!c.opt.Wild || !h.leased())
}

func (h *hold) disbelieve(now int64) { h.until = min(h.until, now) }

// believe takes what a client believes from now on.
func (c *Checker) believe(cl *client, e *Event) {
	h := cl.zone.hold(e.Name, e.Token)
	if h == nil {
		c.fail(Malformed, e, "%s believes in token %d of %s, which nobody was granted", cl.name, e.Token, e.Name)
		return
	}
	c.stats.Beliefs++
	h.touched = c.now
	if h.returned || h.ended != "" || h.exempt {
		return
	}
	h.until = e.Until
	if e.Until <= c.now {
		return
	}
	l := h.lock
	if !h.listed {
		h.listed = true
		l.believed = append(l.believed, h)
	}
	c.exclusion(l, h)
}

// exclusion compares a hold that its client has just begun or gone on to believe in with those that others believe in.
func (c *Checker) exclusion(l *lock, h *hold) {
	if len(l.believed) == 1 {
		return
	}
	c.sweep(l)
	if c.opt.Wild && h.leased() {
		return
	}
	sum := uint64(0)
	for _, o := range l.believed {
		if !o.trusted(c, c.now) {
			continue
		}
		if o.ask.mode == subjects.Semaphore {
			sum += uint64(o.ask.take)
		}
		if o == h || o.ask.mode == h.ask.mode && h.ask.mode != subjects.Exclusive {
			continue
		}
		c.failLock(Exclusion, l, "two believe in %s: %s; and %s", l.name, h, o)
		return
	}
	if h.ask.mode == subjects.Semaphore && sum > uint64(h.ask.slots) {
		c.failLock(Exclusion, l, "%d of %d slots of %s are believed to be taken, the last by %s", sum, h.ask.slots, l.name, h)
	}
}

// sweep takes out of the list what nobody believes in any more.
func (c *Checker) sweep(l *lock) {
	l.believed = slices.DeleteFunc(l.believed, func(h *hold) bool {
		if h.listed = h.until > c.now; !h.listed && h.ended == "" && h.leased() {
			c.fade(nil, h)
		}
		return !h.listed
	})
}

// disconnected ends what is promised of holds that may be given to others before their clients notice.
func (c *Checker) disconnected(cl *client) {
	for _, h := range cl.holds {
		if h.lax() {
			h.exempt = true
			h.loosen(c.now)
		}
	}
}

// lax says whether the hold may be given to others when its connection breaks, before its client notices.
func (h *hold) lax() bool {
	return h.ask.kind == subjects.Connection && h.ask.grace >= 0 && (h.lease == 0 || h.ask.grace < h.lease)
}

// loosen notes that the hold may be over from then on, whatever was told of its time.
func (h *hold) loosen(at int64) { h.loose = min(h.loose, at) }

// sessionOpened notes who has the session. Another client that comes back as the same one may end what the first had in it, unless the
// first one has come back later.
func (c *Checker) sessionOpened(cl *client, e *Event) {
	all, known, now := cl.zone.sessions[e.Session], false, opening{cl, e.Incarnation, e.Place}
	for i := range all {
		o := &all[i]
		switch {
		case o.client == cl:
			known = true
			*o = now
		case now.mayFollow(o):
			for _, h := range o.client.holds {
				if h.ask.session == e.Session {
					h.share(c.now)
				}
			}
		}
	}
	if !known {
		cl.zone.sessions[e.Session] = append(all, now)
	}
}

// share notes that somebody else may end the hold, who has come back to its session.
func (h *hold) share(now int64) {
	h.exempt = true
	h.loosen(now)
}

// superseded says whether another client has come back to a session of the client's, and may be the later one.
func (cl *client) superseded(session string) bool {
	all, own := cl.zone.sessions[session], opening{}
	for _, o := range all {
		if o.client == cl {
			own = o
		}
	}
	return slices.ContainsFunc(all, func(o opening) bool { return o.client != cl && o.mayFollow(&own) })
}

// hearsSuperseded takes the word that somebody else has come back to the session. "" is one that is not known.
func (c *Checker) hearsSuperseded(cl *client, e *Event) {
	if e.Why == subjects.WhySuperseded && e.Session != "" && !cl.superseded(e.Session) {
		c.fail(Kept, e, "%s hears that its session %s is superseded, and nobody else has come back to it since", cl.name, e.Session)
	}
}

// sessionLost ends the belief in what belongs to the session.
func (c *Checker) sessionLost(cl *client, e *Event) {
	c.hearsSuperseded(cl, e)
	for _, h := range cl.holds {
		if h.ask.kind == subjects.Connection && h.ask.session == e.Session {
			h.disbelieve(c.now)
			h.orphan, h.touched = true, c.now
			h.loosen(c.now)
		}
	}
}

func (c *Checker) died(cl *client) {
	cl.dead = true
	for _, h := range cl.holds {
		h.disbelieve(c.now)
		h.touched = c.now
	}
	c.disconnected(cl)
	for _, a := range inOrder(cl.asks) {
		if !a.known() && !a.given {
			c.giveUp(a)
		}
	}
}

// doubt notes that the end of the history of some buckets may be lost: holds that no reclaim brings back may be gone.
func (c *Checker) doubt(e *Event) {
	c.stats.Doubts++
	c.doubted = slices.DeleteFunc(c.doubted, func(d Event) bool { return d.Zone == e.Zone && d.Bucket == e.Bucket && d.Buckets == e.Buckets })
	c.doubted = append(c.doubted, Event{At: e.At, Zone: e.Zone, Bucket: e.Bucket, Buckets: e.Buckets})
	for _, z := range c.zonesInOrder() {
		for _, l := range z.order {
			if !e.doubts(l) {
				continue
			}
			l.doubts++
			l.ticket, l.doubtAt, l.back = 0, c.now, l.high
			for _, h := range l.holds { // order: each by itself
				h.doubt(c)
			}
			c.cut(l)
		}
	}
}

// withheld notes that some buckets gave nothing to anybody until now.
func (c *Checker) withheld(e *Event) {
	for _, z := range c.zonesInOrder() {
		for _, l := range z.order {
			if e.doubts(l) {
				l.keptAt = c.now
			}
		}
	}
}

// doubts says whether a Doubt, or what was withheld, is about the lock.
func (e *Event) doubts(l *lock) bool {
	return (e.Zone == "" || e.Zone == l.zone.name) && (e.Buckets <= 1 || subjects.BucketOf(l.name, e.Buckets) == e.Bucket)
}

// doubt notes that a recovery may have lost the hold; without it, exclusion is promised only of what a recovery waits for.
func (h *hold) doubt(c *Checker) {
	h.doubted = true
	h.loosen(c.now)
	if !h.leased() || c.opt.MaxLease > 0 && h.span() > c.opt.MaxLease {
		h.exempt = true
		h.disbelieve(c.now)
	}
}

// span is how long the hold stays without being kept or renewed.
func (h *hold) span() time.Duration {
	if h.lease > 0 && h.ttl > 0 {
		return min(h.lease, h.ttl)
	}
	return max(h.lease, h.ttl)
}
