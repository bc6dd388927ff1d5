package desk

import (
	"slices"

	"github.com/opencluster/oclocks/conf/shared"
)

// lookAround is how often it is checked that there is a route to every node, in nanoseconds; one that has none for so long
// is away.
const lookAround int64 = 1e9

// route notes that the route to a node is open or closed.
func (d *Desk) route(e Route) {
	d.connected = slices.DeleteFunc(d.connected, func(id string) bool { return id == e.Identifier })
	if e.Up {
		d.connected = append(d.connected, e.Identifier)
	}
	d.presence.Route(e.Identifier, e.Up)
}

// hello notes that messages of a node arrive, and answers.
func (d *Desk) hello(h Hello) {
	if h.Identifier == d.cfg.Self {
		return
	}
	d.presence.Heard(h.Identifier, h.Start)
	if h.Ask && h.Number != 0 {
		d.do(Greet{h.Number, false})
	}
}

// look tells who is away and who is back, greets those from whom something should be heard, and says when to look again.
func (d *Desk) look() int64 {
	state, now := d.f.State, d.f.Now
	others := !same(d.nodes, state.Nodes)
	if others {
		d.nodes = state.Nodes
		d.presence.Forget(func(id string) bool { return state.NodeByID(id) != nil || slices.Contains(d.connected, id) })
		d.prefer()
		d.checkSelf()
	}
	if d.cfg.Routed && now-d.looked >= lookAround {
		d.unrouted()
		d.looked = now
	}
	if len(d.presence.Changes()) > 0 || others {
		d.tellAway()
	}
	ids, next := d.presence.Greetings(now)
	for _, id := range ids {
		if n := state.NodeByID(id); n != nil {
			d.do(Greet{n.Number, true})
		}
	}
	if d.cfg.Routed && (next == 0 || d.looked+lookAround < next) {
		next = d.looked + lookAround
	}
	if d.over != nil && !d.failed {
		d.checkSelf()
		next = now + lingerLook
	}
	return next
}

// unrouted makes those away that have had no route for a while.
func (d *Desk) unrouted() {
	before := d.missing
	d.missing = nil
	for i := range d.nodes {
		id := d.nodes[i].ID
		if id == d.cfg.Self || d.nodes[i].Arbiter || slices.Contains(d.connected, id) || d.presence.Away(id) {
			continue // an arbiter has no route
		}
		d.missing = append(d.missing, id)
		if slices.Contains(before, id) {
			d.presence.Route(id, false)
		}
	}
}

// tellAway compares what was told with what is.
func (d *Desk) tellAway() {
	now := Seen{Away: map[uint64]bool{}, Gone: map[uint64]bool{}}
	for i := range d.nodes {
		n := &d.nodes[i]
		if n.ID == d.cfg.Self {
			continue
		}
		away := d.presence.Away(n.ID)
		if away {
			now.Away[n.Number] = true
			now.Gone[n.Number] = d.presence.Gone(n.ID)
		}
		if away == d.away[n.Number] {
			continue
		}
		d.do(Noticed{n.Number, n.Name, away})
		d.do(Peer{n.Raft, !away})
		d.copies(Away{n.Number, away})
	}
	d.away = now.Away
	d.do(now)
}

// prefer tells the arbiter whom to prefer as leader.
func (d *Desk) prefer() {
	priorities := make(map[uint64]int, len(d.nodes))
	for i := range d.nodes {
		n := &d.nodes[i]
		priorities[n.Raft] = n.Priority
		if n.Arbiter {
			priorities[n.Raft] = shared.LowestPriority
		}
	}
	d.do(Prefer{priorities})
}

func same(a, b []shared.Node) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}
