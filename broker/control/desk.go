package control

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/opencluster/oclocks/arbiter"
	"github.com/opencluster/oclocks/broker/control/flow"
	"github.com/opencluster/oclocks/broker/control/reign"
	"github.com/opencluster/oclocks/conf/shared"
	"github.com/opencluster/oclocks/internal/boottime"
	"github.com/opencluster/oclocks/internal/fault"
)

// lookAround is how often it is checked that there is a route to every node, in nanoseconds; one that has none for so long
// is away.
const lookAround int64 = 1e9

// desk is the one goroutine that calls the copies, and what only it touches.
type desk struct {
	c      *Control
	copies Copies // nil before Serve
	timer  *boottime.Timer

	lease  *lease        // the newest
	nodes  []shared.Node // as of the change told last
	over   error         // this process is not the node any more: the copies are told nothing from then on
	overAt int64         // when that was seen
	term   uint64        // the newest that is known, of orders too
	looked int64
	held   bool // by a fault point

	presence  flow.Presence
	connected []string        // nodes with a route, if routes are watched
	missing   []string        // nodes that had no route at the last look
	away      map[uint64]bool // nodes that are told as away
}

func newDesk(c *Control) *desk {
	return &desk{c: c, timer: boottime.NewTimer(), away: map[uint64]bool{}}
}

func (d *desk) run() {
	defer d.timer.Close()
	defer d.endReign()
	for {
		if next := d.turn(boottime.Now()); next > 0 {
			d.timer.Reset(next)
		}
		select {
		case <-d.c.box.wake:
		case <-d.timer.C:
		case <-d.c.ctx.Done():
			return
		}
	}
}

// turn does what there is to do, and says when there is something to do without a cause; 0: never. What an event knows has
// been applied before it was put there, so the changes are told first.
func (d *desk) turn(now int64) int64 {
	granted, events := d.c.box.take()
	d.tell()
	if granted != nil {
		d.lease = granted
		d.grant()
	}
	for _, event := range events {
		event(d)
	}
	d.tell()
	d.report()
	next := d.look(now)
	if d.held {
		return now + holdLook
	}
	return next
}

// holdLook is how often it is looked whether the fault point control.hold is still armed, in nanoseconds.
const holdLook int64 = 10e6

// held is the fault point control.hold: views and changes wait, leases do not.
func held() bool { return fault.File() != "" && fault.Value("control.hold") == "1" }

// serve begins to tell the copies: who is away, then everything that is known.
func (d *desk) serve(copies Copies) {
	if d.copies != nil {
		return
	}
	d.copies = copies
	d.c.box.open()
	for _, number := range slices.Sorted(maps.Keys(d.away)) {
		copies.Away(number, true)
	}
	d.tell()
	d.grant()
}

// tell tells the copies what was applied.
func (d *desk) tell() {
	if d.held = held(); d.held {
		return
	}
	for {
		asks, next, ok := d.c.box.next()
		if !ok || !d.mine(next.State) {
			return
		}
		if len(asks) > 0 {
			views := make([]shared.BucketView, len(asks))
			for i, q := range asks {
				views[i] = shared.BucketView{Bucket: q.Bucket, View: q.View}
			}
			d.c.overtaken(asks)
			d.copies.Install(views)
		}
		d.copies.Applied(next.Change, next.State)
	}
}

func (d *desk) grant() {
	if d.copies != nil && d.lease != nil && d.over == nil {
		d.copies.Grant(d.lease.Lease, d.lease.Live)
	}
}

// refused tells that views will never be committed.
func (d *desk) refused(asks []flow.Ask) {
	if d.copies == nil {
		return
	}
	for _, q := range asks {
		d.copies.Refused(q.Bucket, q.View)
	}
}

// order carries out what a leader wants, if no later one is known.
func (d *desk) order(o *order) {
	if o.Term < d.term || d.copies == nil {
		return
	}
	d.term = o.Term
	if len(o.Seal) > 0 {
		d.copies.Seal(o.Seal)
	}
	if len(o.HandOver) > 0 {
		d.copies.HandOver(o.HandOver)
	}
}

// report passes on what sealed copies have told.
func (d *desk) report() {
	list := d.c.takeReports()
	if len(list) == 0 {
		return
	}
	number := d.c.identity().Number
	if r := d.c.reigning(); r != nil {
		r.put(reign.Report{Node: number, Reports: list})
		return
	}
	for part := range slices.Chunk(list, maxReports) {
		d.c.post.send(subjectReport, encode(reports{Node: number, Reports: part}))
	}
}

// leadership begins and ends this node's reign.
func (d *desk) leadership(e arbiter.Leadership) {
	d.term = max(d.term, e.Term)
	if r := d.c.reigning(); r != nil && (!e.Leading || e.Term != r.term) {
		d.endReign()
	}
	if e.Leading && d.c.reigning() == nil {
		d.c.beginReign(e)
	}
	d.checkSelf()
}

func (d *desk) endReign() {
	d.c.mu.Lock()
	r := d.c.reign
	d.c.reign = nil
	d.c.mu.Unlock()
	if r != nil {
		r.end()
	}
}

// route notes that the route to a node is open or closed.
func (d *desk) route(identifier string, up bool) {
	d.connected = slices.DeleteFunc(d.connected, func(id string) bool { return id == identifier })
	if up {
		d.connected = append(d.connected, identifier)
	}
	d.presence.Route(identifier, up)
}

// hello notes that messages of a node arrive, and answers.
func (d *desk) hello(h *hello) {
	if h.Identifier == d.c.cfg.Identifier {
		return
	}
	d.presence.Heard(h.Identifier, h.Start)
	if h.Ask && h.Number != 0 {
		d.c.post.send(subjectHello(h.Number), d.c.hello(false))
	}
}

