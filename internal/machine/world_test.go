package machine

import (
	"container/heap"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/opencluster/oclocks/bucket"
	"github.com/opencluster/oclocks/subjects"
)

// world is a cluster of brokers (real lock tables behind a small edge) and some clients' machines, on virtual time, with a
// network that delays, loses and repeats messages, connections that break, nodes that die or stand still, and buckets that
// move. Replication is perfect: there is one table for each bucket, and a take-over promotes it.
type world struct {
	now     int64 // of the broker
	seq     uint64
	queue   eventQueue
	draw    func(n int) int // a number from 0 to n-1
	tables  []*bucket.Table
	term    uint32
	keys    uint64
	ids     int
	opened  map[string]bucket.Session // by token
	secrets map[string]string         // secret -> session id
	clients []*simClient
	nodes   []*simNode
	buckets []simBucket
	longest int64 // that a bucket is without a primary when its node dies
	totals  bool  // keep-alives are answered with the node's total alone
	change  uint64
	trouble bool  // the network misbehaves
	refuse  int64 // until then nobody listens
	checks  func()
	logf    func(format string, args ...any) // the transcript
}

// simClient is a client of the world. Its clock runs at its own rate.
type simClient struct {
	w      *world
	user   string
	m      *Machine
	rate   float64 // client's nanoseconds for each of the broker's
	up     bool
	epoch  int // counts connections; what was sent over an earlier one is lost or late
	paused int64
	last   int64 // arrival of the newest message on this connection: they keep their order
	calls  []*Call
	holds  []*Hold
	events string
	node   *simNode // that it is connected to
	lanes  map[int]*simLane
	hears  map[string]bool // what it listens to over the home connection, for lanes
}

type event struct {
	at  int64
	seq uint64
	do  func()
}

type eventQueue []event

func (q eventQueue) Len() int { return len(q) }
func (q eventQueue) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].seq < q[j].seq
}
func (q eventQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *eventQueue) Push(x any)   { *q = append(*q, x.(event)) }
func (q *eventQueue) Pop() any {
	old := *q
	e := old[len(old)-1]
	*q = old[:len(old)-1]
	return e
}

const (
	simBuckets = 4
	simLease   = int64(time.Second)
	simZone    = "z"
)

func newWorld(draw func(int) int, logf func(string, ...any), rates ...float64) *world {
	w := &world{now: int64(time.Hour), longest: simLease, draw: draw, logf: logf, opened: map[string]bucket.Session{}, secrets: map[string]string{}}
	for i := range 3 {
		w.nodes = append(w.nodes, &simNode{name: "n" + strconv.Itoa(i), up: true})
	}
	for b := range uint32(simBuckets) {
		w.tables = append(w.tables, bucket.New(bucket.Config{Bucket: b, Buckets: simBuckets}))
		w.buckets = append(w.buckets, simBucket{})
		w.promote(int(b), w.nodes[int(b)%len(w.nodes)])
	}
	for i, rate := range rates {
		c := &simClient{w: w, user: "u" + strconv.Itoa(i), rate: rate, up: true, epoch: 1, node: w.nodes[i%len(w.nodes)],
			lanes: map[int]*simLane{}, hears: map[string]bool{}}
		c.m = New(Config{
			User: c.user, Buckets: simBuckets, Timeout: time.Duration(simLease / 5), Lease: time.Duration(simLease),
			FirstBeat: uint64(i) << 20, Seed: uint64(i), MaxCalls: 1000, Conn: c.conn(),
		})
		w.clients = append(w.clients, c)
	}
	return w
}

func (w *world) after(d int64, do func()) {
	w.seq++
	heap.Push(&w.queue, event{w.now + d, w.seq, do})
}

// delay is what one message takes: mostly little, in times of trouble up to a lease.
func (w *world) delay() int64 {
	if w.trouble && w.draw(6) == 0 {
		return int64(w.draw(int(simLease)))
	}
	return int64(w.draw(int(simLease / 100)))
}

