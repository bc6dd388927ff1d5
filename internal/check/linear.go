package check

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/anishathalye/porcupine"

	"github.com/opencluster/oclocks/subjects"
)

// window is a piece of a lock's history for which an order is sought.
type window struct {
	steps   []*step
	pending int       // steps that are not finished
	carried int       // steps that stand for requests of before
	first   *image    // what may be at its beginning
	maybe   []phantom // holds that may be there, though nobody was told
}

// phantom is what an acquire may have got whose answer nobody knows.
type phantom struct {
	ask   *ask
	until int64 // it is not there after that
}

// step is one request in a window, with its answer.
type step struct {
	what      verb
	call, ret int64
	ask       *ask  // nil: a look
	hold      *hold // granted, released, renewed, not held
	token     uint64
	mayEnd    int64 // granted, renewed: what this gives does not end by its time before
	holders   []uint64
}

// verb is what a step does or shows.
type verb uint8

const (
	unknown  verb = iota // an acquire that may have been granted
	granted              // the hold begins
	refused              // somebody else has the lock
	released             // the hold ends
	dropped              // the hold ends, if it is there
	renewed              // the hold is there
	absent               // the hold is not there
	looked               // holders are there and nobody else
	nothing              // left out
)

// wander is how long a request that nobody waits for may be on its way.
const wander = 60_000_000_000

// begin puts a request into its lock's window.
func (c *Checker) begin(a *ask) {
	if c.opt.Window < 0 || c.opt.Wild || a.lock == nil {
		return
	}
	switch a.op {
	case subjects.OpAcquire, subjects.OpRelease, subjects.OpRenew:
	default:
		return
	}
	w := &a.lock.window
	a.step = &step{what: nothing, call: a.at, ret: Never, ask: a, hold: a.hold}
	w.steps = append(w.steps, a.step)
	w.pending++
}

// finish gives the answer to a request in its window.
func (c *Checker) finish(a *ask) {
	s := a.step
	if s == nil {
		return
	}
	a.step = nil
	s.ret, s.hold, s.token = c.now, a.hold, a.told
	switch code := a.code; {
	case a.op == subjects.OpAcquire && code == 200 && a.hold != nil:
		s.what, s.mayEnd = granted, c.mayEnd(a, a.hold)
	case a.op == subjects.OpAcquire && (code == 408 || code == 409) && c.busy(a):
		s.what = refused
	case a.op == subjects.OpAcquire && code == 410: // it may have been granted before that
		s.what = unknown
	case a.op == subjects.OpRelease && code == 200 && a.hold != nil:
		s.what = released
	case a.op == subjects.OpRenew && code == 200 && a.hold != nil:
		s.what, s.mayEnd = renewed, c.mayEnd(a, a.hold)
	case a.op == subjects.OpRelease && a.hold != nil && a.plain: // perhaps by what was sent before
		s.what = dropped
	case a.op == subjects.OpRenew && a.hold != nil && a.hold.forced: // it is refused while the hold is there
	case a.hold != nil && (a.op == subjects.OpRenew || c.now < a.at+early(Remembered)):
		s.what = absent
	}
	c.done(a.lock)
}

// busy says whether somebody must have had the lock for the request to be refused.
func (c *Checker) busy(a *ask) bool {
	l := a.lock
	if a.drain == subjects.Timed || a.code == 408 && a.at <= l.keptAt {
		return false
	}
	return l.doubts == 0 || c.opt.MaxLease > 0 && a.at > l.doubtAt+3*int64(c.opt.MaxLease)+wander/2
}

// mayEnd is when the hold that a request has begun or renewed may end by its time at the earliest.
func (c *Checker) mayEnd(a *ask, h *hold) int64 {
	switch {
	case !h.leased():
		return Never
	case h.span() == 0:
		return 0
	}
	return a.at + early(h.span())
}

// abandon makes a request in a window one of which nobody knows what it does.
func (c *Checker) abandon(a *ask) {
	s := a.step
	if s == nil {
		return
	}
	a.step = nil
	a.unsure(&a.lock.window, c.now, s)
	c.done(a.lock)
}

// unsure says what is possible when nobody knows the answer.
func (a *ask) unsure(w *window, now int64, s *step) {
	switch {
	case a.op == subjects.OpAcquire:
		if s != nil {
			s.what = unknown
		}
		p := phantom{a, Never}
		if a.ttl > 0 || a.kind == subjects.Connection {
			p.until = now + late(a.wait) + late(a.ttl) + wander
		}
		w.maybe = append(w.maybe, p)
	case a.op == subjects.OpRelease && a.hold != nil:
		a.hold.loosen(a.at)
	}
}

