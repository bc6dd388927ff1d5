package check_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/opencluster/oclocks/internal/check"
	"github.com/opencluster/oclocks/subjects"
)

// naive is a lock service that is correct because it is simple, with clients that use it: it makes histories. Its clients' clocks
// differ from the true time as far as the promise allows.
type naive struct {
	rnd     *rand.Rand
	now     int64
	plans   []planned
	serial  int
	history []check.Event

	locks   map[[2]string]*naiveLock
	tokens  map[string]uint64 // by zone
	tickets map[string]uint64
	clients []*naiveClient
}

type planned struct {
	at    int64
	order int
	do    func()
}

type naiveLock struct {
	holders []*naiveHold
	queue   []*naiveAsk
}

type naiveClient struct {
	zone, name string
	rate       float64
	session    string
	heard      int64 // by the service
	closed     bool
	dead       bool
	serial     int
	holds      []*naiveHold
	waits      []*naiveAsk
}

type naiveAsk struct {
	c      *naiveClient
	event  check.Event // the Ask
	left   bool        // it is not to be granted any more
	over   bool        // it has had its effect
	gone   bool        // its client waits no more
	answer *check.Event
	hold   *naiveHold
}

type naiveHold struct {
	a        *naiveAsk
	token    uint64
	key      uint64
	deadline int64 // Never: none
	over     bool
	forced   bool
	back     bool  // its client has asked for its end
	until    int64 // its client's belief
}

const msec = int64(time.Millisecond)

func newNaive(seed uint64) *naive {
	n := &naive{
		rnd: rand.New(rand.NewPCG(seed, 7)), now: int64(time.Second), locks: map[[2]string]*naiveLock{}, tokens: map[string]uint64{},
		tickets: map[string]uint64{},
	}
	for i := range 6 {
		c := &naiveClient{zone: []string{"y", "z"}[i%2], name: fmt.Sprintf("c%d", i), rate: 0.94 + n.rnd.Float64()*0.12}
		c.session = "s" + c.name
		n.clients = append(n.clients, c)
		n.note(c, check.Event{Kind: check.SessionOpened, Session: c.session, Lease: naiveLease})
		c.heard = n.now
		n.keepAlive(c)
		n.after(n.between(0, 100*msec), func() { n.think(c) })
	}
	return n
}

const naiveLease = 2 * time.Second

// run lets the clients work for a while, and then come to an end.
func (n *naive) run(d time.Duration) []check.Event {
	end := n.now + int64(d)
	for len(n.plans) > 0 {
		p := n.plans[0]
		n.plans = n.plans[1:]
		n.now = max(p.at, n.now)
		if n.now > end {
			break
		}
		p.do()
	}
	n.plans = nil
	return n.history
}

func (n *naive) after(d int64, do func()) {
	n.serial++
	p := planned{n.now + d, n.serial, do}
	i, _ := slices.BinarySearchFunc(n.plans, p, func(a, b planned) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.order, b.order)) })
	n.plans = slices.Insert(n.plans, i, p)
}

func (n *naive) between(low, high int64) int64 { return low + n.rnd.Int64N(max(1, high-low)) }

func (n *naive) note(c *naiveClient, e check.Event) {
	if c.dead {
		return
	}
	e.At, e.Zone, e.Client = n.now, c.zone, c.name
	n.history = append(n.history, e)
}

// think has a client begin something from time to time.
func (n *naive) think(c *naiveClient) {
	if c.dead {
		return
	}
	names := []string{"x", "y", "only-" + c.zone, "m", "s"}
	name := names[n.rnd.IntN(len(names))]
	switch n.rnd.IntN(20) {
	case 0, 1:
		n.query(c, name)
	case 2:
		if len(c.holds) > 0 {
			n.fence(c, c.holds[n.rnd.IntN(len(c.holds))])
		}
	case 3:
		if n.rnd.IntN(20) == 0 {
			n.die(c)
			return
		}
	case 4:
		n.force(c)
	case 5:
		if n.rnd.IntN(20) == 0 && !c.closed {
			n.closeSession(c)
		}
	default:
		if len(c.holds)+len(c.waits) < 3 {
			n.acquire(c, name)
		}
	}
	n.after(n.between(msec, 300*msec), func() { n.think(c) })
}

