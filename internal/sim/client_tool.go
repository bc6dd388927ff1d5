package sim

import (
	"bytes"
	"slices"
	"time"

	"github.com/opencluster/oclocks/internal/check"
	mind "github.com/opencluster/oclocks/internal/machine"
	"github.com/opencluster/oclocks/subjects"
)

// tool is what a client in another language does after docs/protocol.md: a session opened by hand, acquires that are answered with a
// ticket and granted by an event, and a trust that is counted by hand, from renews alone. Its requests are raw ones of a session client.
type tool struct {
	c      *member
	token  string
	events string
	id     string
	lease  int64
	number uint64
	beat   uint64
	left   int // acquires that are not over
	over   bool
	waits  []*queuedAsk
	holds  []*byHand
}

// queuedAsk is an acquire that was answered with a ticket.
type queuedAsk struct {
	id      string // in the history
	number  uint64
	name    string
	answers bool // the first answer has come
}

// byHand is a hold of a tool.
type byHand struct {
	name       string
	token, key uint64
	over       bool
}

// useTool begins one.
func (c *member) useTool() {
	w := c.w
	req := &subjects.Request{Op: subjects.OpSessionOpen, Holder: c.name, TTL: time.Duration(w.between(500*ms, 4*second)), Has: subjects.HasTTL}
	c.raw(req, check.Event{}, func(r *mind.Result) {
		var opened subjects.Opened
		if !c.reads(&opened, r.Data) {
			return
		}
		address, err := subjects.ParseEvent(opened.Events)
		if err != nil {
			w.fail("%s is told to listen to %q: %v", c.name, opened.Events, err)
			return
		}
		t := &tool{c: c, token: opened.Session, events: opened.Events, id: address.ID, lease: int64(opened.Lease), left: 1 + w.draw(3)}
		c.tools = append(c.tools, t)
		c.wishes++
		c.note(&check.Event{Kind: check.SessionOpened, Session: t.id, Lease: opened.Lease, Incarnation: opened.Incarnation,
			Place: c.place(opened.Session)})
		for range t.left {
			t.acquire(w.lockName())
		}
		t.keep()
		if w.draw(3) == 0 { // it goes in the middle of everything
			w.after(w.between(300*ms, 6*second), func() { c.awake(t.close) })
		}
	})
}

// request makes a request of the session. A tool is simple: it says of nothing that it awaits it no more.
func (t *tool) request(op subjects.Op, name string) *subjects.Request {
	t.number++
	return &subjects.Request{Op: op, Name: name, Session: t.token, Number: t.number, Has: subjects.HasRequest}
}

func (t *tool) acquire(name string) {
	c, w := t.c, t.c.w
	req := t.request(subjects.OpAcquire, name)
	req.Enqueue, req.Holder = w.draw(4) > 0, c.name
	switch name[0] {
	case 'm':
		req.Mode = [...]subjects.Mode{subjects.Exclusive, subjects.Shared}[w.draw(2)]
	case 's':
		req.Mode, req.Slots, req.Take = subjects.Semaphore, 3, uint32(1+w.draw(3))
	}
	wait := 24 * time.Hour
	if w.draw(2) == 0 || !req.Enqueue {
		wait = time.Duration(w.between(100*ms, 8*second))
		req.Wait, req.Has = wait, req.Has|subjects.HasWait
	}
	e := check.Event{Mode: req.Mode, Slots: req.Slots, Take: req.Take, Grace: -1, Wait: wait, Session: t.id}
	q := &queuedAsk{number: req.Number, name: name}
	t.waits = append(t.waits, q)
	if w.draw(4) == 0 { // perhaps it has not come yet
		w.after(w.between(0, 400*ms), func() { c.awake(func() { t.cancel(q) }) })
	}
	q.id = c.raw(req, e, func(r *mind.Result) {
		q.answers = true
		switch {
		case r.Grant != nil:
			t.granted(q, r.Grant)
		case bytes.Contains(r.Data, []byte(`"queued":true`)):
			w.count("queued with a ticket")
			w.after(w.between(0, 10*second), func() { c.awake(func() { t.cancel(q) }) })
		case r.Data != nil: // an enqueue that was granted at once
			g := new(subjects.Grant)
			if c.reads(g, r.Data) {
				t.granted(q, g)
			}
		default:
			t.refused(q, r.Refusal)
		}
	})
}

// waiting takes an acquire out of those that wait; false: it was not there.
func (t *tool) waiting(q *queuedAsk) bool {
	i := slices.Index(t.waits, q)
	if i < 0 {
		return false
	}
	t.waits = slices.Delete(t.waits, i, i+1)
	return true
}

func (t *tool) refused(q *queuedAsk, why *subjects.Refusal) {
	if t.waiting(q) {
		t.left--
	}
	if why != nil && why.Reason == subjects.ReasonSession {
		t.lose(why.Why)
	}
	t.rest()
}

// granted begins a hold. It is trusted when it was renewed, and from the sending of the renew.
func (t *tool) granted(q *queuedAsk, g *subjects.Grant) {
	if !t.waiting(q) {
		return // it was told twice
	}
	h := &byHand{name: g.Name, token: g.Token, key: g.Key}
	t.holds = append(t.holds, h)
	t.renew(h, t.c.w.now+t.c.w.between(0, 3*second))
}

