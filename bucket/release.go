package bucket

import (
	"time"

	"github.com/opencluster/oclocks/internal/mutant"
	"github.com/opencluster/oclocks/subjects"
)

// release ends a hold. Who has the key may do it: that is how a static lock is released after a reconnect, by another
// session or none.
func (t *Table) release(c *call) {
	if !t.keyed(c) || !t.enter(c) {
		return
	}
	if len(c.req.Outcome) > subjects.MaxText {
		t.refuse(c, tooLarge("outcome", "outcome is longer than 1024 bytes"))
		return
	}
	t.change.by = c.introduction()
	id := t.holdByKey(c.req.Key)
	if id == 0 && t.lock() != nil && mutant.On(mutant.ReleaseIgnoresKey) {
		id = t.lock().hold
	}
	if id == 0 {
		t.answer(c, t.missing(c.req.Key))
		return
	}
	token := t.holds.at(id).token
	held := t.heldFor(id)
	t.do(&op{code: opEnd, token: token, why: whyReleased, span: held, text: c.req.Outcome})
	released := t.answers.release()
	*released = subjects.Released{Token: token, Held: held}
	t.answer(c, released)
	t.settle()
}

// keyed checks that a request has a key, and decides about a session that does not fit into the zone: what frees must
// work, so the request is carried out without it.
func (t *Table) keyed(c *call) bool {
	if c.req.Key == 0 {
		t.refuse(c, badRequest("key", "key is missing; send the unlock key of the grant"))
		return false
	}
	c.anonymous = c.crowded()
	return true
}

// crowded says whether the call has a session that the zone has no room for.
func (c *call) crowded() bool {
	return c.in.Session.ID != "" && c.session == 0 && c.in.SessionsFull
}

// missing is what to tell who has a key that is no holder's.
func (t *Table) missing(key uint64) *subjects.Refusal {
	if z := t.at.zone; z != nil {
		switch why := z.ended.find(key, t.at.index); why {
		case whyNone:
		case whyReleased:
			return notHeld()
		default:
			return lost(why)
		}
	}
	if l := t.lock(); l != nil && l.hold != 0 {
		return denied()
	}
	return notHeld()
}

// heldFor is how long a hold has been held, by the wall clock: for people.
func (t *Table) heldFor(id uint32) time.Duration {
	return time.Duration(max(0, t.now.Wall-t.holds.at(id).since)) * time.Millisecond
}

// endHold ends a hold for a reason and hands its lock on.
func (t *Table) endHold(id uint32, why why) {
	h := t.holds.at(id)
	if h.is(holdForced) && !why.asked() {
		why = whyForced
	}
	t.atLock(h.lock)
	t.do(&op{code: opEnd, token: h.token, why: why, span: t.heldFor(id)})
	t.settle()
}

func (t *Table) applyEnd(o *op) bool {
	id := t.holdByToken(o.token)
	if id == 0 || o.why == whyNone {
		return false
	}
	h, z := t.holds.at(id), t.at.zone
	name := t.at.name
	z.ended.add(end{key: h.key, name: t.at.index, why: o.why})
	t.hasEnded(z)
	if h.session != 0 && !o.why.asked() {
		t.notifyOwner(t.sessions.at(h.session), &subjects.SessionEvent{
			Type: "lost", Name: name, Token: h.token, Why: o.why.String(),
		})
	}
	if z.settings.LockEvents {
		e := &subjects.LockEvent{
			Type: o.why.event(), Name: name, Token: h.token, User: t.texts.text(h.user), Outcome: o.text, Held: o.span,
			Bucket: t.cfg.Bucket, Holder: t.texts.text(h.holder),
		}
		t.effect(Effect{Kind: NotifyZone, Zone: z.name, Body: e})
	}
	t.removeHold(id)
	return true
}

// renew counts a hold's time limit anew. If neither ttl nor data change, there is nothing to replicate, since a new
// primary begins all limits anew; and nothing to remember, since doing it twice is doing it once.
func (t *Table) renew(c *call) {
	if !t.keyed(c) || !t.enter(c) {
		return
	}
	r := c.req
	switch {
	case r.Has&subjects.HasTTL != 0 && (r.TTL < 0 || r.TTL > subjects.MaxTTL):
		t.refuse(c, badRequest("ttl", `ttl is at most "8784h"; "0s" is for ever`))
		return
	case len(r.Data) > subjects.MaxData:
		t.refuse(c, tooLarge("data", "data is larger than 16 KiB"))
		return
	}
	t.change.by = c.introduction()
	id := t.holdByKey(r.Key)
	if id == 0 && t.lock() != nil && mutant.On(mutant.RenewIgnoresKey) {
		id = t.lock().hold
	}
	if id == 0 {
		t.answer(c, t.missing(r.Key))
		return
	}
	h := t.holds.at(id)
	if h.is(holdForced) {
		t.answer(c, lost(whyForced))
		return
	}
	if refusal := t.partedHold(h); refusal != nil {
		t.refuse(c, refusal)
		return
	}
	if t.recovering() && !r.Trusted { // see grantAgain
		t.restart(id)
		t.refuse(c, t.inRecovery())
		return
	}
	o := op{code: opRenew, token: h.token}
	o.ttl, o.newTTL = r.TTL, r.Has&subjects.HasTTL != 0 && r.TTL != h.ttl
	o.newData = r.Has&subjects.HasData != 0 && !t.sameData(h, r.Data)
	if !o.newTTL {
		o.ttl = 0
	}
	if o.newData {
		o.data = r.Data
	}
	if o.newTTL || o.newData {
		t.do(&o)
	} else {
		c.request = request{}
	}
	if !mutant.On(mutant.RenewNotCounted) {
		t.restart(id)
	}
	t.answer(c, t.renewed(id))
}

// renewed is the grant of a hold as it is now.
func (t *Table) renewed(id uint32) *subjects.Grant {
	h, l := t.holds.at(id), t.lock()
	g := t.answers.grant()
	*g = subjects.Grant{
		Name: t.at.name, Key: h.key, Token: h.token, Mode: l.mode, Take: t.take(h), Kind: h.kind(), TTL: h.ttl,
		Lease: t.lease(h.kind(), h.ttl, h.session), Bucket: t.cfg.Bucket, Epoch: t.epoch, Beat: t.beat(h.session),
		Durable: t.durable(h.kind(), h.ttl, h.session), User: t.texts.text(h.user), Session: t.sessionName(h.session),
	}
	if l.mode == subjects.Semaphore {
		g.Slots = t.shares.at(l.more).slots
	}
	return g
}

// partedHold tells that a hold cannot be renewed whose session's connection was closed: it will end with its grace, unless
// the session comes back first.
func (t *Table) partedHold(h *hold) *subjects.Refusal {
	if h.kind() != subjects.Connection || !t.sessions.at(h.session).parted {
		return nil
	}
	return reopen()
}

func (t *Table) applyRenew(o *op) bool {
	id := t.holdByToken(o.token)
	if id == 0 {
		return false
	}
	h := t.holds.at(id)
	if o.newTTL {
		h.ttl = o.ttl
	}
	if o.newData {
		t.extra(h).data = o.data
	}
	return true
}
