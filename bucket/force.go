package bucket

import (
	"time"

	"github.com/opencluster/oclocks/subjects"
)

// force ends somebody else's hold: at once if `now` is asked for; otherwise its holder is told, can renew it no more, and
// has until the end of its lease to release it.
func (t *Table) force(c *call) {
	c.anonymous = c.crowded()
	switch {
	case c.req.Token == 0:
		t.refuse(c, badRequest("token", "token is missing; force needs the fencing token of the hold"))
		return
	case len(c.req.Reason) > subjects.MaxText:
		t.refuse(c, tooLarge("reason", "reason is longer than 1024 bytes"))
		return
	}
	if !t.enter(c) {
		return
	}
	t.change.by = c.introduction()
	id := t.holdByToken(c.req.Token)
	if id == 0 {
		t.answer(c, notHeldBy())
		return
	}
	h := t.holds.at(id)
	token := h.token
	if c.req.Now {
		t.do(&op{code: opEnd, token: token, why: whyForced, span: t.heldFor(id), text: c.req.Reason})
		t.answer(c, &subjects.Forced{Token: token, Ended: true})
		t.settle()
		return
	}
	if !h.is(holdForced) {
		if t.forcedUntil(h) == never {
			t.answer(c, badRequest("now", `the hold has neither lease nor ttl; send "now":true to end it at once`))
			return
		}
		t.do(&op{code: opForce, token: token})
	}
	ends := time.Duration(max(0, t.extras.at(t.holds.at(id).more).forced-t.now.Boot))
	t.answer(c, &subjects.Forced{Token: token, Ends: ends})
}

func notHeldBy() *subjects.Refusal {
	return &subjects.Refusal{Code: 404, Reason: subjects.ReasonNotHeld, Message: "the lock is not held with this token"}
}

// forcedUntil is when a hold that is forced now is over at the latest: when its holder trusts it no more.
func (t *Table) forcedUntil(h *hold) int64 {
	until := h.limit
	if h.kind() == subjects.Connection {
		until = min(until, t.sessions.at(h.session).deadline)
	}
	if h.more != 0 {
		until = min(until, t.extras.at(h.more).parted)
	}
	return until
}

func (t *Table) applyForce(o *op) bool {
	id := t.holdByToken(o.token)
	if id == 0 {
		return false
	}
	h := t.holds.at(id)
	if h.is(holdForced) {
		return false
	}
	h.mark(holdForced)
	more := t.extra(h)
	if h.session != 0 {
		s := t.sessions.at(h.session)
		s.reckon(h.token, -1)
		t.notifyOwner(s, &subjects.SessionEvent{
			Type: "forced", Name: t.at.name, Token: h.token, Why: subjects.WhyForced,
		})
	}
	if t.primary {
		more.forced = t.forcedUntil(h)
		t.wheel.set(timerOf(holdTimer, id))
	}
	return true
}
