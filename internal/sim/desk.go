package sim

import (
	"fmt"
	"maps"
	"slices"

	"github.com/opencluster/oclocks/arbiter/core"
	"github.com/opencluster/oclocks/arbiter/plan"
	"github.com/opencluster/oclocks/broker/control/flow"
	"github.com/opencluster/oclocks/broker/control/reign"
	"github.com/opencluster/oclocks/bucket/chain"
	"github.com/opencluster/oclocks/conf/shared"
)

const (
	lookAround = second // control/desk.go
	feedLimit  = 1024   // control/box.go
)

// lease is what the arbiter granted this node last.
type lease struct {
	chain.Lease
	Live int
}

// desk stands for control/desk.go and box.go: the one goroutine that calls the copies.
type desk struct {
	p *process
	*actor
	feed    *flow.Feed[*shared.State]
	granted *lease
	events  []func()
	serves  bool

	lease  *lease
	nodes  []shared.Node
	term   uint64
	looked int64
	due    int64

	presence  flow.Presence
	connected []string
	missing   []string
	away      map[uint64]bool
}

func newDesk(p *process) *desk {
	views := func(s *shared.State) []chain.View { return s.Views }
	d := &desk{p: p, away: map[uint64]bool{}, feed: flow.NewFeed(feedLimit, views)}
	d.actor = p.actor("the desk", d.run, func() int64 { return d.due })
	d.due = never
	return d
}

func (d *desk) notice(do func()) {
	d.events = append(d.events, do)
	d.ring()
}

func (d *desk) grantedNow(e core.Granted) {
	d.granted = &lease{chain.Lease{Until: e.Until, Under: e.Under}, e.Live}
	d.ring()
}

// run is desk.turn.
func (d *desk) run() {
	if d.p.arb == nil {
		return // the store is not opened yet; the events wait
	}
	now := d.p.m.clock()
	granted, events := d.granted, d.events
	d.granted, d.events = nil, nil
	d.tell()
	if granted != nil {
		d.lease = granted
		d.grant()
	}
	for _, event := range events {
		event()
		if d.p.dead {
			return
		}
	}
	d.tell()
	d.report()
	d.due = d.look(now)
	if d.due <= 0 {
		d.due = never
	}
}

func (d *desk) serve() {
	if d.serves {
		return
	}
	d.serves = true
	d.feed.Open()
	for _, number := range slices.Sorted(maps.Keys(d.away)) {
		d.p.tellAway(number, true)
	}
	d.tell()
	d.grant()
}

func (d *desk) tell() {
	for {
		asks, next, ok := d.feed.Next()
		if !ok {
			return
		}
		if len(asks) > 0 {
			views := make([]shared.BucketView, len(asks))
			for i, q := range asks {
				views[i] = shared.BucketView{Bucket: q.Bucket, View: q.View}
				d.p.asks.Committed(q.Bucket, q.View.Epoch)
			}
			d.p.install(views)
		}
		d.p.tellApplied(next.Change, next.State)
	}
}

func (d *desk) grant() {
	if d.serves && d.lease != nil {
		d.p.tellGrant(d.lease.Lease, d.lease.Live)
	}
}

func (d *desk) refused(asks []flow.Ask) {
	if d.serves {
		for _, q := range asks {
			d.p.tellRefused(q.Bucket, q.View)
		}
	}
}

// order is from a leader to a node.
type order struct {
	term     uint64
	seal     []plan.SealOrder
	handOver []plan.HandOverOrder
}

func (d *desk) order(o *order) {
	if o.term < d.term || !d.serves {
		return
	}
	d.term = o.term
	if len(o.seal) > 0 {
		d.p.tellSeal(o.seal)
	}
	if len(o.handOver) > 0 {
		d.p.tellHandOver(o.handOver)
	}
}

func (d *desk) report() {
	p := d.p
	if len(p.reports) == 0 {
		return
	}
	var list []plan.BucketReport
	for _, b := range slices.Sorted(maps.Keys(p.reports)) {
		list = append(list, plan.BucketReport{Bucket: b, Report: p.reports[b]})
	}
	clear(p.reports)
	if p.reign != nil {
		p.reign.put(reign.Report{Node: p.identity.Number, Reports: list})
		return
	}
	number := p.identity.Number
	p.m.others(func(o *machine) {
		if o.p.reign == nil || !o.p.reign.listening() {
			return
		}
		p.w.send(p.m, o, "report", func(q *process) {
			if r := q.reign; r != nil && r.listening() {
				r.put(reign.Report{Node: number, Reports: slices.Clone(list)})
			}
		})
	})
}

