package control

import (
	"github.com/opencluster/oclocks/arbiter"
	"github.com/opencluster/oclocks/broker/control/desk"
	"github.com/opencluster/oclocks/broker/control/reign"
	"github.com/opencluster/oclocks/bucket/chain"
	"github.com/opencluster/oclocks/conf/shared"
)

// What the arbiter calls, on its goroutine: nothing here waits.

// send hands a frame of the arbiter to the network.
func (c *Control) send(to uint64, body []byte) {
	c.post.send(subjectRaft(to), frame(c.store.RaftID(), body))
}

// applied has a new state.
func (c *Control) applied(change uint64, state *shared.State) {
	c.box.with(func(in *desk.Inbox) { in.Push(change, state) })
	c.bell.ring()
	c.wakeReign()
}

// mayLease refuses those that the planner wants to take buckets from, and who is not registered as the node.
func (c *Control) mayLease(number, raft uint64) error {
	return reign.MayLease(c.State(), *c.barred.Load(), number, raft)
}

// event notes what others want to know, and leaves the rest for the desk and the reign.
func (c *Control) event(e arbiter.Event) {
	switch e := e.(type) {
	case arbiter.Leadership:
		defer c.bell.ring()
	case arbiter.Granted:
		c.mu.Lock()
		c.granted, c.refusal = desk.Lease{Lease: chain.Lease{Until: e.Until, Under: e.Under}, Live: e.Live}, ""
		c.mu.Unlock()
	case arbiter.Refusal:
		c.mu.Lock()
		told := c.refusal == e.Why
		c.refusal = e.Why
		c.mu.Unlock()
		if !told {
			c.log.Warn("the leader refuses this node a lease", "why", e.Why)
		}
	case arbiter.Quarantine:
		c.quarantine(e)
	}
	changed := false
	c.box.with(func(in *desk.Inbox) { changed = in.Arbiter(e) })
	if changed {
		c.wakeReign()
	}
}

func (c *Control) wakeReign() {
	c.mu.Lock()
	r := c.reign
	c.mu.Unlock()
	if r != nil {
		r.put(reign.Changed{})
	}
}
