package plan

import (
	"cmp"
	"maps"
	"slices"

	"github.com/opencluster/oclocks/bucket/chain"
	"github.com/opencluster/oclocks/conf/shared"
	"github.com/opencluster/oclocks/internal/mutant"
)

// sight is what the planner has seen of a node in this term.
type sight struct {
	until int64 // the latest end of a lease that it was granted
	since int64 // it has been alive since then; 0 if it is not
	life  uint64
	end   int64 // when the last lease ends that a life before this one may have
}

// seat is a node at this moment, one that is registered or was seen in this term.
type seat struct {
	*sight
	number    uint64
	node      *shared.Node // nil: removed
	alive     bool         // it has its lease, and messages reach it
	connected bool
	leaving   bool
	barred    bool
	settled   bool // it has been alive for a while
}

// look puts together what is known of the nodes.
func (p *Planner) look(in *Input) *turn {
	t := &turn{Planner: p, Input: in, seats: map[uint64]*seat{}, rule: in.State.Settings.Acks, bar: map[uint64]bool{}}
	t.out.Next = in.Now + 1e9
	t.wake1(in.TakeFrom)
	for i := range in.State.Nodes {
		n := &in.State.Nodes[i]
		t.seat(n.Number).node = n
	}
	for _, number := range slices.Sorted(maps.Keys(p.sights)) {
		t.seat(number)
	}
	for _, e := range in.Nodes {
		s := t.seat(e.Number)
		s.until = max(s.until, e.LeaseUntil)
		s.connected, s.leaving, s.barred = e.Connected, e.Leaving, e.Barred
	}
	for _, s := range t.order {
		t.see(s)
	}
	slices.SortFunc(t.order, func(a, b *seat) int { return cmp.Compare(a.number, b.number) })
	return t
}

func (t *turn) seat(number uint64) *seat {
	if s := t.seats[number]; s != nil {
		return s
	}
	if t.sights[number] == nil {
		t.sights[number] = &sight{}
	}
	s := &seat{sight: t.sights[number], number: number}
	t.seats[number] = s
	t.order = append(t.order, s)
	return s
}

// see brings what was seen of a node up to now.
func (t *turn) see(s *seat) {
	if s.node != nil && s.node.Life != s.life {
		s.life, s.end = s.node.Life, s.until // whatever was granted to the life before is in this
	}
	s.alive = s.node != nil && s.connected && t.Now < s.until
	switch {
	case !s.alive:
		s.since = 0
	case s.since == 0:
		s.since = t.Now
	}
	s.settled = s.alive && t.Now-s.since >= t.cfg.Settle
	t.wake1(s.until)
	if s.alive && !s.settled {
		t.wake(s.since + t.cfg.Settle)
	}
	if !s.alive && s.node != nil {
		t.wake1(t.lost(s))
	}
}

// wake1 asks for a Step when something ends that has not ended yet.
func (t *turn) wake1(at int64) {
	if at > t.Now {
		t.wake(at)
	}
}

// over says whether no lease of the node is out.
func (t *turn) over(s *seat) bool {
	return t.Now >= max(s.until, t.TakeFrom) || !s.connected && mutant.On(mutant.ClosedRouteEndsLease)
}

// lost is when the node counts as one that does not come back, if it does not before.
func (t *turn) lost(s *seat) int64 {
	return max(s.until, t.TakeFrom) + int64(t.State.Settings.GiveUp)
}

// lapsed says whether the node, in the life that the member is of, holds no lease. It may get another one, unless final.
func (t *turn) lapsed(m chain.Member) (lapsed, final bool) {
	s := t.seats[m.Node]
	switch {
	case s == nil:
		return t.Now >= t.TakeFrom, true // removed, and not heard of in this term
	case s.node == nil:
		return t.over(s), true
	case !t.State.Lives(m):
		return t.Now >= max(s.end, t.TakeFrom), true
	}
	return t.over(s), s.barred
}

// alive says whether the member can be on a node that is alive.
func (t *turn) alive(m chain.Member) bool {
	s := t.seats[m.Node]
	return s != nil && s.alive && t.State.Lives(m)
}

// reachable says whether an order to the node makes sense.
func (t *turn) reachable(node uint64) bool {
	s := t.seats[node]
	return s != nil && s.node != nil && !s.node.Arbiter && (s.connected || t.Now < s.until)
}