func (n *naive) acquire(c *naiveClient, name string) {
	e := check.Event{Op: subjects.OpAcquire, Name: name, Take: 1, Grace: -1}
	switch name {
	case "m":
		e.Mode = subjects.Mode(n.rnd.IntN(2))
		e.Drain = subjects.Drain(n.rnd.IntN(2))
	case "s":
		e.Mode, e.Slots, e.Take = subjects.Semaphore, 3, uint32(1+n.rnd.IntN(2))
	}
	if n.rnd.IntN(2) == 0 {
		e.Wait = time.Duration(n.between(50*msec, 3000*msec))
	}
	e.Hold = subjects.Static
	switch n.rnd.IntN(3) {
	case 0:
		e.TTL = time.Duration(n.between(300*msec, 3000*msec))
	case 1:
		if !c.closed {
			e.Hold, e.Session = subjects.Connection, c.session
		}
	}
	a := n.ask(c, e)
	c.waits = append(c.waits, a)
	n.arrive(a, func() { n.enter(a) })
	switch n.rnd.IntN(20) {
	case 0:
		n.after(n.between(0, 500*msec), func() { n.giveUp(a) })
	case 1:
		n.after(n.between(0, 500*msec), func() { n.cancel(a) })
	}
}

// ask notes a request of the client.
func (n *naive) ask(c *naiveClient, e check.Event) *naiveAsk {
	c.serial++
	e.Kind, e.Request = check.Ask, fmt.Sprint(c.serial)
	n.note(c, e)
	e.At = n.now
	return &naiveAsk{c: c, event: e}
}

// arrive brings a request to the service, unless it is lost.
func (n *naive) arrive(a *naiveAsk, do func()) {
	if n.rnd.IntN(50) == 0 {
		n.after(n.between(0, 4000*msec), func() { n.giveUp(a) })
		return
	}
	n.after(n.between(10_000, 30*msec), do)
}

// tell brings an answer to the client: late, twice, or not at all.
func (n *naive) tell(a *naiveAsk, e check.Event, then func()) {
	e.Kind, e.Request = check.Answer, a.event.Request
	if n.rnd.IntN(50) == 0 {
		n.after(n.between(0, 1000*msec), func() { n.giveUp(a) })
		return
	}
	n.after(n.between(10_000, 30*msec), func() {
		if a.gone || a.c.dead {
			return
		}
		n.note(a.c, e)
		first := a.answer == nil
		a.answer = &e
		a.c.waits = slices.DeleteFunc(a.c.waits, func(w *naiveAsk) bool { return w == a })
		if first && then != nil {
			then()
		}
		if n.rnd.IntN(10) == 0 {
			n.after(n.between(0, 100*msec), func() {
				if !a.gone && !a.c.dead {
					n.note(a.c, e)
				}
			})
		}
	})
}

func (n *naive) giveUp(a *naiveAsk) {
	if a.gone || a.answer != nil || a.c.dead {
		return
	}
	a.gone = true
	a.c.waits = slices.DeleteFunc(a.c.waits, func(w *naiveAsk) bool { return w == a })
	n.note(a.c, check.Event{Kind: check.GiveUp, Request: a.event.Request})
}

func (n *naive) cancel(a *naiveAsk) {
	if a.gone || a.c.dead {
		return
	}
	if a.hold != nil {
		a.hold.back = true
	}
	b := n.ask(a.c, check.Event{Op: subjects.OpCancel, Name: a.event.Name, Of: a.event.Request})
	n.arrive(b, func() {
		e := check.Event{Code: 200, Was: "waiting"}
		switch {
		case a.hold != nil && !a.hold.over:
			e.Was, e.Token = "granted", a.hold.token
			n.end(a.hold)
		case a.hold != nil:
			e.Was = "released"
		case a.over:
			e.Was = "cancelled"
		default:
			a.left, a.over = true, true
			n.lockOf(a).leave(a)
			n.tell(a, check.Event{Code: 410, Reason: subjects.ReasonCancelled}, nil)
			n.handOn(n.lockOf(a))
		}
		n.tell(b, e, nil)
	})
}

func (n *naive) lock(zone, name string) *naiveLock {
	id := [2]string{zone, name}
	if n.locks[id] == nil {
		n.locks[id] = &naiveLock{}
	}
	return n.locks[id]
}

func (n *naive) lockOf(a *naiveAsk) *naiveLock { return n.lock(a.c.zone, a.event.Name) }

func (l *naiveLock) leave(a *naiveAsk) {
	l.queue = slices.DeleteFunc(l.queue, func(w *naiveAsk) bool { return w == a })
}

// enter is an acquire at the service.
func (n *naive) enter(a *naiveAsk) {
	if a.left {
		return
	}
	l := n.lockOf(a)
	n.tickets[a.c.zone]++
	a.event.Ticket = n.tickets[a.c.zone]
	l.queue = append(l.queue, a)
	n.handOn(l)
	if a.over {
		return
	}
	if a.event.Wait == 0 {
		l.leave(a)
		a.over = true
		n.tell(a, check.Event{Code: 409, Reason: subjects.ReasonHeld}, nil)
		return
	}
	n.after(int64(a.event.Wait), func() {
		if !a.over {
			l.leave(a)
			a.over = true
			n.tell(a, check.Event{Code: 408, Reason: subjects.ReasonTimeout}, nil)
			n.handOn(l)
		}
	})
}

