package bucket

import (
	"fmt"
	"time"

	"github.com/opencluster/oclocks/subjects"
)

// defaultTTL is the time limit of a static hold whose request names none.
const defaultTTL = time.Minute

func (t *Table) acquire(c *call) {
	var w want
	if refusal := c.wanted(&w); refusal != nil {
		t.refuse(c, refusal)
		return
	}
	if c.crowded() {
		t.refuse(c, overQuota("sessions"))
		return
	}
	if c.session != 0 && t.sessions.at(c.session).weight+weight(len(c.req.Name)) > maxSessionWeight {
		t.refuse(c, tooHeavy())
		return
	}
	if !t.enter(c) {
		return
	}
	w.request, t.change.by = c.request, c.introduction()
	l := t.lock()
	if l != nil && l.more != 0 && t.shares.at(l.more).recheck <= t.now.Boot {
		t.settle() // before its timer, which is up to a millisecond late: nobody may slip in
	}
	if l != nil && !t.agrees(l, &w) {
		t.answer(c, badRequest("slots", fmt.Sprintf("the semaphore has %d slots while it is held or waited for; send the same",
			t.shares.at(l.more).slots)))
		return
	}
	recovering := t.recovering()
	free := t.grantable(&w) && !recovering
	tryOnce := w.wait == 0
	switch {
	case recovering && tryOnce:
		t.refuse(c, t.inRecovery())
	case free && (c.in.HoldsFull || t.holds.live >= maxRecords):
		t.refuse(c, overQuota("locks"))
	case free && !t.reserveToken():
		t.refuse(c, usedUp())
	case free && !c.req.Enqueue:
		t.grant(c, &w)
	case tryOnce && !free:
		t.answer(c, t.isHeld())
	default:
		if refusal := t.mayWait(c, free); refusal != nil {
			t.refuse(c, refusal)
			return
		}
		t.enqueue(&w)
	}
}

// mayWait tells why a request may not stand in the queue. One that leaves it at once takes no room there.
func (t *Table) mayWait(c *call, free bool) *subjects.Refusal {
	l := t.lock()
	switch {
	case t.stopping:
		return stopping()
	case free:
		return nil
	case c.in.WaitersFull || t.waiters.live >= maxRecords:
		return overQuota("waiters")
	case l != nil && t.waiting(l) >= t.cfg.Limits.Queue:
		return tooLarge("", fmt.Sprintf("%s already, which is as many as one lock may have", others(t.waiting(l))))
	}
	return nil
}

// introduction is the call if its session is to be entered with its change.
func (c *call) introduction() *call {
	if c.in.Session.ID == "" || c.anonymous {
		return nil
	}
	return c
}

// wanted reads what an acquire asks for, with the defaults put in.
func (c *call) wanted(w *want) *subjects.Refusal {
	r := c.req
	*w = want{
		mode: r.Mode, kind: r.Kind, drain: r.Drain, take: 1, ttl: r.TTL, wait: r.Wait, key: c.in.Key, holder: r.Holder,
		user: c.in.User, session: c.in.Session.ID, reply: c.in.Reply,
	}
	if r.Has&subjects.HasData != 0 {
		w.data = r.Data
	}
	if w.mode == subjects.Semaphore {
		w.slots, w.take = r.Slots, max(r.Take, 1)
	}
	if w.mode != subjects.Exclusive {
		w.drain = subjects.Hard
	}
	if w.drain == subjects.Timed {
		w.quiet = r.Quiet
	}
	if w.kind == subjects.KindDefault {
		w.kind = subjects.Static
		if w.session != "" {
			w.kind = subjects.Connection
		}
	}
	if w.kind == subjects.Static && r.Has&subjects.HasTTL == 0 {
		w.ttl = defaultTTL
	}
	if w.kind == subjects.Connection && r.Has&subjects.HasGrace != 0 {
		w.bits |= wantGrace
		w.grace = r.Grace
	}
	if r.Recall {
		w.bits |= wantRecall
	}
	if r.Enqueue {
		w.bits |= wantEnqueue
		if r.Has&subjects.HasWait == 0 {
			w.wait = subjects.MaxWait
		}
	}
	return w.check()
}