// heard notes that a frame of an arbiter has arrived.
func (d *desk) heard(raft uint64) {
	if n := d.c.State().NodeByRaft(raft); n != nil {
		d.presence.Heard(n.ID, 0)
	}
}

func (d *desk) farewell(f *farewell) {
	if f.Identifier == d.c.cfg.Identifier || d.c.State().NodeByID(f.Identifier) == nil {
		return
	}
	d.presence.Farewell(f.Identifier, f.Start)
}

// look tells who is away and who is back, greets those from whom something should be heard, and says when to look again.
func (d *desk) look(now int64) int64 {
	state := d.c.State()
	others := !same(d.nodes, state.Nodes)
	if others {
		d.nodes = state.Nodes
		d.presence.Forget(func(id string) bool { return state.NodeByID(id) != nil || slices.Contains(d.connected, id) })
		d.prefer()
		d.checkSelf()
	}
	if d.c.cfg.Watch != nil && now-d.looked >= lookAround {
		d.unrouted()
		d.looked = now
	}
	if len(d.presence.Changes()) > 0 || others {
		d.tellAway()
	}
	ids, next := d.presence.Greetings(now)
	for _, id := range ids {
		if n := state.NodeByID(id); n != nil {
			d.c.post.send(subjectHello(n.Number), d.c.hello(true))
		}
	}
	if d.c.cfg.Watch != nil && (next == 0 || d.looked+lookAround < next) {
		next = d.looked + lookAround
	}
	if d.over != nil && d.c.Err() == nil {
		d.checkSelf()
		next = now + lingerLook
	}
	return next
}

// unrouted makes those away that have had no route for a while.
func (d *desk) unrouted() {
	before := d.missing
	d.missing = nil
	for i := range d.nodes {
		id := d.nodes[i].ID
		if id == d.c.cfg.Identifier || d.nodes[i].Arbiter || slices.Contains(d.connected, id) || d.presence.Away(id) {
			continue // an arbiter has no route
		}
		d.missing = append(d.missing, id)
		if slices.Contains(before, id) {
			d.presence.Route(id, false)
		}
	}
}

// tellAway compares what was told with what is.
func (d *desk) tellAway() {
	now := &seen{away: map[uint64]bool{}, gone: map[uint64]bool{}}
	for i := range d.nodes {
		n := &d.nodes[i]
		if n.ID == d.c.cfg.Identifier {
			continue
		}
		away := d.presence.Away(n.ID)
		if away {
			now.away[n.Number] = true
			now.gone[n.Number] = d.presence.Gone(n.ID)
		}
		if away == d.away[n.Number] {
			continue
		}
		d.c.log.Info("a node is away or back", "node", n.Number, "name", n.Name, "away", away)
		d.c.arb.Peer(n.Raft, !away)
		if d.copies != nil {
			d.copies.Away(n.Number, away)
		}
	}
	d.away = now.away
	d.c.seen.Store(now)
	d.c.anyAway.Store(len(now.away) > 0)
	d.c.wakeReign()
}

// prefer tells the arbiter whom to prefer as leader.
func (d *desk) prefer() {
	priorities := make(map[uint64]int, len(d.nodes))
	for i := range d.nodes {
		n := &d.nodes[i]
		priorities[n.Raft] = n.Priority
		if n.Arbiter {
			priorities[n.Raft] = shared.LowestPriority
		}
	}
	d.c.arb.SetPriorities(priorities)
}

func same(a, b []shared.Node) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// mine says whether this process is the one that is registered as this node. From the first state on in which it is not, the
// copies are told nothing, no lease either: one that is granted after that change counts only with it, so they never act
// under it beside the copies of another process, which may be of the same life.
func (d *desk) mine(state *shared.State) bool {
	id := d.c.identity()
	if d.over != nil || id.Number == 0 || state.Change < id.Change {
		return d.over == nil
	}
	n := state.Node(id.Number)
	switch {
	case n == nil:
		d.over = ErrRemoved
	case n.Registered != id.Change:
		d.over = fmt.Errorf("%w: it has registered at change %d, this one had at %d", ErrDuplicate, n.Registered, id.Change)
	}
	d.overAt = boottime.Now()
	return d.over == nil
}

// checkSelf notices that this node was removed, or that another process has been registered as this node.
func (d *desk) checkSelf() {
	if !d.mine(d.c.State()) && !d.lingers() {
		d.c.fail(d.over)
	}
}

// How long a removed voter waits until the group is without it, and how often it looks, in nanoseconds.
const (
	lingerFor  int64 = 5e9
	lingerLook int64 = 50e6
)

// lingers says that a removed node goes on a little, without its copies: its vote may be needed until the group is without
// it, and if it leads nobody else can see to that.
func (d *desk) lingers() bool {
	status := d.c.arb.Status()
	voter := slices.Contains(status.Voters, status.Raft)
	return errors.Is(d.over, ErrRemoved) && voter && (status.Leading || boottime.Now() < d.overAt+lingerFor)
}

// introduce shows the others that this node is there, so that a farewell of the process before does not count.
func (d *desk) introduce() {
	d.checkSelf()
	own := d.c.cfg.Identifier
	for _, n := range d.c.State().Nodes {
		if n.ID != own {
			d.c.post.send(subjectHello(n.Number), d.c.hello(false))
		}
	}
}

func (c *Control) hello(ask bool) []byte {
	return encode(hello{Identifier: c.cfg.Identifier, Number: c.identity().Number, Start: c.start, Ask: ask})
}