// handOn grants what can be granted, in the order of the queue.
func (n *naive) handOn(l *naiveLock) {
	blockAll, blockWriters := false, false
	for _, a := range slices.Clone(l.queue) {
		writer := a.event.Mode == subjects.Exclusive
		switch {
		case blockAll:
		case !(blockWriters && writer) && l.fits(a):
			l.leave(a)
			n.grant(l, a)
		case writer && a.event.Drain == subjects.Soft:
			blockWriters = true
		default:
			blockAll = true
		}
	}
}

func (l *naiveLock) fits(a *naiveAsk) bool {
	sum := a.event.Take
	for _, h := range l.holders {
		if h.a.event.Mode != a.event.Mode || a.event.Mode == subjects.Exclusive {
			return false
		}
		sum += h.a.event.Take
	}
	return a.event.Mode != subjects.Semaphore || sum <= a.event.Slots
}

func (n *naive) grant(l *naiveLock, a *naiveAsk) {
	c := a.c
	n.tokens[c.zone] += 1 + n.rnd.Uint64N(3)
	h := &naiveHold{a: a, token: n.tokens[c.zone], key: n.rnd.Uint64() | 1, deadline: check.Never}
	a.over, a.hold = true, h
	l.holders = append(l.holders, h)
	e := check.Event{Code: 200, Token: h.token, Ticket: a.event.Ticket, Key: h.key, TTL: a.event.TTL}
	if a.event.Hold == subjects.Connection {
		e.Lease = naiveLease
		c.heard = max(c.heard, n.now)
	}
	n.start(h)
	n.tell(a, e, func() { n.hold(h) })
}

// start begins the hold's time.
func (n *naive) start(h *naiveHold) {
	ttl := h.a.event.TTL
	if h.a.event.Hold == subjects.Connection {
		n.after(int64(naiveLease), func() { n.silent(h) })
		return
	}
	if ttl == 0 {
		return
	}
	h.deadline = n.now + int64(ttl)
	n.after(int64(ttl), func() {
		if !h.over && n.now >= h.deadline {
			n.end(h)
		}
	})
}

// silent ends a connection hold if nothing was heard of its session for a lease.
func (n *naive) silent(h *naiveHold) {
	switch left := h.a.c.heard + int64(naiveLease) - n.now; {
	case h.over:
	case left <= 0:
		n.end(h)
	default:
		n.after(left, func() { n.silent(h) })
	}
}

func (n *naive) end(h *naiveHold) {
	h.over = true
	l := n.lockOf(h.a)
	l.holders = slices.DeleteFunc(l.holders, func(o *naiveHold) bool { return o == h })
	n.handOn(l)
}

// keepAlive keeps the client's session.
func (n *naive) keepAlive(c *naiveClient) {
	if c.dead || c.closed {
		return
	}
	sent := n.now
	if n.rnd.IntN(10) > 0 {
		n.after(n.between(10_000, 20*msec), func() {
			c.heard = max(c.heard, n.now)
			alive := slices.DeleteFunc(slices.Clone(c.holds), func(h *naiveHold) bool { return h.over })
			n.after(n.between(10_000, 20*msec), func() {
				n.note(c, check.Event{Kind: check.KeptAlive, Session: c.session, Since: sent})
				for _, h := range alive {
					if h.a.event.Hold == subjects.Connection && !h.back {
						n.believe(h, sent, naiveLease)
					}
				}
			})
		})
	}
	n.after(n.between(100*msec, 900*msec), func() { n.keepAlive(c) })
}

// believe has the holder trust its lock until 3/4 of the span after a time, by its own clock.
func (n *naive) believe(h *naiveHold, from int64, span time.Duration) {
	until := check.Never
	if span > 0 {
		until = from + int64(float64(span)*0.75*h.a.c.rate)
	}
	if until > h.until && until > n.now {
		h.until = until
		n.note(h.a.c, check.Event{Kind: check.Believe, Name: h.a.event.Name, Token: h.token, Until: until})
	}
}

// hold is what a client does with a lock that it was told of.
func (n *naive) hold(h *naiveHold) {
	c := h.a.c
	if h.back {
		return
	}
	span := h.a.event.TTL
	if h.a.event.Hold == subjects.Connection {
		span = naiveLease
	}
	n.believe(h, h.a.event.At, span)
	c.holds = append(c.holds, h)
	if n.rnd.IntN(20) == 0 {
		return // it is kept, or forgotten
	}
	n.after(n.between(0, 2000*msec), func() { n.giveBack(h) })
	if h.a.event.TTL > 0 {
		n.after(int64(h.a.event.TTL)/3, func() { n.renew(h) })
	}
}

