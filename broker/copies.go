package broker

import (
	"github.com/opencluster/oclocks/arbiter/plan"
	"github.com/opencluster/oclocks/broker/control"
	"github.com/opencluster/oclocks/bucket/chain"
	"github.com/opencluster/oclocks/bucket/replicated"
	"github.com/opencluster/oclocks/conf/shared"
)

// copies is how the control plane reaches this node's buckets: each call becomes a task of the shards, in the order of the
// calls.
type copies struct {
	d     *Daemon
	views []shared.BucketView // installed with the Applied that comes next
}

var _ control.Copies = (*copies)(nil)

// tell has every shard carry something out between two batches.
func (d *Daemon) tell(do func(s *shard)) {
	for _, s := range d.shards {
		s.queue.put(&task{kind: taskCall, call: do})
	}
}

// tellCell has the shard of one bucket carry something out.
func (d *Daemon) tellCell(number uint32, do func(s *shard, c *cell)) {
	d.shardOf(number).queue.put(&task{kind: taskCall, call: func(s *shard) {
		if c := s.cell(number); c != nil { // what it is told is told again, if it has not begun here yet
			do(s, s.touch(c))
		}
	}})
}

// Install keeps views for the Applied that has them: a bucket that has got its new view must not tell a client the map of
// before.
func (c *copies) Install(views []shared.BucketView) { c.views = append(c.views, views...) }

// Applied takes over a state: first what requests are answered with, then the views, then the change.
func (c *copies) Applied(change uint64, state *shared.State) {
	d, views := c.d, c.views
	c.views = nil
	old := d.state.Swap(state)
	grown := d.count.Swap(int64(len(state.Views))) < int64(len(state.Views))
	longest, recovery := d.maxLease(), int64(state.Recovery())
	d.tell(func(s *shard) {
		for _, c := range s.cells {
			c.SetLeases(longest, recovery)
		}
		for _, v := range views {
			if d.shardOf(v.Bucket) == s {
				s.install(v)
			}
		}
		s.change = change
		if grown {
			s.all(func(*cell) {}) // the primaries split their tables in this batch
		}
		for _, c := range s.cells {
			c.Chain().Applied(change)
			s.next[c.at] = min(s.next[c.at], c.due(s.now.Boot))
		}
	})
	d.adopt(old, state)
}

func (c *copies) Grant(lease chain.Lease, live int) {
	if c.d.live.Swap(int64(live)) != int64(live) {
		c.d.events.notice()
	}
	c.d.leaseUntil.Store(lease.Until)
	c.d.tell(func(s *shard) {
		s.grant = lease
		for _, c := range s.cells {
			c.Chain().Grant(lease)
			s.next[c.at] = min(s.next[c.at], c.due(s.now.Boot))
		}
	})
	if c.d.leased.CompareAndSwap(false, true) {
		c.d.log.Debug("the node has its first lease")
	}
}

func (c *copies) Seal(orders []plan.SealOrder) {
	for _, order := range orders {
		c.d.tellCell(order.Bucket, func(_ *shard, c *cell) { c.Chain().Seal(order.Epoch) })
	}
}

func (c *copies) HandOver(orders []plan.HandOverOrder) {
	d := c.d
	for _, order := range orders {
		d.tellCell(order.Bucket, func(_ *shard, c *cell) {
			if c.Chain().View().Epoch != order.Epoch {
				return // decided before something else happened
			}
			if err := c.Chain().HandOver(order.To); err != nil {
				d.log.Debug("a bucket is not handed over", "bucket", order.Bucket, "to", order.To, "error", err)
			}
		})
	}
}

func (c *copies) Away(node uint64, away bool) {
	c.d.peers.set(node, away)
	if !away {
		c.d.stopping.put(node, false)
	}
	c.d.events.notice()
	c.d.tell(func(s *shard) { s.all(func(c *cell) { c.Chain().Away(node, away) }) })
}

func (c *copies) Refused(number uint32, view chain.View) {
	c.d.tellCell(number, func(_ *shard, c *cell) { c.Refused(&view) })
}

// tellControl passes on what the buckets want of the control plane.
func (d *Daemon) tellControl(out *replicated.Output) {
	for _, p := range out.Proposals {
		d.control.Propose(p.Bucket, p.View)
	}
	for _, r := range out.Reports {
		d.control.Sealed(r.Bucket, r.Report)
	}
	for _, a := range out.Alerts {
		d.control.Alert(int64(a.Bucket), a.Text)
	}
}

// scores tells the copies whom to prefer as first secondary, and whether this node is to have a copy at all.
func (d *Daemon) scores(state *shared.State) {
	d.tell(func(s *shard) {
		for _, c := range s.cells {
			s.score(c, state)
		}
	})
}

// score does so for one copy.
func (s *shard) score(c *cell, state *shared.State) {
	number, self := c.Number(), s.d.number
	if plan.Keeps(state, number, self) {
		c.Chain().Join()
	} else if err := c.Chain().Leave(); err != nil {
		s.d.log.Debug("the node keeps a copy that it need not have", "bucket", number, "error", err)
	}
	for i := range state.Nodes {
		if node := state.Nodes[i].Number; node != self {
			c.Chain().Score(node, plan.Score(state, number, node))
		}
	}
	s.touch(c)
}

// install tells a copy of a view, or keeps it for one that has not begun.
func (s *shard) install(v shared.BucketView) {
	c := s.cell(v.Bucket)
	if c == nil {
		s.absent[v.Bucket] = v.View
		return
	}
	if err := s.touch(c).Chain().Install(v.View); err != nil {
		s.d.log.Error("a committed view cannot be installed", "bucket", v.Bucket, "error", err)
	}
	state := s.d.state.Load()
	for _, m := range v.View.Chain { // whoever asked for the view did not know yet
		if removed(state, m.Node) {
			c.Chain().Away(m.Node, true)
		}
	}
}
