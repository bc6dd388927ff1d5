package bucket

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/opencluster/oclocks/subjects"
)

// Cancel, force, the ends of sessions, and what time does, in the naive model.

func (c *mCall) cancel() {
	var text string
	switch {
	case c.in.Session.ID != "" && c.req.Number > 0:
		text = fmt.Sprint(c.req.Number)
	case c.in.Session.ID == "" && c.req.RequestID != "":
		text = c.req.RequestID
	default:
		c.say(bad("request"))
		return
	}
	was := func(was string, token uint64) { c.say(&subjects.Cancelled{Request: text, Was: was, Token: token}) }
	if r := c.known(); r != nil {
		c.cancelKnown(r, was)
		return
	}
	if s := c.session; s != nil && (c.req.Number < s.done || c.req.Number <= s.forgot) {
		c.cancelForgotten(s, was)
		return
	}
	if c.session == nil && c.in.Session.ID != "" && c.in.SessionsFull ||
		c.in.Session.ID == "" && len(c.z.requests) >= c.m.limits.Requests {
		c.say(refusal(429, "quota"))
		return
	}
	c.enterSession()
	c.m.finish(c.z, c.m.remember(c.z, subjects.OpAcquire, c.in, c.scope()), refusal(410, "cancelled"))
	was("unseen", 0)
}

func (c *mCall) cancelKnown(r *mRequest, was func(string, uint64)) {
	if r.op != subjects.OpAcquire || r.name != c.req.Name {
		c.say(bad("request"))
		return
	}
	if w := r.waiter; w != nil {
		c.cancelWaiter(w, was)
		return
	}
	g, ok := r.outcome.(*subjects.Grant)
	if !ok {
		was("cancelled", 0)
		return
	}
	h := c.holdBy(func(h *mHold) bool { return h.token == g.Token })
	if h == nil {
		was("released", g.Token)
		return
	}
	c.enterSession()
	c.m.end(c.z, h, "released", "", func() { was("granted", h.token) })
}

func (c *mCall) cancelWaiter(w *mWaiter, was func(string, uint64)) {
	c.enterSession()
	l := c.m.leave(c.z, w, "cancelled")
	was("waiting", 0)
	c.m.settle(c.z, l)
}

func (c *mCall) cancelForgotten(s *mSession, was func(string, uint64)) {
	if l := c.z.locks[c.req.Name]; l != nil {
		for _, w := range l.queue {
			if w.session == s && w.number == c.req.Number {
				c.cancelWaiter(w, was)
				return
			}
		}
		for _, byNumber := range []bool{true, false} {
			for _, h := range l.holds {
				if h.session == s && (byNumber && h.keeps && h.number == c.req.Number || !byNumber && h.token == c.req.Token) {
					c.enterSession()
					c.m.end(c.z, h, "released", "", func() { was("granted", h.token) })
					return
				}
			}
		}
	}
	was("released", 0)
}

func (m *model) forcedUntil(h *mHold) int64 {
	until := min(h.limit, h.parted)
	if h.kind == subjects.Connection {
		until = min(until, h.session.deadline)
	}
	return until
}

func (c *mCall) force() {
	h := c.holdBy(func(h *mHold) bool { return h.token == c.req.Token })
	switch {
	case h == nil:
		c.enterIfRemembered()
		c.answer(refusal(404, "not_held"))
	case c.req.Now:
		c.enterSession()
		c.m.end(c.z, h, "forced", c.req.Reason, func() { c.answer(&subjects.Forced{Token: h.token, Ended: true}) })
	case !h.isForced && c.m.forcedUntil(h) == never:
		c.enterIfRemembered()
		c.answer(bad("now"))
	default:
		if h.isForced {
			c.enterIfRemembered()
		} else {
			c.enterSession()
			h.isForced, h.forced = true, c.m.forcedUntil(h)
			if h.session != nil {
				c.m.owner(c.z, h.session, subjects.SessionEvent{Type: "forced", Name: h.name, Token: h.token, Why: "forced"})
			}
		}
		c.answer(&subjects.Forced{Token: h.token, Ends: time.Duration(max(0, h.forced-c.m.now.Boot))})
	}
}

func (c *mCall) sessionClose() {
	switch s := c.session; {
	case c.in.Session.ID == "":
		c.say(bad("session"))
	case s == nil || s.dormant:
		c.say(&subjects.SessionClosed{})
	case s.ended != "":
		c.say(&subjects.SessionClosed{Released: s.released})
	default:
		c.say(&subjects.SessionClosed{Released: c.m.endSession(c.z, s, "closed")})
	}
}

