package sim

import (
	"fmt"
	"time"

	"github.com/opencluster/oclocks/broker/parking"
	"github.com/opencluster/oclocks/bucket"
	"github.com/opencluster/oclocks/internal/check"
	"github.com/opencluster/oclocks/subjects"
)

const (
	patience = 400 * ms // of a client, until it asks again
)

// client asks for locks, holds them, renews them and gives them back, without a session: each request has an id. It has a clock of
// its own and counts its trust as docs/protocol.md says: from its own sending, 3/4 of the time limit.
type client struct {
	w      *world
	zone   string
	name   string // the user; clients of different zones have the same
	rate   float64
	offset int64
	via    int // machine that it is connected to
	asks   map[string]*ask
	serial int
	busy   int // wishes that are not over
	life   int // counts its ends: what was wished for before does not count
	count  uint32
	paused int64
}

// ask is a request and what came of it.
type ask struct {
	c        *client
	id       string
	req      subjects.Request
	reply    string
	sent     int64 // first sending, by the client's clock
	sentAt   int64 // and by the world's
	tries    int
	answered bool
	gone     bool  // nobody waits for it any more
	due      int64 // to be sent again
	then     func(a *ask, body subjects.Body)
}

func newClient(w *world, zone, user string) *client {
	c := &client{
		w: w, zone: zone, name: user, rate: w.mix.rate(w.rnd), offset: w.between(0, 1000*second), asks: map[string]*ask{},
		count: w.mix.buckets, via: w.draw(w.mix.nodes),
	}
	w.inboxes[address{zone, "_INBOX." + user}] = c
	w.after(w.between(500*ms, 3*second), c.think)
	return c
}

func (c *client) clock() int64           { return c.offset + int64(float64(c.w.now)*c.rate) }
func (c *client) real(clock int64) int64 { return int64(float64(clock-c.offset) / c.rate) }

// awake does something now, or when the client goes on.
func (c *client) awake(do func()) {
	if c.paused > c.w.now {
		c.w.plan(c.paused+c.w.between(0, ms), func() { c.awake(do) })
		return
	}
	do()
}

// think begins something from time to time.
func (c *client) think() {
	c.awake(func() {
		if !c.w.healed && c.busy < 3 {
			c.wish()
		}
		c.w.after(c.w.between(c.w.mix.think/8, 2*c.w.mix.think), c.think)
	})
}

// lockNames are the names that clients fight for. What begins with m is taken in all modes.
var lockNames = []string{"x0", "x1", "x2", "x3", "x4", "x5", "m0", "m1", "s0"}

// lockName is one of those that are fought for in this run.
func (w *world) lockName() string {
	first := int(w.seed % uint64(len(lockNames)))
	return lockNames[(first+w.draw(w.mix.names)*2)%len(lockNames)]
}

// eternalNames is how many names there are, from e0 on, that are held without a limit.
const eternalNames = 20

// wish is one lock from its acquire to its end.
func (c *client) wish() {
	w := c.w
	req := subjects.Request{Op: subjects.OpAcquire, Name: w.lockName(), Kind: subjects.Static, Has: subjects.HasTTL}
	req.TTL = time.Duration(w.between(800*ms, int64(w.mix.maxLease)))
	switch req.Name[0] {
	case 'm':
		req.Mode = [...]subjects.Mode{subjects.Exclusive, subjects.Shared, subjects.Shared}[w.draw(3)]
	case 's':
		req.Mode, req.Slots, req.Take = subjects.Semaphore, 3, uint32(1+w.draw(2))
	}
	if w.draw(8) == 0 { // a hold without a limit, which stays
		req = subjects.Request{Op: subjects.OpAcquire, Name: fmt.Sprintf("e%d", w.draw(eternalNames)), Kind: subjects.Static, Has: subjects.HasTTL}
	}
	if w.draw(3) > 0 && req.Name[0] != 'e' { // nobody waits for what may be kept
		req.Wait, req.Has = time.Duration(w.between(100*ms, 20*second)), req.Has|subjects.HasWait
	}
	eternal := req.Name[0] == 'e'
	c.busy++
	life := c.life
	over := func() {
		if c.life == life {
			c.busy--
		}
	}
	c.ask(req, nil, func(a *ask, body subjects.Body) {
		grant, ok := body.(*subjects.Grant)
		if !ok {
			over()
			return
		}
		g := &grip{grant: grant}
		c.trust(g, c.trusted(a.sent, int64(grant.TTL)))
		switch {
		case eternal && w.draw(2) == 0:
			over() // it is kept
		default:
			c.hold(g, over)
		}
	})
}

