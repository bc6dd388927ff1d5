package flow

import (
	"cmp"
	"slices"
)

// Presence knows which other nodes are there, by their identifiers. A node is away from the moment in which the route to it
// is closed, or it says that it goes; it is back when the route is open and something has been heard from it over that
// route, since an open route alone carries nothing yet. A node of which nothing is known is not away.
//
// A farewell is one process's, told by its start, and may come late: after the next process of that node was heard, whose hello
// says another start, or before, and then that hello may have been lost. So a farewell of another process than the one that was
// heard last over this route does not count, and who has said farewell is greeted for as long as its route is open: if it is the
// next process that answers, it is back.
type Presence struct {
	peers []peer // by identifier
}

type peer struct {
	id    string
	up    bool // the route
	away  bool
	told  bool   // what was last given by Changes
	gone  uint64 // the process that said that it goes: only another one brings it back; 0: none did
	start uint64 // the process that was heard over this route; 0: not known
	asked int64
}

// Change of one node.
type Change struct {
	Node string
	Away bool
}

// Greet is how long a greeting is waited for before the next one, in nanoseconds.
const Greet int64 = 100e6

// greetGone is the same for a node that has said farewell.
const greetGone int64 = 1e9

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
		n.away, n.gone, n.start = true, 0, 0 // what opens the route again may be another process
	}
}

// Heard tells that something has come from the node. start is that of the process, 0 if the message does not say.
func (p *Presence) Heard(id string, start uint64) {
	n := p.peer(id)
	if start != 0 {
		n.start = start
		if n.gone != start {
			n.gone = 0
		}
	}
	if n.up && n.gone == 0 {
		n.away = false
	}
}

// Farewell tells that the process with this start has said that the node goes.
func (p *Presence) Farewell(id string, start uint64) {
	n := p.peer(id)
	if n.start != 0 && n.start != start {
		return
	}
	n.gone, n.away, n.asked = start, true, 0
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
		if !n.up || !n.away {
			continue
		}
		pause := Greet
		if n.gone != 0 {
			pause = greetGone
		}
		if n.asked == 0 || now >= n.asked+pause {
			n.asked = now
			ids = append(ids, n.id)
		}
		if at := n.asked + pause; next == 0 || at < next {
			next = at
		}
	}
	return ids, next
}

// Gone says whether the node has said that it goes.
func (p *Presence) Gone(id string) bool {
	i := slices.IndexFunc(p.peers, func(n peer) bool { return n.id == id })
	return i >= 0 && p.peers[i].gone != 0
}