// check refuses what the protocol does not allow. The edge has refused most of it before; the table relies on nobody.
func (w *want) check() *subjects.Refusal {
	between := func(d, most time.Duration) bool { return d >= 0 && d <= most }
	switch {
	case w.mode > subjects.Semaphore:
		return badRequest("mode", "mode is unknown; send exclusive, shared or semaphore")
	case w.kind > subjects.Connection:
		return badRequest("kind", "kind is unknown; send static or connection")
	case w.drain > subjects.Timed:
		return badRequest("drain", "drain is unknown; send hard, soft or timed")
	case w.mode == subjects.Semaphore && (w.slots == 0 || w.slots > subjects.MaxSlots):
		return badRequest("slots", "a semaphore needs slots, 1 to 1000000")
	case w.take == 0 || w.take > max(w.slots, 1):
		return badRequest("take", "take is more than slots")
	case w.drain == subjects.Timed && (w.quiet <= 0 || w.quiet > subjects.MaxQuiet):
		return badRequest("quiet", `"drain":"timed" needs quiet, more than "0s" and at most "1h"`)
	case w.kind == subjects.Connection && w.session == "":
		return badRequest("kind", `"kind":"connection" needs a session; open one, or ask for "static" and a ttl`)
	case w.bits&wantEnqueue != 0 && w.session == "":
		return badRequest("enqueue", "enqueue needs a session, whose events bring the grant; open one, or use wait alone")
	case w.bits&wantRecall != 0 && w.session == "":
		return badRequest("recall", "recall needs a session, whose events bring it; open one, or leave recall out")
	case !between(w.wait, subjects.MaxWait):
		return badRequest("wait", `wait is at most "24h"`)
	case !between(w.ttl, subjects.MaxTTL):
		return badRequest("ttl", `ttl is at most "8784h"; "0s" is for ever`)
	case !between(w.grace, subjects.MaxTTL):
		return badRequest("grace", `grace is at most "8784h"`)
	case len(w.holder) > subjects.MaxHolder:
		return tooLarge("holder", "holder is longer than 256 bytes")
	case len(w.data) > subjects.MaxData:
		return tooLarge("data", "data is larger than 16 KiB")
	case w.key == 0:
		return badRequest("", "the request came without an unlock key from the edge")
	}
	return nil
}

// grant gives the lock at the cursor to the caller.
func (t *Table) grant(c *call, w *want) {
	o := op{code: opGrant, want: *w, since: t.now.Wall}
	if c.in.Session.ID != "" {
		// The session must be there for what the grant says of it.
		o.beat = t.beat(c.session)
	}
	o.durable = t.durableWant(c, w)
	t.do(&o)
	if l := t.lock(); w.bits&wantRecall != 0 && l != nil && t.waiting(l) > 0 {
		t.do(&op{code: opRecall, token: t.at.zone.token})
	}
}

func (t *Table) enqueue(w *want) {
	if w.wait == 0 {
		w.wait = time.Second // an enqueue that is granted at once needs none
	}
	l := t.lock()
	first := l == nil || t.waiting(l) == 0
	t.do(&op{code: opEnqueue, want: *w, since: t.now.Wall})
	if l != nil && first && l.more != 0 && t.shares.at(l.more).recalls > 0 {
		t.do(&op{code: opRecall})
	}
	t.settle()
}

// beat is the number of the last keep-alive of a session, 0 if there was none.
func (t *Table) beat(sid uint32) uint64 {
	if sid == 0 {
		return 0
	}
	return t.sessions.at(sid).beat
}

// durable says whether a hold survives what the broker promises to survive: it is kept on disk, and either each change
// is on the disk before it is answered, or the hold's lease is no longer than what a recovery waits for.
func (t *Table) durable(kind subjects.Kind, ttl time.Duration, sid uint32) bool {
	return t.outlasts(t.lease(kind, ttl, sid))
}

func (t *Table) outlasts(lease time.Duration) bool {
	return t.cfg.Journaled && (t.cfg.SyncAlways || lease > 0 && lease <= t.cfg.Limits.MaxLease)
}

// durableWant is durable before the session is entered.
func (t *Table) durableWant(c *call, w *want) bool {
	if w.kind == subjects.Connection { // an older session may have a longer lease than any gets by now
		lease := max(c.in.Session.Lease, time.Millisecond)
		if c.session != 0 {
			lease = max(lease, t.sessions.at(c.session).lease)
		}
		return t.outlasts(lease)
	}
	return t.durable(w.kind, w.ttl, c.session)
}

