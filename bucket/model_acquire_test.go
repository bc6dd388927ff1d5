package bucket

import (
	"time"

	"github.com/opencluster/oclocks/subjects"
)

// asked reads an acquire.
func (c *mCall) asked() (mAsk, *subjects.Refusal) {
	r := c.req
	a := mAsk{
		name: r.Name, user: c.in.User, reply: c.in.Reply, holder: r.Holder, mode: r.Mode, kind: r.Kind, take: 1, ttl: r.TTL,
		wait: r.Wait, grace: -1, key: c.in.Key, enqueue: r.Enqueue, recall: r.Recall,
	}
	if a.mode == subjects.Semaphore {
		a.slots, a.take = r.Slots, r.Take
	}
	if a.mode == subjects.Exclusive {
		a.drain = r.Drain
	}
	if a.drain == subjects.Timed {
		a.quiet = r.Quiet
	}
	in := c.in.Session.ID != ""
	if a.kind == subjects.KindDefault {
		a.kind = map[bool]subjects.Kind{true: subjects.Connection, false: subjects.Static}[in]
	}
	if a.kind == subjects.Static && r.Has&subjects.HasTTL == 0 {
		a.ttl = time.Minute
	}
	if a.kind == subjects.Connection && r.Has&subjects.HasGrace != 0 {
		a.grace = r.Grace
	}
	if a.enqueue && r.Has&subjects.HasWait == 0 {
		a.wait = 24 * time.Hour
	}
	switch {
	case a.mode == subjects.Semaphore && a.take > a.slots:
		return a, bad("take")
	case a.kind == subjects.Connection && !in:
		return a, bad("kind")
	case a.enqueue && !in:
		return a, bad("enqueue")
	case a.recall && !in:
		return a, bad("recall")
	}
	return a, nil
}

func (c *mCall) acquire() {
	m := c.m
	a, refused := c.asked()
	if refused != nil {
		c.say(refused)
		return
	}
	if c.session == nil && c.in.Session.ID != "" && c.in.SessionsFull {
		c.say(refusal(429, "quota"))
		return
	}
	if c.repeated() {
		return
	}
	l := c.z.locks[a.name]
	if l == nil {
		l = &mLock{name: a.name}
	}
	if !m.recovering() && m.next(l, asks(l)) >= 0 {
		c.enterSession()
		m.settle(c.z, l)
	}
	if a.mode == subjects.Semaphore && slotsOf(l) != 0 && slotsOf(l) != a.slots {
		c.enterIfRemembered()
		c.answer(bad("slots"))
		return
	}
	queue := append(asks(l), &a)
	free := !m.recovering() && m.next(l, queue) == len(l.queue)
	switch {
	case m.recovering() && a.wait == 0:
		c.say(c.recovery())
		return
	case free && c.in.HoldsFull:
		c.say(refusal(429, "quota"))
		return
	case !free && a.wait == 0:
		c.enterIfRemembered()
		c.answer(heldRefusal(l))
		return
	case free && !a.enqueue:
	case m.stopping:
		c.say(stoppingRefusal())
		return
	case free:
	case c.in.WaitersFull:
		c.say(refusal(429, "quota"))
		return
	case len(l.queue) >= m.limits.Queue:
		c.say(refusal(413, "too_large"))
		return
	}
	c.enterSession()
	c.z.locks[a.name] = l
	a.session = c.scope()
	c.z.ticket++
	if c.id {
		a.request = m.remember(c.z, subjects.OpAcquire, c.in, a.session)
		a.requestText, a.number = a.request.text(), c.req.Number
	}
	if free && !a.enqueue {
		g := m.grant(c.z, l, &a, c.z.ticket)
		m.finish(c.z, a.request, g)
		c.say(g)
		m.zoneEvent(c.z, subjects.LockEvent{Type: "granted", Name: a.name, Token: g.Token, Holder: a.holder, User: a.user})
		if a.recall && len(l.queue) > 0 {
			m.owner(c.z, a.session, subjects.SessionEvent{Type: "recall", Name: a.name, Token: g.Token, Queue: len(l.queue)})
		}
		return
	}
	c.queue(l, a)
}

// enterIfRemembered enters the session if the answer makes a change.
func (c *mCall) enterIfRemembered() {
	if c.id {
		c.enterSession()
	}
}

func (c *mCall) queue(l *mLock, a mAsk) {
	m := c.m
	if a.wait == 0 {
		a.wait = time.Second
	}
	w := &mWaiter{mAsk: a, ticket: c.z.ticket, since: m.now.Wall, deadline: m.now.Boot + int64(a.wait), parted: never}
	if s := a.session; s != nil && s.parted {
		w.parted = m.now.Boot + int64(s.lease)
	}
	if a.request != nil {
		a.request.waiter = w
	}
	l.queue = append(l.queue, w)
	if a.enqueue {
		q := &subjects.Queued{Name: a.name, Ticket: w.ticket, Place: uint32(len(l.queue)), Lease: a.ttl, Bucket: 1}
		if a.kind == subjects.Connection {
			q.Lease = a.session.lease
		}
		if a.request != nil {
			a.request.outcome = q
		}
		w.placed = q.Place == 1
		c.say(q)
	}
	if len(l.queue) == 1 {
		for _, h := range l.holds {
			if h.recall {
				m.owner(c.z, h.session, subjects.SessionEvent{Type: "recall", Name: a.name, Token: h.token, Queue: 1})
			}
		}
	}
	m.settle(c.z, l)
}

func stoppingRefusal() *subjects.Refusal {
	return &subjects.Refusal{Code: 503, Reason: "unavailable", Why: "stopping", RetryAfter: time.Second}
}

func slotsOf(l *mLock) uint32 {
	for _, h := range l.holds {
		if h.mode == subjects.Semaphore {
			return h.slots
		}
	}
	for _, w := range l.queue {
		if w.mode == subjects.Semaphore {
			return w.slots
		}
	}
	return 0
}

func heldRefusal(l *mLock) *subjects.Refusal {
	r := &subjects.Refusal{Code: 409, Reason: "held", Queue: len(l.queue), HasQueue: true}
	if len(l.holds) > 0 {
		h := l.holds[0]
		r.Holder, r.Since = h.holder, h.since
		if r.Holder == "" {
			r.Holder = h.user
		}
	}
	return r
}
