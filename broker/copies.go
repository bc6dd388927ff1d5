package broker

import (
	"github.com/opencluster/oclocks/arbiter/plan"
	"github.com/opencluster/oclocks/broker/control"
	"github.com/opencluster/oclocks/broker/spread"
	"github.com/opencluster/oclocks/bucket/chain"
	"github.com/opencluster/oclocks/bucket/replicated"
	"github.com/opencluster/oclocks/conf/shared"
)

// copies is how the control plane reaches this node's buckets: each call becomes tasks of the shards, in the order of the
// calls. What they are is decided in package spread.
type copies struct {
	d    *Daemon
	node *spread.Node
}

var _ control.Copies = (*copies)(nil)

// newCopies is for buckets that were opened with a state, of which they are told the rest.
func newCopies(d *Daemon, state *shared.State) *copies {
	c := &copies{d: d, node: spread.NewNode(state)}
	c.tell(c.node.Opened())
	return c
}

// tell gives the shards their tasks.
func (c *copies) tell(tasks []spread.Task) {
	for i := range tasks {
		t := &tasks[i]
		do := func(s *shard) { s.told.Do(s, t) }
		if number, one := t.Only(); one {
			c.d.shardOf(number).queue.put(&task{kind: taskCall, call: do})
		} else {
			c.d.tell(do)
		}
	}
}

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

func (c *copies) Install(views []shared.BucketView) { c.node.Install(views) }

func (c *copies) Applied(change uint64, state *shared.State) {
	d := c.d
	d.state.Store(state)
	d.count.Store(int64(len(state.Views)))
	c.tell(c.node.Applied(change, state, d.maxLease()))
	d.adopt()
}

func (c *copies) Grant(lease chain.Lease, live int) {
	if c.d.live.Swap(int64(live)) != int64(live) {
		c.d.events.notice()
	}
	c.d.leaseUntil.Store(lease.Until)
	c.tell(c.node.Grant(lease))
	if c.d.leased.CompareAndSwap(false, true) {
		c.d.log.Debug("the node has its first lease")
	}
}

func (c *copies) Seal(orders []plan.SealOrder) { c.tell(c.node.Seal(orders)) }

func (c *copies) HandOver(orders []plan.HandOverOrder) { c.tell(c.node.HandOver(orders)) }

func (c *copies) Away(node uint64, away bool) {
	c.d.peers.set(node, away)
	if !away {
		c.d.stopping.put(node, false)
	}
	c.d.events.notice()
	c.tell(c.node.Away(node, away))
}

func (c *copies) Refused(number uint32, view chain.View) { c.tell(c.node.Refused(number, view)) }

// What follows is spread.Host.

func (s *shard) Cells() []*cell { return s.cells }

func (s *shard) Cell(number uint32) (*cell, bool) {
	c := s.cell(number)
	return c, c != nil
}

func (s *shard) Touch(c *cell) { s.touch(c) }

func (s *shard) Due(c *cell) { s.next[c.at] = min(s.next[c.at], c.due(s.now.Boot)) }

func (s *shard) Outcome(what spread.Kind, number uint32, err error) {
	switch {
	case err == nil:
	case what == spread.Adopt:
		s.d.log.Error("a committed view cannot be installed", "bucket", number, "error", err)
	case what == spread.Score:
		s.d.log.Debug("the node keeps a copy that it need not have", "bucket", number, "error", err)
	default:
		s.d.log.Debug("a bucket is not handed over", "bucket", number, "error", err)
	}
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
