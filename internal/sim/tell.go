package sim

import (
	"slices"

	"github.com/opencluster/oclocks/arbiter/plan"
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

// What follows is broker/copies.go and adopt.go: desk.Copies.

func (p *process) Install(views []shared.BucketView) {
	for _, v := range views {
		p.asks.Committed(v.Bucket, v.View.Epoch)
		s := p.shardOf(v.Bucket)
		s.coming = append(s.coming, v)
	}
}

func (p *process) Applied(change uint64, state *shared.State) {
	old := p.state
	p.state = state
	grown := p.count < uint32(len(state.Views))
	p.count = uint32(len(state.Views))
	for _, s := range p.shards {
		views := s.coming
		s.coming = nil
		s.put(func() { s.applied(change, state, views, grown) })
	}
	for i := range old.Nodes { // dropRemoved
		if number := old.Nodes[i].Number; removed(state, number) {
			p.Away(number, true)
		}
	}
	if !slices.EqualFunc(old.Nodes, state.Nodes, sameNode) || old.Settings.Copies != state.Settings.Copies {
		p.scores(state)
	}
}

func (s *shard) applied(change uint64, state *shared.State, views []shared.BucketView, grown bool) {
	for _, c := range s.cells {
		c.SetLeases(state.Settings.MaxLease, int64(state.Recovery()))
	}
	for _, v := range views {
		s.install(v)
	}
	s.change = change
	for _, c := range s.cells {
		if grown {
			s.touch(c)
		}
		c.Chain().Applied(change)
		c.due = min(c.due, s.dueOf(c))
	}
}

func removed(state *shared.State, number uint64) bool {
	return number <= state.Last && state.Node(number) == nil
}

func sameNode(a, b shared.Node) bool {
	return a.Number == b.Number && a.Location == b.Location && a.Drain == b.Drain && a.Priority == b.Priority && a.Life == b.Life
}

func (p *process) scores(state *shared.State) {
	p.tellShards(func(s *shard) {
		for _, c := range s.cells {
			s.score(c, state)
		}
	})
}

func (p *process) Grant(lease chain.Lease, live int) {
	p.live = live
	p.tellShards(func(s *shard) {
		s.lease = lease
		for _, c := range s.cells {
			c.Chain().Grant(lease)
			c.due = min(c.due, s.dueOf(c))
		}
	})
}

func (p *process) Seal(orders []plan.SealOrder) {
	for _, o := range orders {
		p.tellCell(o.Bucket, func(_ *shard, c *cell) { c.Chain().Seal(o.Epoch) })
	}
}

func (p *process) HandOver(orders []plan.HandOverOrder) {
	for _, o := range orders {
		p.tellCell(o.Bucket, func(_ *shard, c *cell) {
			if c.Chain().View().Epoch == o.Epoch && c.Chain().HandOver(o.To) == nil {
				p.w.fault("hand-over")
			}
		})
	}
}

func (p *process) Away(node uint64, away bool) {
	p.gone[node] = away
	p.tellShards(func(s *shard) {
		for _, c := range s.cells {
			s.touch(c).Chain().Away(node, away)
		}
	})
}

func (p *process) Refused(number uint32, view chain.View) {
	p.tellCell(number, func(_ *shard, c *cell) { c.Refused(&view) })
}
