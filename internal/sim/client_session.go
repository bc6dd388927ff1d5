package sim

import (
	"fmt"
	"strconv"
	"time"

	"github.com/opencluster/oclocks/broker/edge"
	"github.com/opencluster/oclocks/internal/check"
	mind "github.com/opencluster/oclocks/internal/machine"
	"github.com/opencluster/oclocks/subjects"
)

// person is a user of a zone who runs one client process after the other.
type person struct {
	zone, user string
	processes  int
	secret     string // of the session that the last one had
	beats      uint64
}

// member is a process of a client that runs internal/machine: what package client does around it is here, in one thread. It has
// its own clock.
type member struct {
	w    *world
	of   *person
	name string // in the history
	box  string // its inbox
	m    *mind.Machine

	rate   float64
	offset int64
	paused int64
	deaf   int64 // no event comes to it until then
	dead   bool

	road      mind.Road
	roam      mind.Roam
	hosts     []string // in the order in which nats.go has them
	seat      *seat    // nil: there is no connection
	barred    map[int]int64
	lanes     []*lane // by their numbers, from 1 on; nil: it is not open
	laneBoxes []*laneBox
	missed    int // pings that were not answered
	lost      int // looks at which the server had no lease

	events  string // subject of the session's events
	session string // as told to the history
	last    string // the same, or the one before
	armed   int64  // when the timer rings, by the world's time
	wishes  int    // that are not over
	serial  int    // of requests
	claims  []*claim
	errands []*errand  // acquires
	waits   []*acquire // that are not answered
	tools   []*tool
	keeps   bool // what it has for long
	back    bool // it has come back with the secret of an earlier process, whose holds it does not know
}

// claim is what client.Claim is: a hold that was given to whoever asked for it.
type claim struct {
	c       *member
	hold    mind.Hold
	granted bool
	over    bool
	end     int64 // of the trust, by the client's clock, as it was told to the history; 0: it was not
}

// acquire is one that is under way.
type acquire struct {
	call *mind.Call
	of   *errand
}

// errand is a request of the client's owner.
type errand struct {
	id   string // in the history
	then func(r *mind.Result)

	call    *mind.Call // an acquire
	number  uint64     // its number in the session, as it was sent last
	session string
	done    bool
}

// newMember starts a process. A twin comes back with the secret of the one before, others may.
func newMember(w *world, of *person, twin bool) *member {
	of.processes++
	c := &member{
		w: w, of: of, name: fmt.Sprintf("%s.%s.%d", of.zone, of.user, of.processes), rate: w.mix.rate(w.rnd),
		offset: w.between(second, 1000*second), armed: never, barred: map[int]int64{}, keeps: w.chance(w.mix.keeper),
	}
	c.box = fmt.Sprintf("_INBOX.%s.%d", of.user, of.processes)
	w.inboxes[address{of.zone, c.box}] = c
	for _, i := range w.rnd.Perm(len(w.machines)) {
		c.hosts = append(c.hosts, strconv.Itoa(i))
	}
	cfg := mind.Config{
		User: of.user, Buckets: 1, Timeout: 2 * time.Second, Name: c.name, FirstBeat: of.beats, Seed: w.rnd.Uint64(), MaxCalls: 1000,
	}
	cfg.InStep = cfg.Seed&1 == 1 // some share a connection with others
	of.beats += 1 << 32          // firstBeat counts by wall time
	if w.chance(w.mix.behind) {
		cfg.FirstBeat = uint64(w.between(0, int64(of.beats))) // its clock is wrong; it counts where a bucket refuses a number for that
	}
	if of.secret != "" && (twin || w.draw(2) == 0) {
		cfg.Secret, c.back = of.secret, true
		w.count("comes back with a secret")
	}
	if w.draw(2) == 0 {
		cfg.Lease = time.Duration(w.between(300*ms, 5*second))
	}
	if w.draw(2) == 0 {
		cfg.Lanes, cfg.Busy = 1+w.draw(3), 1+w.draw(3)
		c.useLanes(cfg.Lanes)
	}
	c.m = mind.New(cfg)
	c.m.Disconnected(c.clock()) // package client connects first
	w.members = append(w.members, c)
	w.tell("%s starts, lease %v, comes back %t", c.name, cfg.Lease, cfg.Secret != "")
	c.connect()
	w.after(w.between(0, 700*ms), c.ping)
	w.after(w.between(20*ms, 2*second), c.think)
	return c
}

func (c *member) clock() int64 { return c.offset + int64(float64(c.w.now)*c.rate) }

// real is when its clock shows that, at the earliest.
func (c *member) real(clock int64) int64 {
	if clock >= never/2 {
		return never
	}
	return int64(float64(clock-c.offset) / c.rate)
}

// awake does something now, or when the client goes on; never if it has died.
func (c *member) awake(do func()) {
	switch {
	case c.dead:
	case c.paused > c.w.now:
		c.w.plan(c.paused+c.w.between(0, ms), func() { c.awake(do) })
	default:
		do()
	}
}

// do runs a step of the machine at the present time and carries out what it wants: Client.do.
func (c *member) do(step func(now int64)) {
	step(c.clock())
	c.carryOut()
}

