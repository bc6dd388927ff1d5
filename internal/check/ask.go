package check

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/opencluster/oclocks/subjects"
)

// early is the earliest time, by the history's clock, after which a clock within the promise shows that d has passed.
func early(d time.Duration) int64 { return int64(d) / 7 * 6 }

// late is the latest such time.
func late(d time.Duration) int64 { return int64(d) + int64(d)/6 }

// ask takes a request.
func (c *Checker) ask(cl *client, e *Event) {
	if cl.asks[e.Request] != nil {
		c.fail(Malformed, e, "%s asks %s twice: a request that is sent again is no other request", cl.name, e.Request)
		return
	}
	if e.Op.OnName() == (e.Name == "") && e.Op != subjects.OpSessionClose {
		c.fail(Malformed, e, "%s asks %s: operation %q about the name %q", cl.name, e.Request, e.Op, e.Name)
		return
	}
	a := &ask{
		client: cl, id: e.Request, op: e.Op, at: c.now, session: e.Session, mode: e.Mode, kind: e.Hold, drain: e.Drain, take: max(1, e.Take),
		slots: e.Slots, ttl: e.TTL, grace: e.Grace, wait: e.Wait, key: e.Key, token: e.Token, plain: e.Plain,
	}
	if a.kind == subjects.KindDefault {
		a.kind = subjects.Static
		if a.session != "" {
			a.kind = subjects.Connection
		}
	}
	cl.asks[e.Request] = a
	if e.Name != "" {
		l := c.lock(cl.zone, e.Name)
		a.lock, a.floor, a.above, a.since = l, l.high, l.ticket, l.doubts
	}
	switch a.op {
	case subjects.OpAcquire:
		a.lock.open = append(a.lock.open, a)
	case subjects.OpRelease:
		if a.about(); a.hold != nil {
			a.first = !a.hold.returned
			a.hold.giveBack(c.now)
		}
	case subjects.OpRenew:
		if a.about(); a.hold != nil && a.ttl > 0 { // which may be shorter
			a.hold.loosen(a.at + early(a.ttl))
		}
	case subjects.OpForce:
		if a.about(); a.hold != nil {
			a.hold.force(c.now, e.Now)
		} else {
			a.lock.forceLater(e)
		}
	case subjects.OpCancel:
		c.askCancel(cl, a, e.Of)
	case subjects.OpSessionClose:
		cl.closes(a.session, c.now)
		for _, h := range cl.holds {
			if a.closes(h) {
				h.giveBack(c.now)
				h.loosen(c.now)
			}
		}
	}
	c.begin(a)
}

// about finds the hold that a request is about.
func (a *ask) about() {
	if a.hold = a.lock.holds[a.token]; a.hold != nil {
		a.hold.touched = a.at
		a.trust = a.hold.until
	}
}

// force notes that somebody asked for the hold's end, at once or when its client is done.
func (h *hold) force(at int64, now bool) {
	h.forced = true
	h.exempt = h.exempt || now
	h.loosen(at)
}

// force is what somebody asked for before the holder has heard of its grant: a query may tell of it earlier.
type force struct {
	at  int64
	now bool
}

func (l *lock) forceLater(e *Event) {
	if l.forces == nil {
		l.forces = map[uint64]force{}
	}
	f, again := l.forces[e.Token]
	if !again {
		f.at = e.At
	}
	f.now = f.now || e.Now
	l.forces[e.Token] = f
}

// giveBack notes that the hold's end was asked for by its client.
func (h *hold) giveBack(now int64) {
	h.returned = true
	h.disbelieve(now)
}

func (c *Checker) askCancel(cl *client, a *ask, of string) {
	t := cl.asks[of]
	if t == nil || t.op != subjects.OpAcquire {
		return // one that is never asked
	}
	a.target = t
	if t.cancelled == nil {
		t.cancelled = a
	}
	if t.hold != nil {
		t.hold.giveBack(c.now)
		t.hold.loosen(c.now)
	}
}

// closes notes that the client has asked for the end of a session.
func (cl *client) closes(session string, at int64) {
	if cl.closing == nil {
		cl.closing = map[string]int64{}
	}
	if _, again := cl.closing[session]; !again {
		cl.closing[session] = at
	}
}

// closes says whether a session-close ends the hold.
func (a *ask) closes(h *hold) bool {
	return h.ask.session != "" && h.ask.session == a.session && (a.lock == nil || a.lock == h.lock)
}