// hold keeps a lock for a while and gives it back.
func (c *client) hold(g *grip, over func()) {
	w := c.w
	until := w.now + w.between(0, w.mix.keep)
	ttl := int64(g.grant.TTL)
	silent := ttl > 0 && w.chance(w.mix.silent) // it believes for as long as it may, and asks nothing meanwhile
	if silent {
		until = w.now + w.between(0, ttl)
	}
	if w.chance(w.mix.brief) {
		until = w.now + w.between(0, 150*ms)
	}
	var step func()
	step = func() {
		c.awake(func() {
			switch {
			case g.lost:
				over()
			case w.now >= until || w.healed:
				if w.draw(20) == 0 && !w.healed && ttl > 0 {
					w.fault("holder forgets its lock")
					over()
					return
				}
				c.release(g, over)
			default:
				if ttl > 0 && !silent {
					c.renew(g)
					w.after(min(ttl/4, max(until-w.now, ms)), step)
				} else {
					w.after(max(until-w.now, ms), step)
				}
			}
		})
	}
	w.after(w.between(0, 200*ms), step)
}

func (c *client) renew(g *grip) {
	sent := c.clock()
	a := c.make(subjects.Request{Op: subjects.OpRenew, Name: g.grant.Name, Key: g.grant.Key}, "", g)
	a.then = func(_ *ask, body subjects.Body) {
		a.gone = true
		delete(c.asks, a.reply)
		c.heard(a, body)
		switch b := body.(type) {
		case *subjects.Grant:
			c.trust(g, c.trusted(sent, int64(b.TTL)))
		case *subjects.Refusal:
			g.lost = g.lost || b.Code == 410 || b.Code == 404 || b.Code == 403
		}
	}
	c.send(a)
	c.w.after(5*second, func() {
		if !a.gone {
			a.gone = true
			delete(c.asks, a.reply)
			c.note(&check.Event{Kind: check.GiveUp, Request: a.id})
		}
	})
}

// trusted is until when, by the world's time, a client believes in what was asked for at that time of its own clock.
func (c *client) trusted(sent, ttl int64) int64 {
	if ttl == 0 {
		return never
	}
	return c.real(sent + ttl/4*3)
}

func (c *client) release(g *grip, over func()) {
	g.back = true
	c.ask(subjects.Request{Op: subjects.OpRelease, Name: g.grant.Name, Key: g.grant.Key}, g, func(*ask, subjects.Body) { over() })
}

// make makes a request, with an id on the wire if it is to be told from others when it is sent again.
func (c *client) make(req subjects.Request, wireID string, about *grip) *ask {
	c.serial++
	a := &ask{c: c, id: fmt.Sprintf("%s.%d", c.name, c.serial), req: req}
	a.reply = "_INBOX." + a.id // <user>.<serial>
	a.req.RequestID = wireID
	a.sent, a.sentAt = c.clock(), c.w.now
	c.asks[a.reply] = a
	c.asked(a, about)
	return a
}

// ask sends a request until it is answered.
func (c *client) ask(req subjects.Request, about *grip, then func(a *ask, body subjects.Body)) {
	a := c.make(req, fmt.Sprintf("%s.%d", c.name, c.serial+1), about)
	a.then = then
	c.w.stats.Asks++
	if c.w.telling {
		c.w.tell("%s asks %v %s (%s) mode %v ttl %v wait %v", c.name, req.Op, req.Name, a.id, req.Mode, req.TTL, req.Wait)
	}
	c.again(a)
}