// run lets time pass up to an instant.
func (w *world) run(until int64) {
	for {
		at := until
		if len(w.queue) > 0 {
			at = min(at, w.queue[0].at)
		}
		for b, t := range w.tables {
			if w.buckets[b].primary != nil {
				at = min(at, max(t.Next(), w.now))
			}
		}
		for _, c := range w.clients {
			at = min(at, max(c.due(), w.now))
		}
		w.now = max(w.now, at)
		w.tick()
		if len(w.queue) > 0 && w.queue[0].at <= w.now {
			heap.Pop(&w.queue).(event).do()
		}
		for _, c := range w.clients {
			if c.due() <= w.now {
				c.m.Tick(c.clock())
				c.carryOut()
			}
		}
		if w.checks != nil {
			w.checks()
		}
		if w.now >= until && (len(w.queue) == 0 || w.queue[0].at > w.now) {
			return
		}
	}
}

// tick lets the tables do what is due.
func (w *world) tick() {
	for b, t := range w.tables {
		var out bucket.Output
		for w.buckets[b].primary != nil && t.Next() <= w.now {
			t.Step(w.wall(), &bucket.Input{Kind: bucket.Tick}, &out)
		}
		w.perform(b, out.Effects)
	}
}

func (w *world) wall() bucket.Now { return bucket.Now{Boot: w.now, Wall: w.now / 1e6} }

// perform publishes what a bucket's table wants to be seen.
func (w *world) perform(b int, effects []bucket.Effect) {
	at := &w.buckets[b]
	for _, e := range effects {
		switch e.Kind {
		case bucket.Reply:
			if g, ok := e.Body.(*subjects.Grant); ok {
				told := *g
				told.Node = at.primary.name
				e.Body = &told
			}
			at.replied = append(at.replied[max(0, len(at.replied)-7):], e)
			w.replyFrom(at.primary, e.To, e.Body)
		case bucket.NotifyOwner:
			event := *e.Body.(*subjects.SessionEvent)
			for _, c := range w.clients {
				if c.user == e.User && strings.HasSuffix(c.events, e.SessionID) {
					c.deliver(at.primary, func(now int64) { c.m.Event(now, &event) })
				}
			}
		}
	}
}

// reply publishes an answer of any node; the reply subject is <user>.<token>, or <user>.<lane>.<token>.
func (w *world) reply(to string, body subjects.Body) { w.replyFrom(nil, to, body) }

func (w *world) replyFrom(n *simNode, to string, body subjects.Body) {
	user, reply, _ := strings.Cut(to, ".")
	data := body.AppendJSON(nil)
	w.logf("%v %s is answered %s", time.Duration(w.now), to, data)
	for _, c := range w.clients {
		if c.user == user {
			c.deliverTo(reply, n, func(now int64) { c.receive(now, reply, data) })
		}
	}
}

func (c *simClient) clock() int64 { return int64(float64(c.w.now) * c.rate) }

// due is when the machine's timer rings, by the broker's clock.
func (c *simClient) due() int64 {
	next := c.m.Next()
	if next == Never {
		return Never
	}
	return max(int64(float64(next)/c.rate)+1, c.paused)
}

func (c *simClient) conn() Conn {
	return Conn{Server: "s", CID: uint64(1+c.epoch)*100 + uint64(c.user[1]), Node: c.node.name}
}

// deliver brings something from a node, if the connection lives until then. Messages of one connection keep their order.
// If the node has died meanwhile it may have sent it before or not.
func (c *simClient) deliver(from *simNode, do func(now int64)) {
	if c.w.trouble && c.w.draw(20) == 0 {
		return
	}
	epoch, life := c.epoch, 0
	if from != nil {
		life = from.life
	}
	at := max(c.w.now+c.w.delay(), c.last)
	c.last = at
	c.w.after(at-c.w.now, func() {
		c.wake(func() {
			if from != nil && from.life != life && c.w.draw(2) == 0 {
				return
			}
			if c.up && c.epoch == epoch {
				do(c.clock())
				c.carryOut()
			}
		})
	})
}