// answer takes an answer, one that came before too.
func (c *Checker) answer(cl *client, e *Event) {
	a := cl.asks[e.Request]
	if a == nil {
		c.stats.Unknown++
		return
	}
	switch e.Code {
	case 400, 413, 421, 429, 503: // it was not carried out, or the broker does not know any more
		a.undone = true
		return
	case 202:
		c.queued(a, e)
		return
	case 410:
		if e.Reason == subjects.ReasonSession { // perhaps another bucket's word: what became of the request here is not known
			c.hearsSuperseded(cl, e)
			a.undone = true
			if !a.known() && !a.given {
				c.giveUp(a)
			}
			return
		}
	}
	if a.known() {
		c.again(a, e)
		return
	}
	a.code, a.heard, a.told = e.Code, c.now, e.Token
	granted := e.Code == 200
	switch a.op {
	case subjects.OpAcquire:
		c.closeAcquire(a)
		if granted {
			c.granted(a, e)
		} else {
			c.refused(a, e)
		}
	case subjects.OpRelease:
		c.released(a, e, granted)
	case subjects.OpRenew:
		c.renewed(a, e, granted)
	case subjects.OpForce:
		c.forced(a, e, granted)
	case subjects.OpCancel:
		c.cancelled(a, e, granted)
	case subjects.OpSessionClose:
		if granted {
			c.closed(a)
		}
	}
	c.finish(a)
	c.fade(a, nil)
}

// closeAcquire takes an acquire out of those whose end nobody knows.
func (c *Checker) closeAcquire(a *ask) {
	l := a.lock
	if a.given {
		l.unclear--
		return
	}
	if i := slices.Index(l.open, a); i >= 0 {
		l.open = slices.Delete(l.open, i, i+1)
	}
}

// giveUp notes that nobody waits for the answer any more. What the request does is never known, unless the answer comes all the same.
func (c *Checker) giveUp(a *ask) {
	if a.op == subjects.OpAcquire {
		c.closeAcquire(a)
		a.lock.unclear++
	}
	a.given = true
	c.abandon(a)
	c.fade(a, nil)
}

// anew has an acquire begin again: what was sent before is a request of its own from now on, which nobody waits for.
func (c *Checker) anew(a *ask) {
	if a == nil || a.op != subjects.OpAcquire || a.known() || a.given {
		return
	}
	old := *a
	old.step = nil
	l := a.lock
	l.unclear++
	old.unsure(&l.window, c.now, nil)
	a.floor, a.above, a.since, a.ticket = l.high, l.ticket, l.doubts, 0
	if a.step != nil {
		a.step.call = c.now
		l.window.steps = append(l.window.steps, &step{what: unknown, call: old.at, ret: Never, ask: &old})
	}
}

// inVain looks for requests that nobody answers.
func (c *Checker) inVain() {
	for _, cl := range c.order {
		for _, a := range inOrder(cl.asks) {
			if !cl.dead && !a.known() && !a.given && !a.undone && a.at+late(a.wait)+int64(patience) < c.now {
				c.violate(Queue, cl.zone.name, a.name(), "%s waits in vain: nobody has answered %s", cl.name, a)
			}
		}
	}
}

// patience is how long an answer may take when nothing is wrong, beyond the wait that was asked for.
const patience = 10 * time.Second

// inOrder gives requests in the order of asking.
func inOrder(asks map[string]*ask) []*ask {
	return slices.SortedFunc(maps.Values(asks), func(a, b *ask) int { // order: sorted
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.id, b.id))
	})
}

func (c *Checker) zonesInOrder() []*zone {
	return slices.SortedFunc(maps.Values(c.zones), func(a, b *zone) int { return cmp.Compare(a.name, b.name) }) // order: sorted
}

func (a *ask) name() string {
	if a.lock == nil {
		return ""
	}
	return a.lock.name
}

// String is the request for people, with its time.
func (a *ask) String() string {
	text := fmt.Sprintf("%v %s (%s of %s", a.op, a.name(), a.id, a.client.name)
	if a.op == subjects.OpAcquire {
		text += ", " + a.mode.String()
	}
	return text + ", asked at " + clock(a.at) + ")"
}

// String is the hold for people, with its times.
func (h *hold) String() string {
	text := fmt.Sprintf("%s, who has %s %s with token %d (%s, told at %s)", h.client.name, h.lock.name, h.ask.mode, h.token, h.ask.id, clock(h.at))
	switch {
	case h.ended != "":
		text += fmt.Sprintf(" and knows since %s that it is over (%s)", clock(h.endAt), h.ended)
	case h.returned:
		text += " and has given it back"
	case h.until == Never:
		text += " and believes in it for ever"
	case h.until > 0:
		text += " and believes in it until " + clock(h.until)
	}
	return text
}

// clock is a time of the history for people: seconds.
func clock(at int64) string { return fmt.Sprintf("%.6f", float64(at)/1e9) }
