package plan

import (
	"cmp"
	"maps"
	"slices"

	"github.com/opencluster/oclocks/bucket/chain"
)

// move is a hand-over that was ordered.
type move struct {
	from, to chain.Member
	since    int64
	sent     int64
}

// failure is a hand-over that came to nothing; it is not tried again with that node before a time.
type failure struct {
	to    uint64
	until int64
}

// pace is how often at most balance is looked at when something has changed, and idle if not, in nanoseconds.
const (
	pace = 10_000_000
	idle = 1_000_000_000
)

// classes of nodes: primaries are on nodes of the first class of which there is one.
const (
	regular  = iota
	lastUsed // of the lowest priority
	draining
	stopping
	unusable
)

func (t *turn) class(s *seat) int {
	switch {
	case s == nil || !s.alive || s.node.Arbiter:
		return unusable
	case s.leaving:
		return stopping
	case s.node.Drain:
		return draining
	case s.node.Priority >= 15:
		return lastUsed
	}
	return regular
}

// eligible are the nodes that primaries should be on, by number.
func (t *turn) eligible() []*seat {
	best := unusable
	for _, s := range t.order {
		best = min(best, t.class(s))
	}
	var all, settled []*seat
	for _, s := range t.order {
		if best == unusable || t.class(s) != best {
			continue
		}
		all = append(all, s)
		if s.settled {
			settled = append(settled, s)
		}
	}
	if len(settled) > 0 {
		return settled
	}
	return all
}

// balance orders hand-overs: away from nodes that should have no primaries, to where people want a bucket, and from nodes
// that have two more than another one.
func (t *turn) balance() {
	t.moving()
	if t.Now < t.TakeFrom {
		return
	}
	key, rest := t.standing(), pace+int64(t.State.Buckets())*1000
	switch {
	case t.balancedOf == t.State && t.balancedBy == key && !t.wait(t.balanced+idle):
	case t.balancedOf == t.State && t.balancedBy == key:
		return
	case t.balanced != 0 && t.wait(t.balanced+rest):
		return
	}
	t.balanced, t.Planner.balancedOf, t.Planner.balancedBy = t.Now, t.State, key
	if len(t.moves) >= t.cfg.Moves {
		return
	}
	maps.DeleteFunc(t.failed, func(_ uint32, f failure) bool { return t.Now >= f.until })
	nodes := t.eligible()
	loads := t.loads()
	free := t.forced(nodes, loads)
	if t.State.Settings.Balance && !t.wait(t.began+t.cfg.Settle) {
		t.even(nodes, loads, free)
	}
}

// standing is a number that is another one when balance has something new to look at.
func (t *turn) standing() uint64 {
	key := b2u(t.Now >= t.began+t.cfg.Settle)
	for _, s := range t.order {
		key = key*31 + uint64(t.class(s))<<1 + b2u(s.settled)
	}
	return key*31 + uint64(len(t.moves))
}

// moving looks after the hand-overs that were ordered.
func (t *turn) moving() {
	for _, b := range slices.Sorted(maps.Keys(t.moves)) {
		m := t.moves[b]
		v := &t.State.Views[b]
		switch {
		case v.Primary() != m.from || v.Place(m.to) < 0 || !t.alive(m.from) || t.class(t.seats[m.to.Node]) >= draining && !t.only(m.to.Node):
			delete(t.moves, b)
			continue
		case t.Now >= m.since+t.cfg.Move:
			t.failed[b] = failure{m.to.Node, t.Now + t.cfg.Move}
			delete(t.moves, b)
			continue
		}
		t.wake(m.since + t.cfg.Move)
		if due := m.sent + t.cfg.Repeat; t.Now >= due {
			t.order1(b, m)
		} else {
			t.wake(due)
		}
	}
}

// only says whether the node is one of those that primaries should be on, whatever its class.
func (t *turn) only(node uint64) bool {
	return slices.ContainsFunc(t.eligible(), func(s *seat) bool { return s.number == node })
}

func (t *turn) order1(b uint32, m *move) {
	m.sent = t.Now
	t.out.HandOver = append(t.out.HandOver, HandOverOrder{Node: m.from.Node, Bucket: b, Epoch: t.State.Views[b].Epoch, To: m.to})
	t.wake(t.Now + t.cfg.Repeat)
}

