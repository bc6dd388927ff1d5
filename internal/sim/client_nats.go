package sim

import (
	"slices"
	"strconv"
	"strings"

	"github.com/opencluster/oclocks/broker/edge"
	"github.com/opencluster/oclocks/bucket"
	"github.com/opencluster/oclocks/internal/check"
	mind "github.com/opencluster/oclocks/internal/machine"
	"github.com/opencluster/oclocks/subjects"
)

// This file is NATS for clients: a connection to one server, what it brings to whom, and how its end is noticed. A connection keeps the
// order of its messages and loses none while it lives.

// address is an inbox: what stands before the last token of a reply subject, in a zone.
type address struct{ zone, box string }

// receiver is whose inbox it is.
type receiver interface {
	hear(from *machine, token string, body subjects.Body)
}

// seat is a connection of a client to the server of a node.
type seat struct {
	at   *machine
	gen  int // of the node's process
	cid  uint64
	cut  bool // nothing passes any more, and nobody has noticed
	over bool // the client has closed it, or taken it for broken

	up, down int64 // arrival of the newest message each way
}

// server is the id of the NATS server.
func (s *seat) server() string { return serverID(s.at, s.gen) }

func serverID(m *machine, gen int) string { return "S" + m.id + "." + strconv.Itoa(gen) }

// alive says whether the server's process still is the one that the connection was made to.
func (s *seat) alive() bool { return s.at.p != nil && s.at.gen == s.gen }

// answers says whether the server answers a ping.
func (s *seat) answers() bool { return !s.cut && s.alive() && s.at.paused <= s.at.w.now }

// connect tries one server after the other until one takes the connection: nats.go with road.next.
func (c *member) connect() {
	i, rest := c.road.Next(c.hosts, c.w.rnd.Int64N)
	host, err := strconv.Atoi(c.hosts[i])
	if err != nil {
		panic(err) // newMember has made it
	}
	m := c.w.machines[host]
	c.w.after(int64(rest)+c.w.between(200*us, 3*ms), func() {
		c.awake(func() {
			switch {
			case m.paused > c.w.now || c.barred[host] > c.w.now: // no answer
				c.w.after(c.w.between(500*ms, 2*second), func() { c.awake(c.connect) })
			case m.p == nil || !m.p.serving: // refused
				c.w.after(c.w.between(100*us, 20*ms), func() { c.awake(c.connect) })
			default:
				c.arrive(m)
			}
		})
	})
}

func (c *member) arrive(m *machine) {
	w := c.w
	w.cids++
	c.seat = &seat{at: m, gen: m.gen, cid: w.cids}
	c.missed, c.lost = 0, 0
	c.road.Arrived(c.hosts[slices.Index(c.hosts, strconv.Itoa(m.index))])
	c.note(&check.Event{Kind: check.Connected})
	w.count("connected")
	w.tell("%s connects to %v as %d", c.name, m, c.seat.cid)
	conn := mind.Conn{Server: c.seat.server(), CID: c.seat.cid, Node: m.id}
	if w.draw(8) == 0 {
		conn = mind.Conn{} // behind something that does not tell
	}
	c.do(func(now int64) { c.m.Connected(now, conn) })
}

// broken is a client that sees its connection end.
func (c *member) broken(s *seat) {
	if c.seat != s || c.dead {
		return
	}
	c.leave()
	c.connect()
}

// leave gives the connection up. The server may hear of that.
func (c *member) leave() {
	s := c.seat
	s.over = true
	c.seat = nil
	c.note(&check.Event{Kind: check.Disconnected})
	c.w.count("disconnected")
	c.w.tell("%s takes its connection %d to %v for broken", c.name, s.cid, s.at)
	switch {
	case !s.cut:
		c.w.closedByClient(c.of.zone, s, c.w.between(100*us, 3*ms))
	case c.w.draw(2) == 0:
		c.w.closedByClient(c.of.zone, s, c.w.between(ms, 5*second))
	}
	c.do(c.m.Disconnected)
}

// closedByClient is a server that notices the end of a connection which comes from the client's side, and tells all nodes.
func (w *world) closedByClient(zone string, s *seat, later int64) {
	w.after(later, func() {
		if !s.alive() {
			return
		}
		s.at.p.whenAwake(func() {
			if !s.alive() {
				return
			}
			w.count("disconnect event")
			conn := edge.ConnOf(s.server(), s.cid)
			for _, o := range w.machines {
				if o.p != nil {
					w.send(s.at, o, "disconnect", func(p *process) { p.connectionClosed(zone, conn) })
				}
			}
		})
	})
}