// renew proves the hold from time to time, until it is given back.
func (t *tool) renew(h *byHand, until int64) {
	c, w := t.c, t.c.w
	if h.over || t.over {
		return
	}
	if w.now >= until || w.healed {
		t.release(h)
		return
	}
	sent := c.clock()
	req := t.request(subjects.OpRenew, h.name)
	req.Key = h.key
	c.raw(req, check.Event{Token: h.token, Session: t.id}, func(r *mind.Result) {
		switch {
		case h.over || t.over:
		case r.Grant != nil:
			if end := sent + t.lease - t.lease/4; end > c.clock() {
				c.note(&check.Event{Kind: check.Believe, Name: h.name, Token: h.token, Until: c.until(end)})
			}
			w.after(w.between(ms, t.lease/4), func() { c.awake(func() { t.renew(h, until) }) })
		case r.Refusal != nil && r.Refusal.Reason == subjects.ReasonSession:
			t.lose(r.Refusal.Why)
		default:
			if r.Refusal != nil && r.Refusal.Code == 410 {
				c.note(&check.Event{Kind: check.Lost, Name: h.name, Token: h.token, Why: r.Refusal.Why})
			} else {
				c.note(&check.Event{Kind: check.Disbelieve, Name: h.name, Token: h.token})
			}
			h.over = true
			t.left--
			t.rest()
		}
	})
}

func (t *tool) release(h *byHand) {
	h.over = true
	req := t.request(subjects.OpRelease, h.name)
	req.Key = h.key
	t.c.raw(req, check.Event{Token: h.token, Session: t.id}, func(*mind.Result) {
		t.left--
		t.rest()
	})
}

// cancel takes an acquire back that has a ticket. What it was tells what is to be done.
func (t *tool) cancel(q *queuedAsk) {
	if t.over || !slices.Contains(t.waits, q) {
		return
	}
	c := t.c
	req := &subjects.Request{Op: subjects.OpCancel, Name: q.name, Session: t.token, Number: q.number, Has: subjects.HasRequest}
	c.raw(req, check.Event{Of: q.id, Session: t.id}, func(r *mind.Result) {
		if q.answers && t.waiting(q) { // else its own answer comes still
			t.left--
		}
		t.rest()
	})
}

// keep is the keep-alive.
func (t *tool) keep() {
	c, w := t.c, t.c.w
	if t.over {
		return
	}
	t.beat++
	req := &subjects.Request{Op: subjects.OpKeep, Session: t.token, Beat: t.beat}
	c.raw(req, check.Event{}, func(r *mind.Result) {
		if r.Refusal != nil && r.Refusal.Reason == subjects.ReasonSession {
			t.lose(r.Refusal.Why)
		}
	})
	w.after(t.lease/3, func() { c.awake(t.keep) })
}

// tidings takes an event of the session.
func (t *tool) tidings(e *subjects.SessionEvent) {
	c := t.c
	for _, q := range t.waits {
		if e.Request != itoa(int(q.number)) {
			continue
		}
		switch {
		case e.Type == "granted" && e.Grant != nil:
			c.w.count("granted by event")
			c.answered(t.id, q.id, subjects.OpAcquire, q.name, &mind.Result{Grant: e.Grant})
			t.granted(q, e.Grant)
			return
		case (e.Type == "timeout" || e.Type == "cancelled") && e.Refusal != nil:
			c.w.count(e.Type + " by event")
			c.answered(t.id, q.id, subjects.OpAcquire, q.name, &mind.Result{Refusal: e.Refusal})
			t.refused(q, e.Refusal)
			return
		}
	}
}

// lose is the end of the session.
func (t *tool) lose(why string) {
	if t.over {
		return
	}
	t.c.note(&check.Event{Kind: check.SessionLost, Session: t.id, Why: why})
	t.end()
}

// end forgets everything.
func (t *tool) end() {
	t.over = true
	c := t.c
	c.wishes--
	for _, h := range t.holds {
		if !h.over {
			c.note(&check.Event{Kind: check.Disbelieve, Name: h.name, Token: h.token})
		}
	}
	for _, q := range t.waits {
		if q.answers {
			c.note(&check.Event{Kind: check.GiveUp, Request: q.id})
		}
	}
	c.tools = slices.DeleteFunc(c.tools, func(o *tool) bool { return o == t })
}

// rest closes the session when nothing is left to be done; some tools just go away.
func (t *tool) rest() {
	if t.over || t.left > 0 {
		return
	}
	if t.c.w.draw(5) == 0 {
		t.end()
		return
	}
	t.close()
}

// close closes the session, with all that it has, and looks whether that is gone.
func (t *tool) close() {
	if t.over {
		return
	}
	c := t.c
	var names []string
	for _, h := range t.holds {
		if !h.over {
			names = append(names, h.name)
		}
	}
	if len(names) > 0 {
		c.w.count("session closed with holds")
	}
	req := &subjects.Request{Op: subjects.OpSessionClose, Session: t.token}
	c.raw(req, check.Event{Session: t.id}, func(*mind.Result) {
		for _, name := range names {
			c.query(name)
		}
	})
	t.end()
}
