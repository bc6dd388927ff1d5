package bucket

import (
	"github.com/opencluster/oclocks/internal/mutant"
	"github.com/opencluster/oclocks/subjects"
)

func (t *Table) applyAdmit(o *op) bool {
	z := t.at.zone
	id := z.tickets[o.ticket]
	if id == 0 {
		return false
	}
	w := t.waiters.at(id)
	l := t.locks.at(w.lock)
	if t.shares.at(l.more).first != id && t.shares.at(l.more).firm != id || !t.fits(l, &w.want) {
		return false
	}
	token := t.nextToken(z)
	if token == 0 {
		return false
	}
	t.atLock(w.lock)
	asked, sid, entry, ticket := w.want, w.session, w.entry, w.ticket
	w.entry = 0
	t.removeWaiter(id)
	t.keepNumber(t.addHold(&asked, sid, token, o.since), asked.request.number)
	g := t.grantOf(&asked, sid, token, ticket)
	g.Waited, g.Beat, g.Durable = o.span, o.beat, o.durable
	if entry != 0 {
		t.finishEntry(entry, g, z)
	}
	t.tellWaiter(&asked, sid, ticket, "granted", g)
	t.granted(z, &asked, g)
	return true
}

// tellWaiter answers a waiter, or its session if it was answered already.
func (t *Table) tellWaiter(w *want, sid uint32, ticket uint64, event string, body subjects.Body) {
	if w.bits&wantEnqueue == 0 {
		t.effect(Effect{Kind: Reply, Zone: t.at.zone.name, To: w.reply, Body: body})
		return
	}
	e := &subjects.SessionEvent{Type: event, Name: t.at.name, Ticket: ticket, Request: w.request.text()}
	switch b := body.(type) {
	case *subjects.Grant:
		e.Grant, e.Token = b, b.Token
	case *subjects.Refusal:
		e.Refusal, e.Queue, e.Why = b, b.Queue, b.Why
	}
	t.notifyOwner(t.sessions.at(sid), e)
}

func (t *Table) applyLeave(o *op) bool {
	z := t.at.zone
	id := z.tickets[o.ticket]
	if id == 0 || o.why == whyNone {
		return false
	}
	w := t.waiters.at(id)
	t.atLock(w.lock)
	body := left(o.why, t.shares.at(t.lock().more).waiting)
	asked, sid, entry := w.want, w.session, w.entry
	w.entry = 0
	if o.why == whyTimeout && mutant.On(mutant.TimedOutStays) {
		w.deadline = never
	} else {
		t.removeWaiter(id)
	}
	event := "cancelled"
	switch {
	case o.why == whyTimeout:
		event = "timeout"
		fallthrough
	case o.why == whyCancelled:
		if entry != 0 {
			t.finishEntry(entry, body, z)
		}
	case entry != 0:
		// It took no effect and may be asked anew.
		t.closeEntry(entry)
	}
	t.tellWaiter(&asked, sid, o.ticket, event, body)
	t.dropLock(t.at.lock)
	return true
}

// waitAgain takes the repeat of an acquire that waits: its place is kept, its wait begins anew, and the newest reply
// subject is answered.
func (t *Table) waitAgain(c *call, e *entry) {
	w := t.waiters.at(e.waiter)
	var wanted want
	refusal := c.wanted(&wanted)
	switch {
	case refusal != nil:
		t.refuse(c, refusal)
		return
	case wanted.mode != w.mode || wanted.kind != w.kind || wanted.slots != w.slots || wanted.take != w.take ||
		(wanted.bits^w.bits)&wantEnqueue != 0:
		t.refuse(c, badRequest("request", "request waits already and asked for something else; take a new one"))
		return
	case wanted.wait == 0:
		wanted.wait = w.wait
	}
	id := e.waiter
	if w.reply != c.in.Reply || w.wait != wanted.wait {
		t.change.by = c.introduction()
		o := op{code: opMove, ticket: w.ticket}
		o.wait, o.reply = wanted.wait, c.in.Reply
		t.do(&o)
	}
	w.deadline = t.after(w.wait)
	t.wheel.set(timerOf(waiterTimer, id))
	if w.bits&wantEnqueue != 0 {
		body, _ := unpackBody(e.outcome, e.user, t.sessionName(e.session))
		t.complete(body)
		t.reply(c, body)
	}
}

func (t *Table) applyMove(o *op) bool {
	id := t.at.zone.tickets[o.ticket]
	if id == 0 || o.wait == 0 {
		return false
	}
	w := t.waiters.at(id)
	w.reply, w.wait = t.lasting(o.reply), o.wait
	return true
}

func (t *Table) applyPlace(o *op) bool {
	id := t.at.zone.tickets[o.ticket]
	if id == 0 {
		return false
	}
	w := t.waiters.at(id)
	if w.bits&wantEnqueue == 0 {
		return false
	}
	w.bits |= wantPlaced
	t.notifyOwner(t.sessions.at(w.session), &subjects.SessionEvent{
		Type: "place", Name: t.locks.name(t.locks.at(w.lock)), Ticket: w.ticket, Place: 1, Request: w.request.text(),
	})
	return true
}

// applyRecall tells one holder, or all if no token is named, that somebody waits.
func (t *Table) applyRecall(o *op) bool {
	l := t.lock()
	if l == nil {
		return false
	}
	id := l.hold
	if o.token != 0 {
		if id = t.holdByToken(o.token); id == 0 {
			return false
		}
	}
	for ; id != 0; id = t.holds.at(id).next {
		h := t.holds.at(id)
		if h.is(holdRecall) && h.session != 0 {
			t.notifyOwner(t.sessions.at(h.session), &subjects.SessionEvent{
				Type: "recall", Name: t.at.name, Token: h.token, Queue: t.waiting(l),
			})
		}
		if o.token != 0 {
			break
		}
	}
	return true
}

// detach lets a waiter's request be forgotten while it waits on.
func (t *Table) detach(w *waiter) {
	if w.entry != 0 {
		entry := w.entry
		w.entry = 0
		t.closeEntry(entry)
	}
}

// fireWait ends a wait whose time is over.
func (t *Table) fireWait(id uint32) {
	w := t.waiters.at(id)
	t.atLock(w.lock)
	if w.parted <= t.now.Boot {
		t.leave(w.ticket, whyDisconnected)
	} else {
		t.leave(w.ticket, whyTimeout)
	}
	t.settle()
}
