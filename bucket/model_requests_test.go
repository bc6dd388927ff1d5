package bucket

import (
	"cmp"
	"slices"
	"time"

	"github.com/opencluster/oclocks/subjects"
)

// mCall is a request in progress.
type mCall struct {
	m       *model
	z       *mZone
	in      *Input
	req     *subjects.Request
	session *mSession // known to the bucket
	id      bool      // the request is to be remembered
	alone   bool      // its session is not entered
}

func refusal(code int, reason string) *subjects.Refusal {
	return &subjects.Refusal{Code: code, Reason: reason}
}

func bad(field string) *subjects.Refusal {
	return &subjects.Refusal{Code: 400, Reason: "bad_request", Field: field}
}

func (m *model) request(in *Input) {
	c := &mCall{m: m, z: m.zone(in.Zone), in: in, req: in.Req}
	if r := c.admit(); r != nil {
		c.say(r)
		return
	}
	switch in.Req.Op {
	case subjects.OpAcquire:
		c.acquire()
	case subjects.OpRelease, subjects.OpRenew, subjects.OpForce:
		c.alone = c.session == nil && in.Session.ID != "" && in.SessionsFull
		if c.repeated() {
			return
		}
		switch in.Req.Op {
		case subjects.OpRelease:
			c.release()
		case subjects.OpRenew:
			c.renew()
		default:
			c.force()
		}
	case subjects.OpCancel:
		c.cancel()
	case subjects.OpQuery:
		c.query()
	case subjects.OpCheck:
		c.check()
	case subjects.OpSessionClose:
		c.sessionClose()
	case subjects.OpReclaim:
		r := refusal(503, "unavailable")
		if m.recovering() {
			r = c.recovery()
		}
		c.say(r)
	}
}

func (c *mCall) recovery() *subjects.Refusal {
	return &subjects.Refusal{Code: 503, Reason: "unavailable", Why: "recovery",
		RetryAfter: time.Duration(c.m.recoverUntil - c.m.now.Boot)}
}

func (c *mCall) say(body subjects.Body) { c.m.reply(c.z, c.in.Reply, body) }

// admit finds the session and hears of it.
func (c *mCall) admit() *subjects.Refusal {
	s := c.z.sessions[c.in.Session.ID]
	if c.in.Session.ID == "" || s == nil {
		return nil
	}
	switch {
	case s.user != c.in.User:
		return &subjects.Refusal{Code: 403, Reason: "denied", Field: "session"}
	case s.ended != "" && s.ended == "closed" && c.req.Op == subjects.OpSessionClose:
	case s.ended != "":
		return &subjects.Refusal{Code: 410, Reason: "session", Why: s.ended}
	case s.place(&c.in.Session) < 0:
		return &subjects.Refusal{Code: 410, Reason: "session", Why: "superseded"}
	}
	c.session = s
	if s.ended == "" && !s.dormant {
		c.m.hear(c.z, s, &c.in.Session)
	}
	return nil
}

// place says where among the openings of a session that were seen one stands: before the latest of them (-1), behind (1), or it is that.
func (s *mSession) place(by *Session) int {
	number, conn := s.replicated, s.conn
	if s.next != nil {
		number, conn = s.next.Incarnation, s.next.Conn
	}
	switch {
	case by.Incarnation != number:
		return cmp.Compare(by.Incarnation, number)
	case by.Conn.Server != conn.Server:
		return cmp.Compare(by.Conn.Server, conn.Server)
	}
	return cmp.Compare(by.Conn.CID, conn.CID)
}

// hear restarts the lease of a session; a later opening brings it back.
func (m *model) hear(z *mZone, s *mSession, by *Session) {
	if s.place(by) > 0 {
		next := *by
		s.next, s.beat = &next, 0
		m.comeBack(z, s)
	}
	s.deadline = max(s.deadline, m.now.Boot+int64(s.lease))
}

func (m *model) comeBack(z *mZone, s *mSession) {
	s.parted = false
	for _, l := range z.locks {
		for _, h := range l.holds {
			if h.session == s {
				h.parted = never
			}
		}
		for _, w := range l.queue {
			if w.session == s {
				w.parted = never
			}
		}
	}
}

// enterSession does what a change of the session's request does first.
func (c *mCall) enterSession() {
	if c.in.Session.ID == "" || c.alone {
		return
	}
	c.session = c.m.see(c.z, c.in.User, &c.in.Session)
	if s := c.session; c.req.Done > s.done && c.req.Op != subjects.OpCancel {
		s.done = c.req.Done
		for number, r := range s.requests {
			if number < s.done {
				c.m.forget(c.z, r)
			}
		}
	}
}