// serverEnded is the end of a server's process: its clients see it at once or by their pings, and some are told by others.
func (w *world) serverEnded(m *machine) {
	id := m.id
	for _, c := range w.members {
		for _, l := range c.openLanes() {
			if l.seat.at == m && w.draw(5) > 0 {
				w.after(w.between(50*us, 5*ms), func() { c.awake(func() { c.laneBroken(l) }) })
			}
		}
		switch s := c.seat; {
		case s == nil:
		case s.at == m && w.draw(5) > 0:
			w.after(w.between(50*us, 5*ms), func() { c.awake(func() { c.broken(s) }) })
		case s.at != m && w.draw(2) == 0:
			w.after(w.between(ms, second), func() {
				c.awake(func() {
					if c.seat != nil {
						w.count("server event down")
						c.do(func(now int64) { c.m.ServerDown(now, id) })
					}
				})
			})
		}
	}
}

// pingEvery and pingsUnmet are those of client/connect.go.
const (
	pingEvery  = 700 * ms
	pingsUnmet = 2
)

// ping looks whether the server is still there, and whether it is worth staying with (client/island.go).
func (c *member) ping() {
	c.awake(func() {
		defer c.w.after(int64(float64(pingEvery)/c.rate), c.ping)
		c.pingLanes()
		s := c.seat
		if s == nil {
			return
		}
		if !s.answers() {
			if c.missed++; c.missed > pingsUnmet {
				c.w.count("stale connection")
				c.broken(s)
			}
			return
		}
		c.missed = 0
		if s.at.p.leased() {
			c.lost = 0
		} else {
			c.lost++
		}
		leave, _ := c.roam.Look(c.clock(), c.lost > 1, c.m.Vacant(c.clock()), len(c.hosts), c.w.rnd.Int64N)
		switch {
		case leave:
			c.w.count("left its server for another")
			c.broken(s)
		case c.w.draw(20) == 0:
			c.do(c.m.ServerUp)
		}
	})
}

// send is a publish over a connection. What is sent over one that breaks is lost, or has come.
func (c *member) send(s *seat, subject, reply string, body []byte) {
	w := c.w
	if s == nil {
		return
	}
	s.up = max(w.now+w.between(30*us, ms), s.up)
	w.plan(s.up, func() {
		if s.cut || !s.alive() {
			return
		}
		p := s.at.p
		p.whenAwake(func() { p.route(c, s, subject, reply, body) })
	})
}

// route is the NATS server to which the client is connected: it brings a message to who has subscribed.
func (p *process) route(c *member, s *seat, subject, reply string, body []byte) {
	addr, err := subjects.ParseAddress(subject)
	if err != nil {
		p.w.fail("%s publishes on %q: %v", c.name, subject, err)
		return
	}
	l := &letter{zone: c.of.zone, addr: addr, reply: reply, body: body}
	switch {
	case addr.Path == subjects.Hot:
		l.group = true
		if p.toOne(l, func(q *process) bool { return q.turns[addr.Bucket] }) {
			return
		}
	case addr.Path == subjects.KeepNode:
		if p.toOne(l, func(q *process) bool { return q.m.id == addr.Node }) {
			return
		}
	case addr.Op == subjects.OpKeep:
		copied := *l
		copied.group = true
		heard := p.toOne(&copied, func(*process) bool { return true })
		for _, o := range p.w.machines {
			if p.sees(o) {
				p.pass(o, l)
			}
		}
		if heard {
			return
		}
	default:
		l.group = true
		if p.toOne(l, func(*process) bool { return true }) {
			return
		}
	}
	token := reply[strings.LastIndexByte(reply, '.')+1:]
	c.down(s, func() { c.unheard(token) })
}

// letter is a message on its way to a node's edge.
type letter struct {
	zone  string
	addr  subjects.Address
	reply string
	body  []byte
	group bool // it has come by the subscription of the nodes' group
}

// sees says whether a server knows of a node that it listens: the routes between them may be cut without their knowing.
func (p *process) sees(o *machine) bool {
	if o.p == nil || !o.p.serving {
		return false
	}
	return o == p.m || p.w.connected(p.m, o) || p.w.draw(2) == 0
}

