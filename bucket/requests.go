package bucket

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/opencluster/oclocks/internal/mutant"
	"github.com/opencluster/oclocks/subjects"
)

// A request with an id takes effect at most once. In a session ids are numbers, and each request says below which the
// client awaits no more replies; without a session an id is a text, kept for two minutes. See ARCHITECTURE.md, "At most
// once".

// window has the remembered requests of a session in the order of their numbers. New numbers come at its end and old ones
// leave at its beginning, so that almost nothing is ever moved.
type window struct {
	slots []slot
	head  int // slots before it are empty
	dead  int // slots from head on that are empty
}

type slot struct {
	number uint64
	entry  uint32 // 0: empty
}

// search finds where a number is or belongs.
func (w *window) search(number uint64) (at int, found bool) {
	// Mostly it is beyond the end.
	if n := len(w.slots); n == w.head || w.slots[n-1].number < number {
		return n, false
	}
	at, found = slices.BinarySearchFunc(w.slots[w.head:], number, func(s slot, number uint64) int {
		switch {
		case s.number < number:
			return -1
		case s.number > number:
			return 1
		}
		return 0
	})
	return at + w.head, found
}

func (w *window) find(number uint64) uint32 {
	if at, found := w.search(number); found {
		return w.slots[at].entry
	}
	return 0
}

func (w *window) put(number uint64, entry uint32) {
	at, found := w.search(number)
	switch {
	case found: // it was removed
		w.slots[at].entry = entry
		w.dead--
	case at == w.head && at > 0:
		w.head--
		w.slots[w.head] = slot{number, entry}
	default:
		w.slots = slices.Insert(w.slots, at, slot{number, entry})
	}
}

func (w *window) cut(number uint64) {
	at, found := w.search(number)
	if !found {
		return
	}
	w.slots[at].entry = 0
	w.dead++
	for w.head < len(w.slots) && w.slots[w.head].entry == 0 {
		w.head++
		w.dead--
	}
	switch live := len(w.slots) - w.head - w.dead; {
	case live == 0:
		*w = window{slots: w.slots[:0]}
		if cap(w.slots) > 64 {
			w.slots = nil
		}
	case 2*live+64 < len(w.slots):
		kept := make([]slot, 0, 2*live)
		for _, s := range w.slots[w.head:] {
			if s.entry != 0 {
				kept = append(kept, s)
			}
		}
		*w = window{slots: kept}
	}
}

// identify gives the id of a request for an operation, zero if it has none.
func (c *call) identify(op subjects.Op) request {
	switch {
	case c.anonymous:
		return request{}
	case c.in.Session.ID != "":
		if c.req.Number > 0 {
			return request{op: op, number: c.req.Number}
		}
	case c.req.RequestID != "":
		return request{op: op, id: c.req.RequestID}
	}
	return request{}
}

// recalled finds a remembered request, 0 if there is none.
func (t *Table) recalled(c *call, r request) uint32 {
	switch {
	case t.at.zone == nil:
	case r.number > 0:
		if c.session != 0 {
			return t.sessions.at(c.session).window.find(r.number)
		}
	case r.id != "":
		return t.at.zone.requests[userRequest{c.in.User, r.id}]
	}
	return 0
}

// enter takes a request's id and tells whether it is new. One that is not is answered here: again, or with a refusal.
func (t *Table) enter(c *call) (fresh bool) {
	r := c.identify(c.req.Op)
	if r.op == subjects.OpNone {
		return true
	}
	if r.number > 0 && r.number < c.req.Done {
		t.refuse(c, badRequest("request", "request is below its own done; its reply is not awaited, or done is wrong"))
		return false
	}
	if id := t.recalled(c, r); id != 0 {
		t.again(c, id)
		return false
	}
	if refusal := t.enterable(c, r); refusal != nil {
		t.refuse(c, refusal)
		return false
	}
	if r.id == "" || !t.manyRequests() {
		c.request = r
		return true
	}
	if c.req.Op == subjects.OpAcquire {
		t.refuse(c, overQuota("requests with an id"))
		return false
	}
	return true // what frees a lock must work, remembered or not
}

// manyRequests says whether the zone has as many requests remembered without a session as it may have.
func (t *Table) manyRequests() bool {
	return t.at.zone != nil && len(t.at.zone.requests) >= t.cfg.Limits.Requests
}