func (m *model) see(z *mZone, user string, by *Session) *mSession {
	s := z.sessions[by.ID]
	switch {
	case s == nil:
		s = &mSession{id: by.ID, user: user, requests: map[uint64]*mRequest{}}
		z.sessions[by.ID] = s
	case s.dormant, s.next != nil, s.place(by) > 0:
	default:
		return s
	}
	if s.dormant || s.next == nil {
		s.beat = 0
	}
	s.dormant, s.next = false, nil
	s.replicated, s.conn, s.lease = by.Incarnation, by.Conn, by.Lease
	m.comeBack(z, s)
	s.deadline = max(s.deadline, m.now.Boot+int64(s.lease))
	return s
}

// answer answers and remembers.
func (c *mCall) answer(body subjects.Body) {
	if c.id {
		c.m.finish(c.z, c.m.remember(c.z, c.req.Op, c.in, c.scope()), body)
	}
	c.say(body)
}

func (c *mCall) scope() *mSession {
	if c.in.Session.ID == "" || c.alone {
		return nil
	}
	return c.session
}

// known finds a remembered request.
func (c *mCall) known() *mRequest {
	if c.in.Session.ID == "" {
		return c.z.requests[userRequest{c.in.User, c.req.RequestID}]
	}
	if c.session == nil {
		return nil
	}
	return c.session.requests[c.req.Number]
}

// repeated answers a request that is not new; otherwise it decides whether it is to be remembered.
func (c *mCall) repeated() bool {
	switch {
	case c.alone:
		return false
	case c.in.Session.ID == "" && c.req.RequestID == "", c.in.Session.ID != "" && c.req.Number == 0:
		return false
	case c.in.Session.ID != "" && c.req.Number < c.req.Done:
		c.say(bad("request"))
		return true
	}
	if r := c.known(); r != nil {
		c.again(r)
		return true
	}
	if c.in.Session.ID == "" {
		if len(c.z.requests) >= c.m.limits.Requests {
			if c.req.Op == subjects.OpAcquire {
				c.say(refusal(429, "quota"))
				return true
			}
			return false
		}
	} else if s := c.session; s != nil && c.req.Number < s.done {
		r := bad("request")
		r.Above = max(s.done-1, s.forgot)
		for number := range s.requests {
			r.Above = max(r.Above, number)
		}
		c.say(r)
		return true
	} else if s != nil && c.req.Number <= s.forgot {
		c.say(bad("request"))
		return true
	}
	c.id = true
	return false
}

func (c *mCall) again(r *mRequest) {
	if r.op != c.req.Op || r.name != c.req.Name {
		c.say(bad("request"))
		return
	}
	if w := r.waiter; w != nil {
		a, refused := c.asked()
		switch {
		case refused != nil:
			c.say(refused)
		case a.mode != w.mode || a.kind != w.kind || a.slots != w.slots || a.take != w.take || a.enqueue != w.enqueue:
			c.say(bad("request"))
		default:
			if a.wait == 0 {
				a.wait = w.wait
			}
			if w.reply != c.in.Reply || w.wait != a.wait {
				c.enterSession()
				w.reply, w.wait = c.in.Reply, a.wait
				if !w.enqueue {
					c.m.moved++
				}
			}
			w.deadline = c.m.now.Boot + int64(w.wait)
			if w.enqueue {
				c.say(r.outcome)
			}
		}
		return
	}
	g, ok := r.outcome.(*subjects.Grant)
	if !ok {
		c.say(r.outcome)
		return
	}
	h := c.holdBy(func(h *mHold) bool { return h.key == g.Key })
	switch {
	case h == nil:
		c.say(c.lost(g.Key))
	case h.isForced:
		c.say(&subjects.Refusal{Code: 410, Reason: "lost", Why: "forced"})
	case h.kind == subjects.Connection && h.session.parted:
		c.say(reopenRefusal())
	case c.m.recovering() && !c.req.Trusted:
		c.restart(h)
		c.say(c.recovery())
	default:
		c.restart(h)
		again, now := *g, c.m.grantBody(h)
		again.TTL, again.Lease = now.TTL, now.Lease // a renew may have made them shorter
		c.say(&again)
	}
}

func reopenRefusal() *subjects.Refusal {
	return &subjects.Refusal{Code: 503, Reason: "unavailable", Why: "disconnected", RetryAfter: 100 * time.Millisecond}
}

