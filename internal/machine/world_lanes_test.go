package machine

import (
	"maps"
	"slices"
	"strings"
)

// simLane is a client's lane to a node.
type simLane struct {
	number int
	node   *simNode
	last   int64 // arrival of the newest message: they keep their order
	mute   bool  // it stands still
}

// useLanes lets all clients have lanes, after a single request.
func (w *world) useLanes(lanes int) {
	for _, c := range w.clients {
		c.m.slots, c.m.cfg.Busy = make([]slot, lanes), 1
	}
}

// openLane does what the machine wants; mostly it succeeds.
func (c *simClient) openLane(name string, number int) {
	node := c.w.nodes[slices.IndexFunc(c.w.nodes, func(n *simNode) bool { return n.name == name })]
	c.w.after(c.w.delay(), func() {
		c.wake(func() {
			if node.up && node.deaf <= c.w.now && c.w.draw(5) > 0 {
				c.lanes[number] = &simLane{number: number, node: node}
				c.m.LaneOpened(c.clock(), number)
			} else {
				c.m.LaneLost(c.clock(), number)
			}
			c.carryOut()
		})
	})
}

// someLane is one of the client's lanes, nil if it has none.
func (c *simClient) someLane() *simLane {
	numbers := slices.Sorted(maps.Keys(c.lanes))
	if len(numbers) == 0 {
		return nil
	}
	return c.lanes[numbers[c.w.draw(len(numbers))]]
}

// laneTo is the client's lane to a node, nil if it has none.
func (c *simClient) laneTo(n *simNode) *simLane {
	for _, l := range c.lanes { // order: there is one at most
		if l.node == n {
			return l
		}
	}
	return nil
}

// breakLane ends a lane. The client hears of it a little later.
func (c *simClient) breakLane(l *simLane) {
	if l == nil {
		return
	}
	l.mute = true
	c.w.after(c.w.delay(), func() {
		c.wake(func() {
			if c.lanes[l.number] == l {
				delete(c.lanes, l.number)
				c.m.LaneLost(c.clock(), l.number)
				c.carryOut()
			}
		})
	})
}

// muteLane has a lane stand still for a while, until its pings tell.
func (c *simClient) muteLane(l *simLane) {
	if l == nil {
		return
	}
	l.mute = true
	c.w.after(int64(c.w.draw(int(simLease))), func() { c.breakLane(l) })
}

// deliverTo brings an answer to those connections that listen to a reply subject: the home connection, or a lane, which delivers also
// while the home connection is broken.
func (c *simClient) deliverTo(reply string, from *simNode, do func(now int64)) {
	inbox, _, laned := strings.Cut(reply, ".")
	if !laned || c.hears[inbox+".*"] {
		c.deliver(from, do)
	}
	if c.w.trouble && c.w.draw(20) == 0 {
		return
	}
	for _, l := range c.lanes { // order: one has the inbox
		if !laned || laneReplies(l.number, "*") != inbox+".*" {
			continue
		}
		l.last = max(c.w.now+c.w.delay(), l.last)
		c.w.after(l.last-c.w.now, func() {
			c.wake(func() {
				if c.lanes[l.number] == l && !l.mute {
					do(c.clock())
					c.carryOut()
				}
			})
		})
	}
}