// carryOut is Client.perform.
func (c *member) carryOut() {
	// What is done here may call the machine again, whose actions come behind.
	for actions := c.m.Take(); len(actions) > 0; actions = c.m.Take() {
		for _, a := range append([]mind.Action(nil), actions...) {
			switch a.Kind {
			case mind.Send:
				if a.Lane > 0 {
					c.w.count("request over a lane")
				}
				c.send(c.seatOf(a.Lane), a.Subject, c.box+"."+a.Reply, a.Body)
			case mind.OpenLane:
				c.openLane(a.Node, a.Lane)
			case mind.CloseLane:
				c.closeLane(c.lanes[a.Lane-1])
			case mind.Listen, mind.Unlisten:
				c.listen(a.Reply, a.Kind == mind.Listen)
			case mind.Opened:
				c.opened(a.Subject)
			case mind.Finish:
				a.Call.Owner.(*errand).then(&a.Call.Result)
			case mind.Change:
				a.Hold.Owner.(*claim).ended()
			}
		}
	}
	c.anew()
	c.believe()
	if next := c.m.Next(); next != mind.Never {
		c.arm(c.real(next) + 1)
	}
}

func (c *member) arm(at int64) {
	if at = max(at, c.w.now+us); at >= c.armed {
		return
	}
	c.armed = at
	c.w.plan(at, func() {
		if c.armed != at {
			return
		}
		c.awake(func() {
			c.armed = never
			c.do(c.m.Tick)
		})
	})
}

// opened takes a session that is open.
func (c *member) opened(events string) {
	c.events = events
	info, _ := c.m.Session()
	c.of.secret = info.Secret
	address, err := subjects.ParseEvent(events)
	if err != nil {
		c.w.fail("%s is told to listen to %q: %v", c.name, events, err)
		return
	}
	if c.session == address.ID {
		c.w.count("session came back")
	} else {
		c.sessionOver("")
		c.session, c.last = address.ID, address.ID
		c.w.count("session opened")
	}
	c.note(&check.Event{Kind: check.SessionOpened, Session: c.session, Lease: info.Lease, Incarnation: info.Incarnation,
		Place: c.place(info.Session)})
}

// place is what tells which of two openings with one incarnation is the later one: the connections, in their order (package bucket).
func (c *member) place(token string) string {
	s, err := edge.NewSessions(clusterSecret, c.of.zone).Verify(c.of.user, token)
	if err != nil {
		c.w.fail("%s has the token %q: %v", c.name, token, err)
	}
	return fmt.Sprintf("%s %020d", s.Conn.Server, s.Conn.CID)
}

func (c *member) sessionOver(why string) {
	if c.session != "" {
		c.w.count("session lost")
		c.note(&check.Event{Kind: check.SessionLost, Session: c.session, Why: why})
		c.session = ""
	}
}

// receive is Client.receive: the answer to a request or to a keep-alive.
func (c *member) receive(token string, data []byte, refused bool) {
	id, err := strconv.ParseUint(token[1:], 36, 64)
	if err != nil {
		c.w.fail("%s has an answer to %q", c.name, token)
		return
	}
	var refusal *subjects.Refusal
	if refused {
		if refusal, _ = subjects.DecodeRefusal(data); refusal != nil && refusal.Above > 0 {
			c.w.fault("client's clock behind that of the process before")
		}
	}
	switch {
	case token[0] == 'c':
		c.m.Reply(c.clock(), id, data, refusal)
	case refused:
		c.m.KeepRefused(c.clock(), id, refusal)
	default:
		var kept subjects.Kept
		if err := kept.DecodeJSON(data); err != nil {
			c.w.fail("%s cannot read the answer to a keep-alive: %v", c.name, err)
			return
		}
		c.w.count("keep-alive answered")
		c.m.Kept(c.clock(), &kept)
	}
}

// unheard is the NATS server's word that a request found nobody.
func (c *member) unheard(token string) {
	id, err := strconv.ParseUint(token[1:], 36, 64)
	if err != nil {
		c.w.fail("%s has an answer to %q", c.name, token)
		return
	}
	c.w.count("nobody listens")
	if token[0] == 'k' {
		c.m.KeepRefused(c.clock(), id, &subjects.Refusal{Code: 503, Reason: subjects.ReasonUnavailable})
		return
	}
	c.m.Unreachable(c.clock(), id)
}

// tidings is Client.receiveEvent.
func (c *member) tidings(data []byte, subject string) {
	var event subjects.SessionEvent
	if err := event.DecodeJSON(data); err != nil || event.Subject != subject {
		c.w.fail("%s is told %q on %s: %v", c.name, data, subject, err)
		return
	}
	c.w.count("session event " + event.Type)
	for _, t := range c.tools {
		if t.events == subject {
			t.tidings(&event)
			return
		}
	}
	c.m.Event(c.clock(), &event)
}

// die ends the process where it is. The machine that it runs on closes its connection, unless it has lost its power.
func (c *member) die(power bool) {
	if c.dead {
		return
	}
	c.w.tell("%s dies, by power %t", c.name, power)
	c.dead = true
	c.wishes = 0
	c.note(&check.Event{Kind: check.Died})
	if s := c.seat; s != nil {
		s.over = true
		if power {
			s.cut = true
		} else {
			c.w.closedByClient(c.of.zone, s, c.w.between(100*us, 3*ms))
		}
		c.seat = nil
	}
	for _, l := range c.openLanes() {
		l.seat.cut = l.seat.cut || power
		c.closeLane(l)
	}
}

// buried forgets processes that are dead.
func (w *world) buried() {
	kept := w.members[:0]
	for _, c := range w.members {
		if c.dead {
			delete(w.inboxes, address{c.of.zone, c.box})
			for _, b := range c.laneBoxes {
				delete(w.inboxes, address{c.of.zone, c.laneBox(b.number)})
			}
			continue
		}
		kept = append(kept, c)
	}
	clear(w.members[len(kept):])
	w.members = kept
}
