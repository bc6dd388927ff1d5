package flow

import (
	"cmp"
	"slices"
)

// Presence knows which other nodes are there, by their identifiers. A node is away from the moment in which the route to it
// is closed, or it says that it goes; it is back when the route is open and something has been heard from it over that
// route, since an open route alone carries nothing yet. A node of which nothing is known is not away.
type Presence struct {
	peers []peer // by identifier
}

type peer struct {
	id    string
	up    bool // the route
	away  bool
	told  bool // what was last given by Changes
	gone  bool // it said that it goes: only a new process brings it back
	asked int64
}

// Change of one node.
type Change struct {
	Node string
	Away bool
}

// Greet is how long a greeting is waited for before the next one, in nanoseconds.
const Greet int64 = 100e6

func (p *Presence) peer(id string) *peer {
	i, ok := slices.BinarySearchFunc(p.peers, id, func(p peer, id string) int { return cmp.Compare(p.id, id) })
	if !ok {
		p.peers = slices.Insert(p.peers, i, peer{id: id, up: true})
	}
	return &p.peers[i]
}

// Route tells that the route to a node was opened or closed.
func (p *Presence) Route(id string, up bool) {
	n := p.peer(id)
	n.up = up
	if up {
		n.asked = 0 // greet at once
	} else {
		n.away, n.gone = true, false // what opens the route again is another process
	}
}

// Heard tells that something has come from the node. start says that it has begun anew, so that an earlier farewell does not
// count any more.
func (p *Presence) Heard(id string, start bool) {
	n := p.peer(id)
	if start {
		n.gone = false
	}
	if n.up && !n.gone {
		n.away = false
	}
}

// Farewell tells that the node has said that it goes.
func (p *Presence) Farewell(id string) {
	n := p.peer(id)
	n.gone, n.away = true, true
}

// Forget drops a node that does not belong to the cluster any more.
func (p *Presence) Forget(keep func(id string) bool) {
	p.peers = slices.DeleteFunc(p.peers, func(n peer) bool { return !keep(n.id) })
}

// Away says whether the node is away.
func (p *Presence) Away(id string) bool {
	i := slices.IndexFunc(p.peers, func(n peer) bool { return n.id == id })
	return i >= 0 && p.peers[i].away
}

// Changes are what has become different since the last call.
func (p *Presence) Changes() (changes []Change) {
	for i := range p.peers {
		if n := &p.peers[i]; n.away != n.told {
			n.told = n.away
			changes = append(changes, Change{n.id, n.away})
		}
	}
	return changes
}

// Greetings are the nodes from which something should be heard soon, and when this is to be asked again (0: never). now is
// boot time in nanoseconds.
func (p *Presence) Greetings(now int64) (ids []string, next int64) {
	for i := range p.peers {
		n := &p.peers[i]
		if !n.up || !n.away || n.gone {
			continue
		}
		if n.asked == 0 || now >= n.asked+Greet {
			n.asked = now
			ids = append(ids, n.id)
		}
		if at := n.asked + Greet; next == 0 || at < next {
			next = at
		}
	}
	return ids, next
}

// Gone says whether the node has said that it goes.
func (p *Presence) Gone(id string) bool {
	i := slices.IndexFunc(p.peers, func(n peer) bool { return n.id == id })
	return i >= 0 && p.peers[i].gone
}