func (d *desk) leadership(e core.Leadership) {
	p := d.p
	d.term = max(d.term, e.Term)
	if r := p.reign; r != nil && (!e.Leading || e.Term != r.term) {
		r.end()
	}
	if e.Leading && p.reign == nil {
		p.beginReign(e)
	}
}

func (d *desk) route(id string, up bool) {
	d.connected = slices.DeleteFunc(d.connected, func(o string) bool { return o == id })
	if up {
		d.connected = append(d.connected, id)
	}
	d.presence.Route(id, up)
}

type hello struct {
	id     string
	number uint64
	start  uint64
	ask    bool
}

func (d *desk) hello(h *hello) {
	d.presence.Heard(h.id, h.start)
	if h.ask && h.number != 0 {
		d.greet(h.number, false)
	}
}

// greet sends a hello to the node with a number.
func (d *desk) greet(number uint64, ask bool) {
	p := d.p
	h := hello{p.m.id, p.identity.Number, p.start, ask}
	p.m.others(func(o *machine) {
		if o.p.identity.Number == number {
			p.w.send(p.m, o, "hello", func(q *process) { q.desk.notice(func() { q.desk.hello(&h) }) })
		}
	})
}

func (d *desk) heard(raft uint64) {
	if n := d.p.shared().NodeByRaft(raft); n != nil {
		d.presence.Heard(n.ID, 0)
	}
}

func (d *desk) farewell(id string, start uint64) {
	if d.p.shared().NodeByID(id) == nil {
		return
	}
	d.presence.Farewell(id, start)
}

func (d *desk) look(now int64) int64 {
	state := d.p.shared()
	others := !same(d.nodes, state.Nodes)
	if others {
		d.nodes = state.Nodes
		d.presence.Forget(func(id string) bool { return state.NodeByID(id) != nil || slices.Contains(d.connected, id) })
		d.prefer()
		d.checkSelf()
	}
	if now-d.looked >= lookAround {
		d.unrouted()
		d.looked = now
	}
	if len(d.presence.Changes()) > 0 || others {
		d.tellAway()
	}
	ids, next := d.presence.Greetings(now)
	for _, id := range ids {
		if n := state.NodeByID(id); n != nil {
			d.greet(n.Number, true)
		}
	}
	if next == 0 || d.looked+lookAround < next {
		next = d.looked + lookAround
	}
	return next
}

func (d *desk) unrouted() {
	before := d.missing
	d.missing = nil
	for i := range d.nodes {
		id := d.nodes[i].ID
		if id == d.p.m.id || slices.Contains(d.connected, id) || d.presence.Away(id) {
			continue
		}
		d.missing = append(d.missing, id)
		if slices.Contains(before, id) {
			d.presence.Route(id, false)
		}
	}
}

func (d *desk) tellAway() {
	now := seen{away: map[uint64]bool{}, gone: map[uint64]bool{}}
	for i := range d.nodes {
		n := &d.nodes[i]
		if n.ID == d.p.m.id {
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
		d.p.w.tell("%v takes node %d for away: %t", d.p.m, n.Number, away)
		d.p.arb.peer(n.Raft, !away)
		if d.serves {
			d.p.tellAway(n.Number, away)
		}
	}
	d.away = now.away
	d.p.seen = now
	d.p.wakeReign()
}

func (d *desk) prefer() {
	d.p.arb.priorities = map[uint64]int{}
	for i := range d.nodes {
		d.p.arb.priorities[d.nodes[i].Raft] = d.nodes[i].Priority
	}
	d.p.arb.ring()
}

func same(a, b []shared.Node) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

func (d *desk) checkSelf() {
	id := d.p.identity
	if id.Number == 0 {
		return
	}
	n := d.p.shared().Node(id.Number)
	switch {
	case n == nil:
		d.p.fail(errRemoved)
		d.p.m.leaveCluster()
	case n.Registered != id.Change:
		d.p.fail(fmt.Errorf("%w: it has registered at change %d, this one had at %d", errDuplicate, n.Registered, id.Change))
	}
}

func (d *desk) introduce() {
	d.checkSelf()
	if d.p.dead {
		return
	}
	for _, n := range d.p.shared().Nodes {
		if n.ID != d.p.m.id {
			d.greet(n.Number, false)
		}
	}
}