func (n *naive) renew(h *naiveHold) {
	c := h.a.c
	if h.back || c.dead {
		return
	}
	sent := n.now
	a := n.ask(c, check.Event{Op: subjects.OpRenew, Name: h.a.event.Name, Token: h.token, Plain: true})
	n.arrive(a, func() {
		if h.over || h.forced {
			n.tell(a, check.Event{Code: 410, Reason: subjects.ReasonLost, Token: h.token}, func() { n.drop(h) })
			return
		}
		n.start(h)
		n.tell(a, check.Event{Code: 200, Token: h.token, TTL: h.a.event.TTL}, func() {
			if !h.back {
				n.believe(h, sent, h.a.event.TTL)
			}
		})
	})
}

// drop is a client that was told that its hold is over.
func (n *naive) drop(h *naiveHold) {
	h.back = true
	h.a.c.holds = slices.DeleteFunc(h.a.c.holds, func(o *naiveHold) bool { return o == h })
}

func (n *naive) giveBack(h *naiveHold) {
	if h.back || h.a.c.dead {
		return
	}
	n.drop(h)
	a := n.ask(h.a.c, check.Event{Op: subjects.OpRelease, Name: h.a.event.Name, Token: h.token})
	n.arrive(a, func() {
		if h.over {
			n.tell(a, check.Event{Code: 410, Reason: subjects.ReasonLost, Token: h.token}, nil)
			return
		}
		n.end(h)
		n.tell(a, check.Event{Code: 200, Token: h.token}, nil)
	})
}

// force is an administrator who ends some hold of the zone.
func (n *naive) force(c *naiveClient) {
	if n.rnd.IntN(4) > 0 {
		return
	}
	o := n.clients[n.rnd.IntN(len(n.clients))]
	if o.zone != c.zone || len(o.holds) == 0 {
		return
	}
	h := o.holds[n.rnd.IntN(len(o.holds))]
	at := n.rnd.IntN(2) == 0
	a := n.ask(c, check.Event{Op: subjects.OpForce, Name: h.a.event.Name, Token: h.token, Now: at})
	n.arrive(a, func() {
		h.forced = true
		if at && !h.over {
			n.end(h)
		}
		n.tell(a, check.Event{Code: 200, Token: h.token, Ended: h.over}, nil)
	})
}

func (n *naive) closeSession(c *naiveClient) {
	c.closed = true
	a := n.ask(c, check.Event{Op: subjects.OpSessionClose, Session: c.session})
	for _, h := range slices.Clone(c.holds) {
		if h.a.event.Session != "" {
			n.drop(h)
		}
	}
	for _, w := range slices.Clone(c.waits) {
		if w.event.Session != "" {
			n.giveUp(w)
		}
	}
	n.arrive(a, func() {
		for _, l := range n.locksInOrder() {
			for _, w := range slices.Clone(l.queue) {
				if w.c == c && w.event.Session != "" {
					w.over = true
					l.leave(w)
				}
			}
			for _, h := range slices.Clone(l.holders) {
				if h.a.c == c && h.a.event.Session != "" {
					n.end(h)
				}
			}
			n.handOn(l)
		}
		n.tell(a, check.Event{Code: 200}, nil)
	})
}

func (n *naive) die(c *naiveClient) {
	n.note(c, check.Event{Kind: check.Died})
	c.dead = true
}

func (n *naive) locksInOrder() []*naiveLock {
	var ids [][2]string
	for id := range n.locks { // order: sorted
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b [2]string) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) })
	var locks []*naiveLock
	for _, id := range ids {
		locks = append(locks, n.locks[id])
	}
	return locks
}

func (n *naive) query(c *naiveClient, name string) {
	since := n.now
	n.after(n.between(10_000, 20*msec), func() {
		l := n.lock(c.zone, name)
		e := check.Event{Kind: check.Seen, Name: name, Since: since}
		for _, h := range l.holders {
			e.Holders = append(e.Holders, check.Holder{Token: h.token, Client: h.a.c.name})
		}
		for _, w := range l.queue {
			e.Queue = append(e.Queue, check.Waiter{Ticket: w.event.Ticket, Client: w.c.name})
		}
		n.after(n.between(10_000, 20*msec), func() { n.note(c, e) })
	})
}

func (n *naive) fence(c *naiveClient, h *naiveHold) {
	since := n.now
	n.after(n.between(10_000, 20*msec), func() {
		l := n.lockOf(h.a)
		e := check.Event{Kind: check.Checked, Name: h.a.event.Name, Token: h.token, Since: since, Newest: n.tokens[c.zone], Oldest: n.tokens[c.zone] + 1}
		for i, o := range l.holders {
			e.Current = e.Current || o == h
			if i == 0 {
				e.Newest, e.Oldest = o.token, o.token
			}
			e.Newest, e.Oldest = max(e.Newest, o.token), min(e.Oldest, o.token)
		}
		n.after(n.between(10_000, 20*msec), func() { n.note(c, e) })
	})
}