// enterable says why an id that is not remembered cannot be.
func (t *Table) enterable(c *call, r request) *subjects.Refusal {
	switch {
	case r.id != "":
		if len(r.id) > maxRequestID {
			return badRequest("request", "request is longer than 64 characters")
		}
	case c.session != 0:
		switch s := t.sessions.at(c.session); {
		case r.number < s.done:
			refusal := badRequest("request", "request is below the done that this session has told here")
			refusal.Above = s.highest()
			return refusal
		case r.number <= max(s.forgot, t.willForget(c, s)):
			return badRequest("request", "request is too old: its outcome is not remembered any more")
		}
	}
	return nil
}

// highest is the highest number that the bucket knows of a session that has told a done: what is above it is new here.
func (s *session) highest() uint64 {
	number := max(s.done-1, s.forgot)
	for _, slot := range slices.Backward(s.window.slots[s.window.head:]) {
		if slot.entry != 0 {
			return max(number, slot.number)
		}
	}
	return number
}

// again answers a request that was made before.
func (t *Table) again(c *call, id uint32) {
	e := t.entries.at(id)
	if e.op != c.req.Op || e.name != t.at.index {
		t.refuse(c, badRequest("request", "request was used before for another operation or name; take a new one"))
		return
	}
	if e.waiter != 0 {
		t.waitAgain(c, e)
		return
	}
	body, _ := unpackBody(e.outcome, e.user, t.sessionName(e.session))
	t.complete(body)
	if g, ok := body.(*subjects.Grant); ok {
		t.grantAgain(c, g)
		return
	}
	t.reply(c, body)
}

// grantAgain tells a grant once more if it still holds; then its lease begins anew, since the client may count from the
// sending of the request that is answered now. A grant that is over is not told again: who never had the first answer
// would take it for a lock. Nor is one told in a recovery: this history may have lost that the hold ended, and that somebody
// has got the lock since and trusts it; a trust that goes on without a break is older than that, and a new one is not. So in a
// recovery an answer may extend a trust, and never begins one (docs/model/recovery.pml). But who asks keeps the hold: it is there
// when the recovery is over, which may take longer than its time limit.
// A renew that says that it extends a trust does so when it is repeated, too: its first answer may have been lost.
func (t *Table) grantAgain(c *call, g *subjects.Grant) {
	id := t.holdByKey(g.Key)
	if id == 0 {
		t.reply(c, lost(t.at.zone.ended.find(g.Key, t.at.index)))
		return
	}
	h := t.holds.at(id)
	if h.is(holdForced) {
		t.reply(c, lost(whyForced))
		return
	}
	if refusal := t.partedHold(h); refusal != nil {
		t.reply(c, refusal)
		return
	}
	t.restart(id)
	if t.recovering() && !c.req.Trusted { // only a renew says it
		t.reply(c, t.inRecovery())
		return
	}
	// A renew, or a later opening of the session, may have made them shorter: what is told must be what is kept.
	g.TTL, g.Lease = h.ttl, t.lease(h.kind(), h.ttl, h.session)
	t.reply(c, g)
}

// text is the id as a client writes it.
func (r request) text() string {
	if r.number > 0 {
		return strconv.FormatUint(r.number, 10)
	}
	return r.id
}

// applyDone forgets what a session's client awaits no more.
func (t *Table) applyDone(o *op) bool {
	_, s := t.sessionOf(o.session)
	if s == nil || s.state != sessionLive || o.number <= s.done {
		return false
	}
	s.done = o.number
	w := &s.window
	below := s.done
	if mutant.On(mutant.OutcomeForgottenEarly) {
		below++
	}
	for len(w.slots) > w.head && w.slots[w.head].number < below {
		if id := w.slots[w.head].entry; t.entries.at(id).waiter != 0 {
			t.detach(t.waiters.at(t.entries.at(id).waiter))
		} else {
			t.closeEntry(id)
		}
	}
	return true
}

// applyForget forgets the oldest outcomes of a session, or of all requests without one.
func (t *Table) applyForget(o *op) bool {
	l := &t.at.zone.finished
	_, s := t.sessionOf(o.session)
	if s != nil {
		l = &s.finished
	} else if o.session != "" {
		return false
	}
	for range o.number {
		if l.first == 0 {
			return false
		}
		if s != nil {
			s.forgot = max(s.forgot, t.entries.at(l.first).number)
		}
		t.closeEntry(l.first)
	}
	return true
}

