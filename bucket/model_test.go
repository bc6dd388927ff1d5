package bucket

import (
	"slices"
	"strconv"
	"time"

	"github.com/opencluster/oclocks/subjects"
)

// model is the lock table once more, as naive as can be: maps and slices, searched from one end to the other, and written
// from ARCHITECTURE.md rather than from the table. It has no timers: it is told what the table's timer did and says
// whether that was due. Messages for people are not modelled.
type model struct {
	now          Now
	epoch        uint64
	term         uint32
	promoted     int64
	recoverUntil int64
	stopping     bool
	limits       Limits
	zones        map[string]*mZone
	out          []Effect
	moved        int // repeats that took the answer from the subject of an earlier request
}

type mZone struct {
	name     string
	events   bool
	token    uint64
	ticket   uint64
	locks    map[string]*mLock
	sessions map[string]*mSession
	requests map[userRequest]*mRequest
	finished []*mRequest
	ended    []mEnd
	quiet    int64 // since when no hold has ended
}

type mEnd struct {
	key  uint64
	name string
	why  string
}

type mLock struct {
	name     string
	holds    []*mHold
	queue    []*mWaiter
	read     bool
	lastRead int64
}

// mAsk is what an acquire asked for.
type mAsk struct {
	name, user, reply, holder string
	mode                      subjects.Mode
	kind                      subjects.Kind
	drain                     subjects.Drain
	slots, take               uint32
	ttl, wait, quiet          time.Duration
	grace                     time.Duration // -1: the lease
	key                       uint64
	session                   *mSession
	request                   *mRequest
	requestText               string
	number                    uint64
	enqueue, recall           bool
}

type mHold struct {
	mAsk
	data                  string
	token                 uint64
	since                 int64
	limit, parted, forced int64
	isForced              bool
	keeps                 bool // knows its request's number
}

type mWaiter struct {
	mAsk
	ticket           uint64
	since            int64
	deadline, parted int64
	placed           bool
}

type mSession struct {
	id, user     string
	conn         Conn     // of the opening that is replicated
	replicated   uint64   // and its number
	next         *Session // one that is later and not replicated yet
	lease        time.Duration
	ended        string // why, "" while alive
	released     int
	dormant      bool
	done, forgot uint64
	requests     map[uint64]*mRequest
	finished     []*mRequest
	deadline     int64
	parted       bool
	beat         uint64
}

// mRequest is a remembered request: it waits, or has an outcome.
type mRequest struct {
	op      subjects.Op
	user    string
	number  uint64
	id      string
	name    string
	session *mSession
	waiter  *mWaiter
	outcome subjects.Body
	at      int64
}

func newModel(limits Limits) *model {
	return &model{limits: limits, zones: map[string]*mZone{}}
}

func (m *model) zone(name string) *mZone {
	z := m.zones[name]
	if z == nil {
		z = &mZone{
			name: name, locks: map[string]*mLock{}, sessions: map[string]*mSession{}, requests: map[userRequest]*mRequest{},
		}
		m.zones[name] = z
	}
	return z
}

func (m *model) promote(now Now, term Term, recoverUntil int64) {
	m.now, m.epoch, m.term, m.recoverUntil, m.stopping = now, term.Epoch, term.Term, recoverUntil, false
	m.promoted = now.Boot
	for _, z := range m.zones {
		z.quiet = now.Boot
		for _, s := range z.sessions {
			s.parted, s.beat, s.next = false, 0, nil
			s.deadline = now.Boot + int64(s.lease)
			if s.ended != "" {
				s.deadline = now.Boot + int64(max(2*time.Minute, 2*s.lease))
			}
			for _, r := range s.finished {
				r.at = now.Boot
				m.keepNumber(z, r)
			}
		}
		for _, r := range z.finished {
			r.at = now.Boot
		}
		for _, l := range z.locks {
			l.lastRead = now.Boot
			for _, h := range l.holds {
				h.limit, h.parted, h.forced = m.limitOf(h.ttl), never, never
				if h.isForced {
					h.forced = m.forcedUntil(h)
				}
			}
			for _, w := range l.queue {
				w.deadline, w.parted = now.Boot+int64(w.wait), never
			}
		}
	}
}

// keepNumber lets the hold that a request was granted know its number.
func (m *model) keepNumber(z *mZone, r *mRequest) {
	g, ok := r.outcome.(*subjects.Grant)
	if l := z.locks[r.name]; ok && r.op == subjects.OpAcquire && l != nil {
		for _, h := range l.holds {
			h.keeps = h.keeps || h.token == g.Token
		}
	}
}

func (m *model) limitOf(ttl time.Duration) int64 {
	if ttl == 0 {
		return never
	}
	return m.now.Boot + int64(ttl)
}

func (m *model) emit(e Effect) { m.out = append(m.out, e) }

