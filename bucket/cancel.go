package bucket

import (
	"github.com/opencluster/oclocks/internal/mutant"
	"github.com/opencluster/oclocks/subjects"
)

// The outcomes of a cancel, its `was`.
const (
	wasWaiting   = "waiting"
	wasGranted   = "granted"
	wasUnseen    = "unseen"
	wasReleased  = "released"
	wasCancelled = "cancelled"
)

// cancel undoes an acquire that its client awaits no more: a waiting one leaves the queue, a granted one is released, and
// one that has not come yet is refused when it comes. Its own id is the acquire's, so it needs none: it can be repeated.
func (t *Table) cancel(c *call) {
	r := c.identify(subjects.OpAcquire)
	switch {
	case r.op == subjects.OpNone:
		t.refuse(c, badRequest("request", "request is missing; cancel needs the request of the acquire"))
		return
	case len(r.id) > maxRequestID:
		t.refuse(c, badRequest("request", "request is longer than 64 characters"))
		return
	}
	if id := t.recalled(c, r); id != 0 {
		t.cancelKnown(c, r, t.entries.at(id))
		return
	}
	if c.session != 0 {
		if s := t.sessions.at(c.session); r.number < s.done || r.number <= s.forgot {
			t.cancelForgotten(c, r, s)
			return
		}
	}
	switch {
	case c.crowded():
		t.refuse(c, overQuota("sessions"))
		return
	case r.id != "" && t.manyRequests(), c.session != 0 && t.sessions.at(c.session).outcomes >= maxOutcomes:
		t.refuse(c, overQuota("requests with an id"))
		return
	}
	t.change.by = c.introduction()
	o := op{code: opAnswer, body: cancelled()}
	o.session, o.user, o.request = c.sessionID(), c.in.User, r
	if !mutant.On(mutant.CancelledLater) {
		t.do(&o)
	}
	t.cancelled(c, r, wasUnseen, 0)
}

// cancelKnown cancels a request that is remembered.
func (t *Table) cancelKnown(c *call, r request, e *entry) {
	if e.op != subjects.OpAcquire || e.name != t.at.index {
		t.refuse(c, badRequest("request", "request was used for another operation or name"))
		return
	}
	t.change.by = c.introduction()
	if e.waiter != 0 {
		t.leave(t.waiters.at(e.waiter).ticket, whyCancelled)
		t.cancelled(c, r, wasWaiting, 0)
		t.settle()
		return
	}
	body, _ := unpackBody(e.outcome, e.user, t.sessionName(e.session))
	g, ok := body.(*subjects.Grant)
	if !ok {
		t.cancelled(c, r, wasCancelled, 0)
		return
	}
	if t.holdByToken(g.Token) == 0 {
		t.cancelled(c, r, wasReleased, g.Token)
		return
	}
	t.cancelHold(c, r, g.Token)
}

// cancelForgotten cancels a request whose outcome the client has had and the table has forgotten: what came of it is
// found among what the session has. Few holds know their request's number (keepNumbers); the client may know the token, from an
// earlier answer to this cancel that a recovery has lost.
func (t *Table) cancelForgotten(c *call, r request, s *session) {
	t.change.by = c.introduction()
	for id := s.waits.first; id != 0; id = t.waiters.at(id).snext {
		if w := t.waiters.at(id); w.request.number == r.number && w.lock == t.at.lock {
			t.leave(w.ticket, whyCancelled)
			t.cancelled(c, r, wasWaiting, 0)
			t.settle()
			return
		}
	}
	var token uint64
	for id := s.holds.first; id != 0; id = t.holds.at(id).snext {
		switch h := t.holds.at(id); {
		case h.lock != t.at.lock:
		case h.more != 0 && t.extras.at(h.more).request == r.number:
			t.cancelHold(c, r, h.token)
			return
		case h.token == c.req.Token:
			token = h.token
		}
	}
	if token != 0 {
		t.cancelHold(c, r, token)
		return
	}
	t.cancelled(c, r, wasReleased, 0)
}

// keepNumbers gives those holds their request's number whose outcome is remembered, when a new primary begins: see doc.go, "Which
// holds know their request". Both lists are in the order of the tokens.
func (t *Table) keepNumbers() {
	for sid := uint32(1); sid < t.sessions.end(); sid++ {
		s := t.sessions.at(sid)
		if s.id == "" {
			continue
		}
		id := s.holds.last
		for eid := s.finished.last; eid != 0 && id != 0; eid = t.entries.at(eid).prev {
			e := t.entries.at(eid)
			if e.op != subjects.OpAcquire {
				continue
			}
			token := grantedToken(e.outcome)
			for token != 0 && id != 0 && t.holds.at(id).token > token {
				id = t.holds.at(id).sprev
			}
			if token != 0 && id != 0 && t.holds.at(id).token == token {
				t.keepNumber(id, e.number)
			}
		}
	}
}

// keepNumber lets a hold of a session know its request's number, 0 if that had none.
func (t *Table) keepNumber(id uint32, number uint64) {
	if h := t.holds.at(id); h.session != 0 && number != 0 {
		t.extra(h).request = number
	}
}

// cancelHold releases the hold that the acquire was granted.
func (t *Table) cancelHold(c *call, r request, token uint64) {
	id := t.holdByToken(token)
	t.do(&op{code: opEnd, token: token, why: whyReleased, span: t.heldFor(id)})
	t.cancelled(c, r, wasGranted, token)
	t.settle()
}

func (t *Table) cancelled(c *call, r request, was string, token uint64) {
	t.answer(c, &subjects.Cancelled{Request: r.text(), Was: was, Token: token})
}