// toOne brings a letter to one of those that listen, to this node itself if it does; false: nobody listens.
func (p *process) toOne(l *letter, listens func(q *process) bool) bool {
	if p.serving && listens(p) {
		p.pass(p.m, l)
		return true
	}
	var to []*machine
	for _, o := range p.w.machines {
		if o != p.m && p.sees(o) && listens(o.p) {
			to = append(to, o)
		}
	}
	if len(to) == 0 {
		return false
	}
	p.pass(to[p.w.draw(len(to))], l)
	return true
}

func (p *process) pass(o *machine, l *letter) {
	w := p.w
	if !w.healed && w.chance(w.mix.replies) {
		w.fault("request lost")
		return
	}
	do := func() { w.send(p.m, o, "request", func(q *process) { q.pump(l) }) }
	if !w.healed && w.chance(w.mix.late) {
		w.fault("request late")
		gen := p.m.gen
		w.after(w.between(10*ms, 4*second), func() {
			if p.m.gen == gen {
				do()
			}
		})
		return
	}
	do()
	if !w.healed && w.chance(w.mix.repeats/4) {
		w.fault("request repeated")
		do()
	}
}

// hear is an answer that a node publishes into the client's inbox.
func (c *member) hear(from *machine, token string, body subjects.Body) {
	c.hearOver(c.seat, from, token, body)
}

// hearOver is hear over one of the client's connections.
func (c *member) hearOver(s *seat, from *machine, token string, body subjects.Body) {
	_, refused := body.(*subjects.Refusal)
	data := body.AppendJSON(nil)
	c.bringOver(s, from, "answer", func() { c.receive(token, data, refused) })
}

// bring takes something from a node to the client, over the server that it is connected to.
func (c *member) bring(from *machine, what string, do func()) { c.bringOver(c.seat, from, what, do) }

// bringOver is bring over one of the client's connections.
func (c *member) bringOver(s *seat, from *machine, what string, do func()) {
	w := c.w
	if s == nil || s.over {
		return
	}
	if !w.healed && what == "event" && c.deaf > w.now {
		w.fault("holder hears no events")
		return
	}
	if !w.healed && w.chance(w.mix.replies) {
		w.fault(what + " lost")
		return
	}
	pass := func() { w.send(from, s.at, what, func(*process) { c.down(s, do) }) }
	if !w.healed && w.chance(w.mix.late) {
		w.fault(what + " late")
		gen := from.gen
		w.after(w.between(10*ms, 4*second), func() {
			if from.gen == gen {
				pass()
			}
		})
		return
	}
	pass()
}

// down is the last part of the way, from the server to its client.
func (c *member) down(s *seat, do func()) {
	w := c.w
	s.down = max(w.now+w.between(30*us, ms), s.down)
	w.plan(s.down, func() {
		if s.cut || s.over {
			return
		}
		c.awake(func() {
			if !s.over {
				do()
				c.carryOut()
			}
		})
	})
}

// reply brings an answer to the inbox that it is for.
func (w *world) reply(from *machine, zone, to string, body subjects.Body) {
	i := strings.LastIndexByte(to, '.')
	if i < 0 {
		w.fail("%v answers to %q", from, to)
		return
	}
	if r := w.inboxes[address{zone, to[:i]}]; r != nil {
		r.hear(from, to[i+1:], body)
	}
}

// listens says whether the client has subscribed to a session's events.
func (c *member) listens(subject string) bool {
	return c.events == subject || slices.ContainsFunc(c.tools, func(t *tool) bool { return t.events == subject })
}

// tellZone brings an event of a lock to somebody in the zone, if the zone has them switched on.
func (w *world) tellZone(from *machine, e *bucket.Effect) {
	event, ok := e.Body.(*subjects.LockEvent)
	if !ok || !w.lockEvents {
		w.fail("%v tells zone %s of %v, and it did not want that", from, e.Zone, e.Body)
		return
	}
	told := *event
	for _, c := range w.members {
		if c.of.zone == e.Zone && !c.dead {
			c.bring(from, "event", func() {
				w.count("lock event " + told.Type)
				c.note(&check.Event{Kind: check.Noticed, Name: told.Name, Token: told.Token})
			})
			return
		}
	}
}

// tellSession brings a session's event to those who listen to its subject.
func (w *world) tellSession(from *machine, zone string, e *subjects.SessionEvent) {
	data := e.AppendJSON(nil)
	for _, c := range w.members {
		if c.of.zone == zone && c.listens(e.Subject) {
			c.bring(from, "event", func() { c.tidings(data, e.Subject) })
		}
	}
}