func (m *model) reply(z *mZone, to string, body subjects.Body) {
	m.emit(Effect{Kind: Reply, Zone: z.name, To: to, Body: body})
}

func (m *model) owner(z *mZone, s *mSession, e subjects.SessionEvent) {
	m.emit(Effect{Kind: NotifyOwner, Zone: z.name, User: s.user, SessionID: s.id, Body: &e})
}

func (m *model) tidy(z *mZone, l *mLock) {
	if len(l.holds)+len(l.queue) == 0 {
		delete(z.locks, l.name)
	}
}

// compatible says whether the holders let somebody in.
func compatible(l *mLock, a *mAsk) bool {
	if len(l.holds) == 0 {
		return true
	}
	if a.mode == subjects.Exclusive || l.holds[0].mode != a.mode {
		return false
	}
	taken := uint32(0)
	for _, h := range l.holds {
		taken += h.take
	}
	return a.mode == subjects.Shared || taken+a.take <= a.slots
}

func (m *model) quiet(l *mLock, a *mAsk) bool {
	return a.drain != subjects.Timed || !l.read || m.now.Boot >= l.lastRead+int64(a.quiet)
}

// next is the first of a queue that may be granted: the rule of ARCHITECTURE.md, word by word.
func (m *model) next(l *mLock, queue []*mAsk) int {
	exclusiveBlocked := false
	for i, a := range queue {
		exclusive := a.mode == subjects.Exclusive
		if !(exclusive && exclusiveBlocked) && compatible(l, a) && m.quiet(l, a) {
			return i
		}
		if !exclusive || a.drain == subjects.Hard {
			return -1
		}
		exclusiveBlocked = true
	}
	return -1
}

func asks(l *mLock) (queue []*mAsk) {
	for _, w := range l.queue {
		queue = append(queue, &w.mAsk)
	}
	return queue
}

func (m *model) recovering() bool { return m.now.Boot < m.recoverUntil }

// settle grants whoever may be.
func (m *model) settle(z *mZone, l *mLock) {
	first := z.token
	for !m.recovering() {
		i := m.next(l, asks(l))
		if i < 0 {
			break
		}
		w := l.queue[i]
		l.queue = slices.Delete(l.queue, i, i+1)
		g := m.grant(z, l, &w.mAsk, w.ticket)
		l.holds[len(l.holds)-1].keeps = true
		g.Waited = time.Duration(m.now.Wall-w.since) * time.Millisecond
		m.finish(z, w.request, g)
		m.tell(z, w, "granted", g)
		m.zoneEvent(z, subjects.LockEvent{Type: "granted", Name: l.name, Token: g.Token, Holder: w.holder, User: w.user})
	}
	if len(l.queue) == 0 {
		return
	}
	for i := len(l.holds) - 1; i >= 0 && l.holds[i].token > first; i-- {
		if h := l.holds[i]; h.recall {
			m.owner(z, h.session, subjects.SessionEvent{Type: "recall", Name: l.name, Token: h.token, Queue: len(l.queue)})
		}
	}
	if w := l.queue[0]; w.enqueue && !w.placed {
		w.placed = true
		m.owner(z, w.session, subjects.SessionEvent{
			Type: "place", Name: l.name, Ticket: w.ticket, Place: 1, Request: w.requestText,
		})
	}
}

func (m *model) zoneEvent(z *mZone, e subjects.LockEvent) {
	if z.events {
		e.Bucket = 1
		m.emit(Effect{Kind: NotifyZone, Zone: z.name, Body: &e})
	}
}

// tell answers a waiter, or its session if it does not wait for the answer.
func (m *model) tell(z *mZone, w *mWaiter, event string, body subjects.Body) {
	if !w.enqueue {
		m.reply(z, w.reply, body)
		return
	}
	e := subjects.SessionEvent{Type: event, Name: w.name, Ticket: w.ticket, Request: w.requestText}
	switch b := body.(type) {
	case *subjects.Grant:
		e.Grant, e.Token = b, b.Token
	case *subjects.Refusal:
		e.Refusal, e.Queue, e.Why = b, b.Queue, b.Why
	}
	m.owner(z, w.session, e)
}

// grant makes a holder.
func (m *model) grant(z *mZone, l *mLock, a *mAsk, ticket uint64) *subjects.Grant {
	z.token = max(z.token, uint64(m.term)<<29) + 1
	h := &mHold{mAsk: *a, token: z.token, since: m.now.Wall, limit: m.limitOf(a.ttl), parted: never, forced: never}
	l.holds = append(l.holds, h)
	if a.mode != subjects.Exclusive {
		l.read, l.lastRead = true, m.now.Boot
	}
	if s := a.session; s != nil && s.parted && a.kind == subjects.Connection {
		h.parted = m.now.Boot + int64(h.graceOf())
	}
	g := m.grantBody(h)
	g.Ticket = ticket
	return g
}