// loads counts the primaries of each node, as if all hand-overs were done.
func (t *turn) loads() map[uint64]int {
	dense := make([]int, t.State.Last+1)
	loads := make(map[uint64]int, len(t.order))
	for b := range t.State.Views {
		node := t.State.Views[b].Primary().Node
		if m := t.moves[uint32(b)]; m != nil {
			node = m.to.Node
		}
		if node < uint64(len(dense)) {
			dense[node]++
		}
	}
	for _, s := range t.order {
		if s.number < uint64(len(dense)) {
			loads[s.number] = dense[s.number]
		}
	}
	return loads
}

// leastLoaded is the node with the fewest primaries among those of which there is a member in the list (nil: any), nil if
// there is none.
func (t *turn) leastLoaded(loads map[uint64]int, nodes []*seat, members []chain.Member) *seat {
	var best *seat
	for _, s := range nodes {
		in := members == nil || slices.ContainsFunc(members, func(m chain.Member) bool { return m.Node == s.number && t.State.Lives(m) })
		if in && (best == nil || loads[s.number] < loads[best.number]) {
			best = s
		}
	}
	return best
}

// forced orders the hand-overs that have a reason of their own. It gives, for each node, the buckets that it is primary of
// and that may be moved.
func (t *turn) forced(nodes []*seat, loads map[uint64]int) map[uint64][]uint32 {
	free := map[uint64][]uint32{}
	for i := range t.State.Views {
		b, v := uint32(i), &t.State.Views[i]
		from := v.Primary()
		if v.Epoch == 0 || t.moves[b] != nil || t.takes[b] != nil || !t.alive(from) {
			continue
		}
		if pin := t.State.Pins[b]; pin != 0 && t.class(t.seats[pin]) <= lastUsed {
			if pin != from.Node && t.inChain(v, pin) {
				t.move(b, pin, loads)
			}
			continue
		}
		if slices.ContainsFunc(nodes, func(s *seat) bool { return s.number == from.Node }) {
			free[from.Node] = append(free[from.Node], b)
			continue
		}
		if mine, best := t.class(t.seats[from.Node]), nodes; len(best) > 0 && mine > t.class(best[0]) {
			others := slices.DeleteFunc(slices.Clone(v.Chain), func(m chain.Member) bool { return m.Node == t.failed[b].to })
			if to := t.leastLoaded(loads, nodes, others); to != nil {
				t.move(b, to.number, loads)
			}
		}
	}
	return free
}

func (t *turn) inChain(v *chain.View, node uint64) bool {
	return slices.ContainsFunc(v.Chain, func(m chain.Member) bool { return m.Node == node && t.alive(m) })
}

// move orders a hand-over unless there are too many, or this one has just failed.
func (t *turn) move(b uint32, to uint64, loads map[uint64]int) bool {
	v := &t.State.Views[b]
	at := slices.IndexFunc(v.Chain, func(m chain.Member) bool { return m.Node == to })
	if len(t.moves) >= t.cfg.Moves || t.failed[b].to == to || at < 0 || !t.alive(v.Chain[at]) {
		return false
	}
	m := &move{from: v.Primary(), to: v.Chain[at], since: t.Now}
	t.moves[b] = m
	t.order1(b, m)
	loads[m.from.Node]--
	loads[to]++
	return true
}

// even moves buckets, one by one, from the node with the most to the one with the fewest, as long as that makes the two more
// equal. A difference of one stays, so it never moves back.
func (t *turn) even(nodes []*seat, loads map[uint64]int, free map[uint64][]uint32) {
	for len(t.moves) < t.cfg.Moves && t.evenOne(nodes, loads, free) {
	}
}

func (t *turn) evenOne(nodes []*seat, loads map[uint64]int, free map[uint64][]uint32) bool {
	order := slices.Clone(nodes)
	slices.SortStableFunc(order, func(a, b *seat) int { return cmp.Compare(loads[a.number], loads[b.number]) })
	for _, to := range order {
		for _, from := range slices.Backward(order) {
			if loads[from.number]-loads[to.number] < 2 {
				break
			}
			for i, b := range free[from.number] {
				v := &t.State.Views[b]
				if !v.Recovery && t.inChain(v, to.number) && t.move(b, to.number, loads) {
					free[from.number] = slices.Delete(free[from.number], i, i+1)
					return true
				}
			}
		}
	}
	return false
}
