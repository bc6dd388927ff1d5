package sim

import (
	"slices"
	"strconv"

	"github.com/opencluster/oclocks/subjects"
)

// lane is a client's further connection (client/lanes.go), which is never mended.
type lane struct {
	number int
	seat   *seat
	missed int // pings that were not answered
}

// laneBox is the inbox of the client's lane with a number, which is heard by whoever has subscribed to it: the lane, the home connection, or
// both for a moment.
type laneBox struct {
	c      *member
	number int
	homeAt int64 // the home connection has subscribed to it since; never: it has not
}

// useLanes lets a new client have so many lanes.
func (c *member) useLanes(most int) {
	c.lanes = make([]*lane, most)
	for n := 1; n <= most; n++ {
		c.laneBoxes = append(c.laneBoxes, &laneBox{c: c, number: n, homeAt: never})
		c.w.inboxes[address{c.of.zone, c.laneBox(n)}] = c.laneBoxes[n-1]
	}
}

func (c *member) laneBox(n int) string { return c.box + "." + strconv.Itoa(n) }

// listen has the home connection subscribe to the inbox of a lane, or end that.
func (c *member) listen(replies string, on bool) {
	for _, b := range c.laneBoxes {
		switch {
		case replies != strconv.Itoa(b.number)+".*":
		case on:
			b.homeAt = c.w.now + c.w.between(30*us, ms)
		default:
			b.homeAt = never
		}
	}
}

// hear is an answer that a node publishes into the lane's inbox.
func (b *laneBox) hear(from *machine, token string, body subjects.Body) {
	if b.homeAt <= b.c.w.now {
		b.c.hear(from, token, body)
	}
	if l := b.c.lanes[b.number-1]; l != nil {
		b.c.hearOver(l.seat, from, token, body)
	}
}

// openLane does what the machine wants: it connects to a node, or cannot.
func (c *member) openLane(node string, number int) {
	w := c.w
	w.after(w.between(200*us, 20*ms), func() {
		c.awake(func() {
			i := slices.IndexFunc(w.machines, func(m *machine) bool { return m.id == node })
			if i < 0 || c.unreachable(w.machines[i]) || w.draw(8) == 0 { // it is another node by now
				c.do(func(now int64) { c.m.LaneLost(now, number) })
				return
			}
			w.cids++
			m := w.machines[i]
			c.lanes[number-1] = &lane{number: number, seat: &seat{at: m, gen: m.gen, cid: w.cids}}
			w.count("lane opened")
			w.tell("%s has lane %d to %v", c.name, number, m)
			c.do(func(now int64) { c.m.LaneOpened(now, number) })
		})
	})
}

// unreachable says whether a connection to a machine cannot be made.
func (c *member) unreachable(m *machine) bool {
	return m.p == nil || !m.p.serving || m.paused > c.w.now || c.barred[m.index] > c.w.now
}

// seatOf is the connection with a lane's number, the home connection if that is 0 or the lane has ended.
func (c *member) seatOf(lane int) *seat {
	if lane > 0 && c.lanes[lane-1] != nil {
		return c.lanes[lane-1].seat
	}
	return c.seat
}

// closeLane ends a lane. Its server tells of that as of any connection.
func (c *member) closeLane(l *lane) {
	c.lanes[l.number-1] = nil
	l.seat.over = true
	if !l.seat.cut {
		c.w.closedByClient(c.of.zone, l.seat, c.w.between(100*us, 3*ms))
	}
}

// laneBroken is a client that sees a lane end.
func (c *member) laneBroken(l *lane) {
	if c.dead || c.lanes[l.number-1] != l {
		return
	}
	c.w.count("lane lost")
	c.w.tell("%s loses lane %d to %v", c.name, l.number, l.seat.at)
	c.closeLane(l)
	c.do(func(now int64) { c.m.LaneLost(now, l.number) })
}

// openLanes are those that there are.
func (c *member) openLanes() []*lane {
	return slices.DeleteFunc(slices.Clone(c.lanes), func(l *lane) bool { return l == nil })
}

// pingLanes looks whether the servers at the ends of the lanes are still there.
func (c *member) pingLanes() {
	for _, l := range c.openLanes() {
		if l.seat.answers() {
			l.missed = 0
		} else if l.missed++; l.missed > pingsUnmet {
			c.laneBroken(l)
		}
	}
}

// laneKinds are the faults of lanes.
func laneKinds() []kind {
	return []kind{
		{"client's lane reset", func(w *world) bool { return w.harmLane(false) }},
		{"client's lane stands still", func(w *world) bool { return w.harmLane(true) }},
	}
}

// harmLane has a lane break, or stand still until its pings tell.
func (w *world) harmLane(still bool) bool {
	w.buried()
	type owned struct {
		c *member
		l *lane
	}
	var all []owned
	for _, c := range w.members {
		for _, l := range c.openLanes() {
			all = append(all, owned{c, l})
		}
	}
	if len(all) == 0 {
		return false
	}
	it := all[w.draw(len(all))]
	c, l := it.c, it.l
	if still {
		w.tell("nothing passes on lane %d from %s to %v any more", l.number, c.name, l.seat.at)
		l.seat.cut = true
		return true
	}
	w.after(w.between(50*us, 20*ms), func() { c.awake(func() { c.laneBroken(l) }) })
	return true
}