func (h *mHold) graceOf() time.Duration {
	if h.grace >= 0 {
		return h.grace
	}
	return h.session.lease
}

func (m *model) grantBody(h *mHold) *subjects.Grant {
	g := &subjects.Grant{
		Name: h.name, Key: h.key, Token: h.token, Mode: h.mode, Take: h.take, Slots: h.slots, Kind: h.kind, TTL: h.ttl,
		Lease: h.ttl, Bucket: 1, Epoch: m.epoch, User: h.user,
	}
	if h.session != nil {
		g.Session, g.Beat = h.session.id, h.session.beat
		if h.kind == subjects.Connection {
			g.Lease = h.session.lease
		}
	}
	g.Durable = g.Lease > 0 && g.Lease <= m.limits.MaxLease
	return g
}

// end ends a hold and hands its lock on; answer, if any, comes between the two.
func (m *model) end(z *mZone, h *mHold, why, outcome string, answer func()) {
	l := z.locks[h.name]
	l.holds = slices.DeleteFunc(l.holds, func(each *mHold) bool { return each == h })
	z.ended, z.quiet = append(z.ended, mEnd{h.key, h.name, why}), m.now.Boot
	if len(z.ended) > 1024 {
		z.ended = z.ended[1:]
	}
	asked := why == "released" || why == "closed"
	if h.session != nil && !asked {
		m.owner(z, h.session, subjects.SessionEvent{Type: "lost", Name: h.name, Token: h.token, Why: why})
	}
	event := map[string]string{"released": "released", "closed": "released", "expired": "expired", "forced": "forced"}[why]
	if event == "" {
		event = "lost"
	}
	m.zoneEvent(z, subjects.LockEvent{
		Type: event, Name: h.name, Token: h.token, Holder: h.holder, User: h.user, Outcome: outcome, Held: m.held(h),
	})
	m.forgetDormant(z, h.session)
	if answer != nil {
		answer()
	}
	m.settle(z, l)
	m.tidy(z, l)
}

func (m *model) held(h *mHold) time.Duration {
	return time.Duration(m.now.Wall-h.since) * time.Millisecond
}

// leave takes a waiter out of the queue.
func (m *model) leave(z *mZone, w *mWaiter, why string) *mLock {
	l := z.locks[w.name]
	var r *subjects.Refusal
	event := "cancelled"
	switch why {
	case "timeout":
		r = &subjects.Refusal{Code: 408, Reason: "timeout", Queue: len(l.queue), HasQueue: true}
		event = "timeout"
	case "cancelled":
		r = &subjects.Refusal{Code: 410, Reason: "cancelled"}
	case "stopping":
		r = &subjects.Refusal{Code: 503, Reason: "unavailable", Why: why, RetryAfter: time.Second}
	default:
		r = &subjects.Refusal{Code: 410, Reason: "session", Why: why}
	}
	l.queue = slices.DeleteFunc(l.queue, func(each *mWaiter) bool { return each == w })
	if why == "timeout" || why == "cancelled" {
		m.finish(z, w.request, r)
	} else {
		m.forget(z, w.request)
	}
	m.tell(z, w, event, r)
	m.tidy(z, l)
	return l
}

// finish remembers the outcome of a request.
func (m *model) finish(z *mZone, r *mRequest, body subjects.Body) {
	if r == nil {
		return
	}
	r.outcome, r.waiter, r.at = body, nil, m.now.Boot
	if r.session != nil {
		r.session.finished = append(r.session.finished, r)
	} else {
		z.finished = append(z.finished, r)
	}
}

func (m *model) forget(z *mZone, r *mRequest) {
	if r == nil {
		return
	}
	is := func(each *mRequest) bool { return each == r }
	if r.session != nil {
		delete(r.session.requests, r.number)
		r.session.finished = slices.DeleteFunc(r.session.finished, is)
	} else {
		delete(z.requests, userRequest{r.user, r.id})
		z.finished = slices.DeleteFunc(z.finished, is)
	}
	if r.waiter != nil {
		r.waiter.request = nil
	}
}

// remember begins to remember a request.
func (m *model) remember(z *mZone, op subjects.Op, in *Input, s *mSession) *mRequest {
	r := &mRequest{op: op, user: in.User, name: in.Req.Name, session: s}
	switch {
	case s != nil && in.Req.Number > 0:
		r.number = in.Req.Number
		s.requests[r.number] = r
	case s == nil && in.Req.RequestID != "":
		r.id = in.Req.RequestID
		z.requests[userRequest{r.user, r.id}] = r
	default:
		return nil
	}
	return r
}

func (r *mRequest) text() string {
	if r == nil {
		return ""
	}
	if r.number > 0 {
		return strconv.FormatUint(r.number, 10)
	}
	return r.id
}