// wake does something now or, if the client is paused, when it goes on.
func (c *simClient) wake(do func()) {
	if c.paused > c.w.now {
		c.w.after(c.paused-c.w.now, func() { c.wake(do) })
		return
	}
	do()
}

// lastToken is that of a reply subject.
func lastToken(reply string) string { return reply[strings.LastIndexByte(reply, '.')+1:] }

// replyID is the number in it.
func replyID(reply string) uint64 {
	id, err := strconv.ParseUint(lastToken(reply)[1:], 36, 64)
	if err != nil {
		panic(err)
	}
	return id
}

// receive is what package client does with a reply.
func (c *simClient) receive(now int64, reply string, data []byte) {
	token, id := lastToken(reply), replyID(reply)
	refusal, _ := subjects.DecodeRefusal(data)
	switch {
	case token[0] == 'c':
		c.m.Reply(now, id, data, refusal)
	case refusal != nil:
		c.m.KeepRefused(now, id, refusal)
	default:
		var k subjects.Kept
		if err := k.DecodeJSON(data); err != nil {
			panic(err)
		}
		c.m.Kept(now, &k)
	}
}

// carryOut does what the machine wants.
func (c *simClient) carryOut() {
	for _, a := range c.m.Take() {
		switch a.Kind {
		case Send:
			c.send(a)
		case Opened:
			c.events = a.Subject
		case OpenLane:
			c.openLane(a.Node, a.Lane)
		case CloseLane:
			delete(c.lanes, a.Lane)
		case Listen, Unlisten:
			c.hears[a.Reply] = a.Kind == Listen
		case Finish:
			if a.Call.Hold != nil && a.Call.Result.Grant != nil {
				c.holds = append(c.holds, a.Call.Hold)
				if state := a.Call.Hold.State(c.clock()); state != Held && state != Suspect {
					panic(fmt.Sprintf("%s is given %s, which is %v", c.user, a.Call.Hold.Grant.Name, state))
				}
			}
		}
	}
}

// send brings a message to the broker, late or never. What was sent over a connection that breaks may still arrive.
func (c *simClient) send(a Action) {
	lane := c.lanes[a.Lane]
	switch {
	case lane == nil && !c.up, lane != nil && lane.mute, c.w.trouble && c.w.draw(20) == 0:
		return
	}
	body := append([]byte(nil), a.Body...)
	via := c.node
	if lane != nil {
		via = lane.node
	}
	life := via.life
	arrive := func() {
		if via.up && via.life == life {
			c.w.receive(c, a.Subject, c.user+"."+a.Reply, body)
		}
	}
	d := c.w.delay()
	c.w.after(d, arrive)
	if c.w.trouble && c.w.draw(20) == 0 {
		c.w.after(d+c.w.delay(), arrive)
	}
}

// receive is the broker's edge.
func (w *world) receive(c *simClient, subject, reply string, body []byte) {
	if w.now < w.refuse {
		w.reply(reply, &subjects.Refusal{Code: 503, Reason: subjects.ReasonUnavailable})
		return
	}
	w.logf("%v %s asks %s %s", time.Duration(w.now), reply, subject, body)
	addr, err := subjects.ParseAddress(subject)
	if err != nil {
		panic(err)
	}
	var req subjects.Request
	if r := req.Decode(addr.Op, body); r != nil {
		panic(fmt.Sprintf("%s: %s: %v", subject, body, r))
	}
	in := bucket.Input{Zone: simZone, User: addr.User, Reply: reply, Req: &req}
	if req.Session != "" {
		s, ok := w.opened[req.Session]
		if !ok {
			w.reply(reply, &subjects.Refusal{Code: 410, Reason: subjects.ReasonSession})
			return
		}
		in.Session = s
	}
	switch {
	case addr.Op == subjects.OpSessionOpen:
		w.reply(reply, w.openSession(addr.User, &req))
	case addr.Op == subjects.OpKeep:
		w.keepAlive(c, addr.Node, reply, in.Session, req.Beat)
	case addr.Op == subjects.OpSessionClose:
		w.closeSession(&in)
	case addr.Op == subjects.OpInfo:
		w.reply(reply, &subjects.Info{Buckets: simBuckets, Map: *w.bucketMap()})
	case addr.Op.OnName():
		w.route(c, int(subjects.BucketOf(req.Name, simBuckets)), &in)
	default:
		panic("unexpected " + subject)
	}
}