// sessionName is the id of a session's number.
func (t *Table) sessionName(sid uint32) string {
	if sid == 0 {
		return ""
	}
	return t.sessions.at(sid).id
}

// complete adds to an answer what the table knows by itself.
func (t *Table) complete(body subjects.Body) {
	switch b := body.(type) {
	case *subjects.Grant:
		b.Name, b.Bucket = t.at.name, t.cfg.Bucket
	case *subjects.Queued:
		b.Name, b.Bucket = t.at.name, t.cfg.Bucket
	}
}

// openEntry begins to remember a request about the name at the cursor; ok is false if its id cannot be a new one.
func (t *Table) openEntry(r request, user string, sid uint32) (id uint32, ok bool) {
	if r.number > 0 {
		if sid == 0 {
			return 0, false
		}
		s := t.sessions.at(sid)
		if s.state != sessionLive || r.number < s.done || r.number <= s.forgot {
			return 0, false
		}
	}
	return t.newEntry(r, user, sid, t.at.index)
}

// newEntry makes the record of a request; ok is false if there is one.
func (t *Table) newEntry(r request, user string, sid uint32, name uint64) (id uint32, ok bool) {
	z := t.at.zone
	switch {
	case (r.number > 0) != (sid != 0): // in a session requests have numbers, elsewhere texts
		return 0, false
	case sid != 0 && t.sessions.at(sid).window.find(r.number) != 0:
		return 0, false
	case sid == 0 && (r.id == "" || z.requests[userRequest{user, r.id}] != 0):
		return 0, false
	}
	id, e := t.entries.take()
	*e = entry{request: r, user: user, name: name}
	if r.number > 0 {
		s := t.sessions.at(sid)
		e.session, e.user = sid, s.user // one copy for all
		s.window.put(r.number, id)
	} else {
		e.id, e.user = strings.Clone(r.id), t.texts.share(user)
		z.requests[userRequest{e.user, e.id}] = id
	}
	return id, true
}

// finishEntry remembers the outcome of a request.
func (t *Table) finishEntry(id uint32, body subjects.Body, z *zone) {
	e := t.entries.at(id)
	t.finishPacked(id, t.packBody(body, e.user, t.sessionName(e.session)), z)
}

func (t *Table) finishPacked(id uint32, outcome []byte, z *zone) {
	e := t.entries.at(id)
	e.outcome, e.waiter, e.at = outcome, 0, t.now.Boot
	l := &z.finished
	if e.session != 0 {
		s := t.sessions.at(e.session)
		l = &s.finished
		s.outcomes++
	}
	e.prev, e.next = l.last, 0
	if l.last != 0 {
		t.entries.at(l.last).next = id
	} else {
		l.first = id
	}
	l.last = id
	switch {
	case e.session != 0:
		t.armSession(e.session)
	case t.primary && t.zoneDue(z) < z.armed:
		t.wheel.set(timerOf(zoneTimer, z.id+1))
	}
}

// closeEntry forgets a request.
func (t *Table) closeEntry(id uint32) {
	e := t.entries.at(id)
	if e.session != 0 {
		s := t.sessions.at(e.session)
		s.window.cut(e.number)
		if e.finished() {
			s.outcomes--
			t.unlinkEntry(&s.finished, e)
		}
	} else {
		z := t.at.zone
		delete(z.requests, userRequest{e.user, e.id})
		t.texts.drop(e.user)
		if e.finished() {
			t.unlinkEntry(&z.finished, e)
		}
	}
	t.outcomes.put(e.outcome)
	t.entries.release(id)
}

func (e *entry) finished() bool { return e.waiter == 0 && e.outcome != nil }

func (t *Table) unlinkEntry(l *list, e *entry) {
	if e.prev != 0 {
		t.entries.at(e.prev).next = e.next
	} else {
		l.first = e.next
	}
	if e.next != 0 {
		t.entries.at(e.next).prev = e.prev
	} else {
		l.last = e.prev
	}
}

// expired counts the outcomes that are remembered for long enough, as many as one change may forget.
func (t *Table) expired(l list) int {
	const most = 256
	n := 0
	for id := l.first; id != 0 && n < most && later(t.entries.at(id).at, requestKeep) <= t.now.Boot; id = t.entries.at(id).next {
		n++
	}
	return n
}

// later is an instant after another one, never rather than one that cannot be counted.
func later(at int64, d time.Duration) int64 {
	if int64(d) > never-at {
		return never
	}
	return at + int64(d)
}
