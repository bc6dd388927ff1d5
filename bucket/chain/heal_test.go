package chain

import (
	"fmt"
	"slices"

	"pgregory.net/rapid"
)

// heal lets everything work again and says whether the cluster comes together: one primary that answers new changes, every
// node a copy of all of it, and nobody with anything left to do.
func (c *chaos) heal(t *rapid.T) {
	clear(c.cut)
	for _, nd := range c.nodes {
		if nd.r == nil {
			c.restart(nd)
		}
		for _, o := range c.nodes {
			nd.r.Away(o.id, false)
		}
		nd.r.Join()
	}
	c.carried, c.losing = 0, rapid.SliceOfN(rapid.IntRange(1, 300), 0, 8).Draw(t, "lose")
	for round := range 600 {
		c.now += 25e6
		c.round()
		c.verdict(t)
		if round%5 == 4 && c.together() && c.idle() {
			c.rest(t)
			return
		}
	}
	t.Fatalf("the cluster does not come together again:\n%s", c)
}

// rest gives a cluster that has come together one more change, loses a few messages, and then lets it do nothing but get
// leases: that costs nobody his place, everybody gets the change, and in the end nobody has anything to do any more.
func (c *chaos) rest(t *rapid.T) {
	v := c.plane.view()
	c.carried, c.losing = 0, rapid.SliceOfN(rapid.IntRange(1, 6*len(c.nodes)), 0, 3).Draw(t, "lose")
	c.now += 100 * second // nothing went on meanwhile; this is no silence of anybody
	head := c.node(v.Primary().Node)
	c.grant(head)
	head.r.Tick(c.now)
	if err := c.propose(head, "the last one"); err != nil {
		t.Fatalf("%v\n%s", err, c)
	}
	for range 100 {
		c.now += 25e6
		c.keep()
		c.verdict(t)
	}
	if now := c.plane.view(); now.Epoch != v.Epoch || !c.together() || !c.idle() {
		t.Fatalf("a few lost messages change %v to %v, idle %v:\n%s", v, now, c.idle(), c)
	}
}

// idle says whether nobody has anything to do without an input.
func (c *chaos) idle() bool {
	return !slices.ContainsFunc(c.nodes, func(nd *node) bool { return nd.r.Next(c.now) != Never })
}

// round is one step of a working system.
func (c *chaos) round() {
	c.keep()
	v := c.plane.view()
	head := c.node(v.Primary().Node)
	switch {
	case head.r.Self() != v.Primary() || head.r.stopped != "" || head.r.state.Sealed >= v.Epoch:
		for _, nd := range c.nodes {
			if nd.r.View().Epoch == v.Epoch {
				nd.r.Seal(v.Epoch)
				c.ready(nd, false)
			}
		}
		// The old primary's node lives on and gets leases, but as another member: nobody acts under the old name.
		if head.r.Self() != v.Primary() {
			c.plane.leases[head.id] = 0
		}
		if c.takeOver() != nil {
			for _, nd := range c.nodes {
				c.plane.leases[nd.id] = 0 // everybody is sealed
			}
			_ = c.recover() // in the next round then
		}
	case slices.ContainsFunc(c.nodes, func(nd *node) bool { return nd.r.state.Sealed >= v.Epoch }):
		v.Epoch++ // sealed for nothing: who seals owes the next view
		c.plane.commit(v)
	case c.now%second < 25e6:
		_ = c.propose(head, fmt.Sprintf("healing %d", c.now)) // it may be full
	}
}

// together says whether everybody has everything.
func (c *chaos) together() bool {
	v := c.plane.view()
	if len(v.Chain) != len(c.nodes) || v.Recovery || len(c.plane.proposals) > 0 {
		return false
	}
	head := c.node(v.Primary().Node)
	for _, nd := range c.nodes {
		s := nd.r.Status()
		if s.View.Epoch != v.Epoch || s.Last != head.r.log.last() || s.Confirmed != s.Last.Seq || s.Stopped != "" ||
			!slices.Equal(nd.table, head.table) {
			return false
		}
	}
	return head.r.Status().Acting && len(head.table) > 0 && (c.cfg.Acks == First || v.InSync == len(v.Chain))
}