func (c *client) again(a *ask) {
	c.awake(func() {
		if a.answered || a.gone {
			return
		}
		a.tries++
		c.send(a)
		if !c.w.healed && c.w.chance(c.w.mix.repeats) {
			c.w.fault("request repeated")
			c.send(a)
		}
		d := patience
		if a.req.Wait > 0 {
			d = 1500 * ms
		}
		d += c.w.between(0, d)
		a.due = c.w.now + d
		c.w.plan(a.due, func() {
			if a.due <= c.w.now {
				c.again(a)
			}
		})
	})
}

// send brings a request to a node that listens for its bucket, or to the one that the client is connected to.
func (c *client) send(a *ask) {
	w := c.w
	if !w.healed && w.chance(w.mix.replies) {
		w.fault("request lost")
		return
	}
	number := subjects.BucketOf(a.req.Name, c.count)
	var to []*machine
	for _, m := range w.machines {
		if m.p != nil && m.p.serving && m.p.turns[number] {
			to = append(to, m)
		}
	}
	hops := 0
	if len(to) == 0 || w.draw(8) == 0 {
		hops, to = 1, nil
		for _, m := range w.machines {
			if m.p != nil && m.p.serving {
				to = append(to, m)
			}
		}
	}
	if len(to) == 0 {
		return
	}
	m := to[w.draw(len(to))]
	gen := m.gen
	d := w.between(50*us, 3*ms)
	if !w.healed && w.chance(w.mix.late) {
		w.fault("request late")
		d += w.between(10*ms, 4*second)
	}
	req := a.req
	if req.Wait > 0 { // a repetition does not wait longer on the whole
		req.Wait = max(req.Wait-time.Duration(c.clock()-a.sent), time.Millisecond)
	}
	w.after(d, func() {
		if m.p == nil || m.gen != gen {
			return
		}
		m.p.whenAwake(func() {
			m.p.receive(&task{bucket: number, trip: parking.Trip{Hops: hops}, req: req, in: bucket.Input{Zone: c.zone, User: c.name, Reply: a.reply}})
		})
	})
}

// hear brings an answer to the client.
func (c *client) hear(_ *machine, token string, body subjects.Body) {
	w := c.w
	a := c.asks["_INBOX."+c.name+"."+token]
	if a == nil {
		return
	}
	if !w.healed && w.chance(w.mix.replies) {
		w.fault("answer lost")
		return
	}
	d := w.between(50*us, 3*ms)
	if !w.healed && w.chance(w.mix.late) {
		w.fault("answer late")
		d += w.between(10*ms, 4*second)
	}
	w.after(d, func() { c.awake(func() { c.answered(a, body) }) })
}

// answered takes an answer.
func (c *client) answered(a *ask, body subjects.Body) {
	w := c.w
	refusal, refused := body.(*subjects.Refusal)
	switch {
	case a.gone:
		return
	case refused && refusal.Code == 421:
		if refusal.Map != nil && len(refusal.Map.Primary) > int(c.count) {
			c.count = uint32(len(refusal.Map.Primary))
		}
		if !a.answered && a.req.Op != subjects.OpRenew {
			a.due = w.now + w.between(5*ms, 60*ms)
			w.plan(a.due, func() {
				if a.due <= w.now {
					c.again(a)
				}
			})
		}
		return
	case refused && refusal.Code == 503:
		return // asked again after a while
	case a.req.Op == subjects.OpRenew:
		a.then(a, body)
		return
	}
	c.heard(a, body)
	if a.answered {
		return
	}
	a.answered = true
	w.stats.Answers++
	if g, ok := body.(*subjects.Grant); ok {
		w.tell("%s is granted %s token %d ticket %d bucket %d epoch %d (%s)", c.name, g.Name, g.Token, g.Ticket, g.Bucket, g.Epoch, a.id)
		w.check.granted(c.zone, a.id, g)
	} else if w.telling {
		w.tell("%s is answered %s (%s)", c.name, body.AppendJSON(nil), a.id)
	}
	a.then(a, body)
}
