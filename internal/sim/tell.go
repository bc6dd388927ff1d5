package sim

import (
	"github.com/opencluster/oclocks/arbiter/plan"
	"github.com/opencluster/oclocks/broker/spread"
	"github.com/opencluster/oclocks/bucket/chain"
	"github.com/opencluster/oclocks/conf/shared"
)

func (p *process) tellShards(do func(s *shard)) {
	for _, s := range p.shards {
		s.put(func() { do(s) })
	}
}

func (p *process) tellCell(number uint32, do func(s *shard, c *cell)) {
	s := p.shardOf(number)
	s.put(func() {
		if c := s.cell(number); c != nil {
			do(s, s.touch(c))
		}
	})
}

// What follows is broker/copies.go, which puts into the shards' queues what package spread decides: desk.Copies.

func (p *process) tell(tasks []spread.Task) {
	for i := range tasks {
		t := &tasks[i]
		do := func(s *shard) { s.told.Do(s, t) }
		if number, one := t.Only(); one {
			s := p.shardOf(number)
			s.put(func() { do(s) })
		} else {
			p.tellShards(do)
		}
	}
}

func (p *process) Install(views []shared.BucketView) {
	for _, v := range views {
		p.asks.Committed(v.Bucket, v.View.Epoch)
	}
	p.node.Install(views)
}

func (p *process) Applied(change uint64, state *shared.State) {
	p.state = state
	p.count = uint32(len(state.Views))
	p.tell(p.node.Applied(change, state, state.Settings.MaxLease))
}

func (p *process) Grant(lease chain.Lease, live int) {
	if !p.leased() {
		p.w.moment(getsLease, p)
	}
	p.live, p.until = live, lease.Until
	p.tell(p.node.Grant(lease))
}

func (p *process) Seal(orders []plan.SealOrder) { p.tell(p.node.Seal(orders)) }

func (p *process) HandOver(orders []plan.HandOverOrder) { p.tell(p.node.HandOver(orders)) }

func (p *process) Away(node uint64, away bool) {
	p.gone[node] = away
	p.tell(p.node.Away(node, away))
}

func (p *process) Refused(number uint32, view chain.View) { p.tell(p.node.Refused(number, view)) }

// What follows is spread.Host.

func (s *shard) Cells() []*cell { return s.cells }

func (s *shard) Cell(number uint32) (*cell, bool) {
	c := s.cell(number)
	return c, c != nil
}

func (s *shard) Touch(c *cell) { s.touch(c) }

func (s *shard) Due(c *cell) { c.due = min(c.due, s.dueOf(c)) }

func (s *shard) Outcome(what spread.Kind, number uint32, err error) {
	switch {
	case what == spread.Adopt:
		s.p.w.fail("%v: bucket %d: install: %v", s.p.m, number, err)
	case what == spread.Score:
		s.p.w.stats.Dropped++
	case err == nil:
		s.p.w.fault("hand-over")
	}
}