func (w *world) step(b int, in *bucket.Input) {
	w.keys++
	in.Key = w.keys
	var out bucket.Output
	w.tables[b].Step(w.wall(), in, &out)
	if err := w.tables[b].Err(); err != nil {
		panic(err)
	}
	w.perform(b, out.Effects)
}

func (w *world) openSession(user string, req *subjects.Request) *subjects.Opened {
	w.ids++
	id, ok := w.secrets[req.Secret]
	if !ok {
		id = fmt.Sprintf("session-%03d", w.ids)
	}
	s := bucket.Session{
		ID: id, Incarnation: uint64(w.ids), Lease: req.TTL, Conn: bucket.Conn{Server: req.Server, CID: req.CID},
	}
	token, secret := fmt.Sprintf("%s.%d", id, w.ids), fmt.Sprintf("secret-%d", w.ids)
	w.opened[token], w.secrets[secret] = s, id
	return &subjects.Opened{
		Session: token, Secret: secret, User: user, TTL: req.TTL, Lease: req.TTL, Node: "n", Incarnation: s.Incarnation,
		Disconnect: "event", Events: subjects.SessionEventSubject(user, id),
	}
}

// disconnect breaks a connection. The broker hears of it soon, late or not at all, and so does the client.
func (c *simClient) disconnect() {
	if !c.up {
		return
	}
	conn := c.conn()
	c.w.logf("%v %s loses its connection", time.Duration(c.w.now), c.user)
	c.up = false
	c.epoch++
	if c.w.draw(3) > 0 {
		c.w.after(c.w.delay(), func() {
			c.w.everywhere(&bucket.Input{Kind: bucket.Disconnect, Zone: simZone,
				Conn: bucket.Conn{Server: conn.Server, CID: conn.CID}})
		})
	}
	c.w.after(c.w.delay(), func() {
		c.wake(func() {
			c.m.Disconnected(c.clock())
			c.carryOut()
			c.w.after(c.w.delay(), func() { c.wake(c.reconnect) })
		})
	})
}

func (c *simClient) reconnect() {
	if c.up {
		return
	}
	if c.node = c.w.someNode(); c.node == nil {
		c.w.after(simLease/50, func() { c.wake(c.reconnect) })
		return
	}
	c.w.logf("%v %s connects to %s", time.Duration(c.w.now), c.user, c.node.name)
	c.up, c.last = true, 0
	c.m.Connected(c.clock(), c.conn())
	c.carryOut()
}

// holders are the tokens that the broker gives as holders of a name.
func (w *world) holders(name string) map[uint64]subjects.Mode {
	var out bucket.Output
	in := bucket.Input{Zone: simZone, User: "admin", Reply: "admin.x",
		Req: &subjects.Request{Op: subjects.OpQuery, Name: name}}
	w.tables[subjects.BucketOf(name, simBuckets)].Step(w.wall(), &in, &out)
	record := out.Effects[0].Body.(*subjects.Record)
	tokens := map[uint64]subjects.Mode{}
	for _, h := range record.Holders {
		tokens[h.Token] = record.Mode
	}
	return tokens
}