func (t *Table) applyGrant(o *op) bool {
	z := t.at.zone
	sid, ok := t.grantee(&o.want)
	if !ok || t.at.name == "" || o.key == 0 {
		return false
	}
	if l := t.lock(); l != nil && (!t.agrees(l, &o.want) || !t.fits(l, &o.want)) {
		return false
	}
	token := t.nextToken(z)
	if token == 0 {
		return false
	}
	var entry uint32
	if o.request.op != subjects.OpNone {
		if entry, ok = t.openEntry(o.request, o.user, sid); !ok {
			return false
		}
	}
	z.ticket++
	t.addHold(&o.want, sid, token, o.since)
	g := t.grantOf(&o.want, sid, token, z.ticket)
	g.Beat, g.Durable = o.beat, o.durable
	if entry != 0 {
		t.finishEntry(entry, g, z)
	}
	t.effect(Effect{Kind: Reply, Zone: z.name, To: o.reply, Body: g})
	t.granted(z, &o.want, g)
	return true
}

// grantee finds the session of a want; ok is false if what it wants does not go with it.
func (t *Table) grantee(w *want) (sid uint32, ok bool) {
	if t.at.zone == nil || w.check() != nil || w.kind == subjects.KindDefault {
		return 0, false
	}
	if op := w.request.op; op != subjects.OpNone && op != subjects.OpAcquire {
		return 0, false
	}
	if w.session == "" {
		return 0, true
	}
	sid, s := t.sessionOf(w.session)
	return sid, s != nil && s.state == sessionLive && s.user == w.user
}

// grantOf is the answer to who was granted the lock at the cursor.
func (t *Table) grantOf(w *want, sid uint32, token, ticket uint64) *subjects.Grant {
	g := t.answers.grant()
	*g = subjects.Grant{
		Name: t.at.name, Key: w.key, Token: token, Mode: w.mode, Take: w.take, Slots: w.slots, Kind: w.kind,
		TTL: w.ttl, Lease: t.lease(w.kind, w.ttl, sid), Bucket: t.cfg.Bucket, Epoch: t.epoch, Ticket: ticket,
		Session: w.session, User: w.user,
	}
	return g
}

// granted tells the zone.
func (t *Table) granted(z *zone, w *want, g *subjects.Grant) {
	if z.settings.LockEvents {
		t.effect(Effect{Kind: NotifyZone, Zone: z.name, Body: &subjects.LockEvent{
			Type: "granted", Name: g.Name, Token: g.Token, Holder: w.holder, User: w.user, Bucket: t.cfg.Bucket,
		}})
	}
}

func (t *Table) applyEnqueue(o *op) bool {
	z := t.at.zone
	sid, ok := t.grantee(&o.want)
	if !ok || t.at.name == "" || o.key == 0 || o.wait == 0 {
		return false
	}
	if l := t.lock(); l != nil && (!t.agrees(l, &o.want) || t.waiting(l) >= maxRecords) {
		return false
	}
	var entry uint32
	if o.request.op != subjects.OpNone {
		if entry, ok = t.openEntry(o.request, o.user, sid); !ok {
			return false
		}
	}
	z.ticket++
	id := t.addWaiter(&o.want, sid, z.ticket, o.since)
	if entry != 0 {
		t.waiters.at(id).entry = entry
		t.entries.at(entry).waiter = id
	}
	if o.bits&wantEnqueue != 0 {
		t.queued(id, t.shares.at(t.lock().more).waiting)
	}
	return true
}

// queued answers who stands in the queue and does not wait for the answer.
func (t *Table) queued(id uint32, place int) {
	w := t.waiters.at(id)
	q := &subjects.Queued{
		Name: t.at.name, Ticket: w.ticket, Place: uint32(place), Lease: t.lease(w.kind, w.ttl, w.session), Bucket: t.cfg.Bucket,
	}
	if w.entry != 0 {
		t.entries.at(w.entry).outcome = t.packBody(q, w.user, w.want.session)
	}
	if place == 1 {
		w.bits |= wantPlaced
	}
	t.effect(Effect{Kind: Reply, Zone: t.at.zone.name, To: w.reply, Body: q})
}