// read puts what somebody saw into the window.
func (c *Checker) read(l *lock, e *Event, since int64) {
	if first := l.window.first; c.opt.Window < 0 || c.opt.Wild || first != nil && since <= first.at {
		return
	}
	s := &step{what: looked, call: since, ret: c.now}
	for _, h := range e.Holders {
		if l.holds[h.Token] == nil && (h.Token <= l.forgot || l.doubts > 0) {
			return // after a recovery any request of before may be carried out again
		}
		s.holders = append(s.holders, h.Token)
	}
	l.window.steps = append(l.window.steps, s)
	l.window.pending++
	c.done(l)
}

// done closes the window if it has enough.
func (c *Checker) done(l *lock) {
	w := &l.window
	w.pending--
	if n := len(w.steps) - w.carried; n >= c.opt.Window && w.pending == 0 || n >= 2*c.opt.Window {
		c.cut(l)
	}
}

// cut seeks an order for the window, and begins the next one. Of requests that are under way nothing is concluded.
func (c *Checker) cut(l *lock) {
	w := &l.window
	for _, s := range w.steps {
		if s.ask != nil && s.ask.step == s {
			s.ask.step = nil
			s.ask.unsure(w, c.now, s)
		}
	}
	c.seek(l)
	w.steps, w.pending = nil, 0
	w.maybe = slices.DeleteFunc(w.maybe, func(p phantom) bool { return p.until < c.now || p.ask.known() })
	w.carried = len(w.maybe)
	w.first = &image{at: c.now, last: l.high, back: l.back}
	for _, p := range w.maybe { // it may have its effect at any time
		w.steps = append(w.steps, &step{what: unknown, call: c.now, ret: Never, ask: p.ask})
	}
	for _, h := range l.holds { // order: sorted
		if h.ended == "" {
			w.first.holders = append(w.first.holders, holder{token: h.token, mayEnd: h.end(c), hold: h, mode: h.ask.mode, take: h.ask.take})
		}
	}
	w.first.sort()
}

// end is when a hold that began before a window may end in it, whatever renewals the window has not seen.
func (h *hold) end(c *Checker) int64 {
	if !h.leased() {
		return Never
	}
	return c.mayEnd(h.ask, h)
}

// seek seeks an order of the window's steps in which a simple lock gives the same answers.
func (c *Checker) seek(l *lock) {
	w := &l.window
	var history []porcupine.Operation
	for _, s := range w.steps {
		if s.what != nothing {
			history = append(history, porcupine.Operation{Input: s, Call: s.call, Return: s.ret})
		}
	}
	if len(history) == w.carried {
		return
	}
	c.stats.Windows++
	c.stats.Ordered += len(history)
	m := model{first: w.first, budget: c.opt.Budget, wild: c.opt.Wild}
	if porcupine.CheckOperations(m.porcupine(), history) {
		return
	}
	if m.budget < 0 {
		c.stats.Undecided++
		return
	}
	c.failLock(Linear, l, "%s", m.explain(l.name, history))
}

func byCall(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) }

// explain tells how far an order comes, and what then fits nowhere.
func (m *model) explain(name string, history []porcupine.Operation) string {
	m.budget = 1 << 30
	_, info := porcupine.CheckOperationsVerbose(m.porcupine(), history, 0)
	var longest []porcupine.Operation
	for _, part := range info.PartialLinearizationsOperations()[0] {
		if n := cmp.Compare(len(part), len(longest)); n > 0 || n == 0 && slices.CompareFunc(part, longest, byCall) < 0 {
			longest = part
		}
	}
	var left *step
	for _, o := range history {
		s := o.Input.(*step)
		if !slices.ContainsFunc(longest, func(p porcupine.Operation) bool { return p.Input == o.Input }) && (left == nil || s.ret < left.ret) {
			left = s
		}
	}
	state := any(m.first)
	if m.first == nil {
		state = &image{}
	}
	var text strings.Builder
	fmt.Fprintf(&text, "no order of the %d requests for %s gives these answers: after", len(history), name)
	for i, o := range longest {
		_, state = m.step(state.(*image), o.Input.(*step))
		if i >= len(longest)-5 {
			fmt.Fprintf(&text, " [%s]", o.Input)
		}
	}
	fmt.Fprintf(&text, " the lock is %s, and [%s] does not fit", state, left)
	return text.String()
}