// lost says how a hold with a key ended, as far as that is remembered.
func (c *mCall) lost(key uint64) *subjects.Refusal {
	for _, e := range c.z.ended {
		if e.key == key && e.name == c.req.Name && e.why != "released" {
			return &subjects.Refusal{Code: 410, Reason: "lost", Why: e.why}
		}
	}
	return refusal(410, "lost")
}

func (c *mCall) restart(h *mHold) {
	h.limit = c.m.limitOf(h.ttl)
	if h.kind == subjects.Connection {
		h.session.deadline = max(h.session.deadline, c.m.now.Boot+int64(h.session.lease))
	}
}

func (c *mCall) holdBy(is func(h *mHold) bool) *mHold {
	if l := c.z.locks[c.req.Name]; l != nil {
		if i := slices.IndexFunc(l.holds, is); i >= 0 {
			return l.holds[i]
		}
	}
	return nil
}

// missing is what is said to a key that is no holder's.
func (c *mCall) missing() *subjects.Refusal {
	for _, e := range c.z.ended {
		if e.key == c.req.Key && e.name == c.req.Name {
			if e.why == "released" {
				return refusal(404, "not_held")
			}
			return &subjects.Refusal{Code: 410, Reason: "lost", Why: e.why}
		}
	}
	if l := c.z.locks[c.req.Name]; l != nil && len(l.holds) > 0 {
		return &subjects.Refusal{Code: 403, Reason: "denied", Field: "key"}
	}
	return refusal(404, "not_held")
}

func (c *mCall) release() {
	h := c.holdBy(func(h *mHold) bool { return h.key == c.req.Key })
	if h == nil {
		c.enterIfRemembered()
		c.answer(c.missing())
		return
	}
	c.enterSession()
	c.m.end(c.z, h, "released", c.req.Outcome, func() { c.answer(&subjects.Released{Token: h.token, Held: c.m.held(h)}) })
}

func (c *mCall) renew() {
	h := c.holdBy(func(h *mHold) bool { return h.key == c.req.Key })
	switch {
	case h == nil:
		c.enterIfRemembered()
		c.answer(c.missing())
		return
	case h.isForced:
		c.enterIfRemembered()
		c.answer(&subjects.Refusal{Code: 410, Reason: "lost", Why: "forced"})
		return
	case h.kind == subjects.Connection && h.session.parted:
		c.say(reopenRefusal())
		return
	case c.m.recovering() && !c.req.Trusted:
		c.restart(h)
		c.say(c.recovery())
		return
	}
	changed := false
	if c.req.Has&subjects.HasTTL != 0 && h.ttl != c.req.TTL {
		h.ttl, changed = c.req.TTL, true
	}
	if c.req.Has&subjects.HasData != 0 && h.data != string(c.req.Data) {
		h.data, changed = string(c.req.Data), true
	}
	if changed {
		c.enterSession()
	}
	c.restart(h)
	c.id = c.id && changed
	c.answer(c.m.grantBody(h))
}

func (c *mCall) query() {
	rec := &subjects.Record{Name: c.req.Name}
	if l := c.z.locks[c.req.Name]; l != nil {
		rec.Held, rec.Waiting, rec.Slots = len(l.holds) > 0, len(l.queue), slotsOf(l)
		if rec.Held {
			rec.Mode = l.holds[0].mode
		}
		for _, h := range l.holds {
			told := subjects.Holder{
				Holder: h.holder, User: h.user, Token: h.token, Since: h.since, TTL: h.ttl, Take: h.take, Kind: h.kind, Forced: h.isForced,
			}
			if h.session != nil {
				told.Session = h.session.id
			}
			if h.data != "" {
				told.Data = []byte(h.data)
			}
			rec.Holders = append(rec.Holders, told)
		}
		for _, w := range l.queue {
			told := subjects.Waiter{Ticket: w.ticket, Holder: w.holder, User: w.user, Mode: w.mode, Take: w.take, Since: w.since}
			if w.session != nil {
				told.Session = w.session.id
			}
			rec.Queue = append(rec.Queue, told)
		}
	}
	c.say(rec)
}

func (c *mCall) check() {
	l := c.z.locks[c.req.Name]
	if l == nil || len(l.holds) == 0 {
		last := max(c.z.token, uint64(c.m.term)<<29)
		c.say(&subjects.Checked{Newest: last, Oldest: last + 1})
		return
	}
	current := c.holdBy(func(h *mHold) bool { return h.token == c.req.Token }) != nil
	c.say(&subjects.Checked{Current: current, Newest: l.holds[len(l.holds)-1].token, Oldest: l.holds[0].token})
}