// of gives what a session has: its waiters by ticket and its holds by token.
func (m *model) of(z *mZone, s *mSession) (waiters []*mWaiter, holds []*mHold) {
	for _, l := range z.locks {
		for _, w := range l.queue {
			if w.session == s {
				waiters = append(waiters, w)
			}
		}
		for _, h := range l.holds {
			if h.session == s {
				holds = append(holds, h)
			}
		}
	}
	slices.SortFunc(waiters, func(a, b *mWaiter) int { return cmp.Compare(a.ticket, b.ticket) })
	slices.SortFunc(holds, func(a, b *mHold) int { return cmp.Compare(a.token, b.token) })
	return waiters, holds
}

func (m *model) endSession(z *mZone, s *mSession, why string) (released int) {
	waiters, holds := m.of(z, s)
	for _, w := range waiters {
		m.leave(z, w, why)
	}
	for _, h := range holds {
		if h.kind == subjects.Connection {
			ends := why
			if h.isForced && why != "closed" {
				ends = "forced"
			}
			m.end(z, h, ends, "", nil)
			released++
		}
	}
	for _, w := range waiters {
		if l := z.locks[w.name]; l != nil {
			m.settle(z, l)
		}
	}
	s.requests, s.finished = map[uint64]*mRequest{}, nil
	s.ended, s.released, s.parted, s.conn = why, released, false, Conn{}
	s.next = nil
	s.deadline = m.now.Boot + int64(max(2*time.Minute, 2*s.lease))
	return released
}

func (m *model) dropSession(z *mZone, s *mSession) {
	s.requests, s.finished = map[uint64]*mRequest{}, nil
	s.ended, s.dormant, s.conn, s.parted, s.beat = "", true, Conn{}, false, 0
	s.next = nil
	m.forgetDormant(z, s)
}

// forgetDormant forgets a session of which only static holds were left, with the last of them.
func (m *model) forgetDormant(z *mZone, s *mSession) {
	if s == nil || !s.dormant {
		return
	}
	if _, holds := m.of(z, s); len(holds) == 0 {
		delete(z.sessions, s.id)
	}
}

func (m *model) disconnect(in *Input) {
	z := m.zones[in.Zone]
	if z == nil || in.Conn.Server == "" {
		return
	}
	var parted []*mSession
	for _, s := range z.sessions {
		if s.conn == in.Conn && s.ended == "" && !s.dormant && s.next == nil {
			parted = append(parted, s)
		}
	}
	slices.SortFunc(parted, func(a, b *mSession) int { return cmp.Compare(a.id, b.id) })
	for _, s := range parted {
		s.parted = true
		waiters, holds := m.of(z, s)
		for _, w := range waiters {
			w.parted = min(w.parted, m.now.Boot+int64(s.lease))
		}
		for _, h := range holds {
			if h.kind == subjects.Connection {
				h.parted = min(h.parted, m.now.Boot+int64(h.graceOf()))
			}
		}
	}
	for _, s := range parted {
		_, holds := m.of(z, s)
		for _, h := range holds {
			if h.parted <= m.now.Boot {
				m.endBy(z, h, "disconnected")
			}
		}
	}
}

func (m *model) endBy(z *mZone, h *mHold, why string) {
	if h.isForced {
		why = "forced"
	}
	m.end(z, h, why, "", nil)
}

func (m *model) stop(in *Input) {
	m.stopping = true
	type place struct {
		z *mZone
		w *mWaiter
	}
	var leaving []place
	for _, z := range m.zones {
		for _, l := range z.locks {
			for _, w := range l.queue {
				if w.session == nil || !in.KeepSessions {
					leaving = append(leaving, place{z, w})
				}
			}
		}
	}
	slices.SortFunc(leaving, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.z.name, b.z.name), cmp.Compare(a.w.ticket, b.w.ticket))
	})
	for _, p := range leaving {
		m.leave(p.z, p.w, "stopping")
	}
	for _, p := range leaving {
		if l := p.z.locks[p.w.name]; l != nil {
			m.settle(p.z, l)
		}
	}
}

func (m *model) keep(zone string, by Session, beat uint64) (count int, hash uint64, known bool, code int) {
	z := m.zone(zone)
	s := z.sessions[by.ID]
	switch {
	case s == nil:
		return 0, 0, false, 0
	case s.ended != "" || s.place(&by) < 0:
		return 0, 0, true, 410
	case !s.dormant && s.parted && s.place(&by) == 0:
		return 0, 0, true, 503
	}
	if !s.dormant {
		m.hear(z, s, &by)
		s.beat = max(s.beat, beat)
	}
	_, holds := m.of(z, s)
	for _, h := range holds {
		if !h.isForced {
			count, hash = count+1, hash^subjects.TokenHash(h.token)
		}
	}
	return count, hash, true, 0
}
