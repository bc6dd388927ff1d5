package sim

import (
	"github.com/opencluster/oclocks/bucket"
	"github.com/opencluster/oclocks/bucket/replicated"
	"github.com/opencluster/oclocks/subjects"
)

// receive is a request that has come to a node: broker/pump.go, after it was read and its session verified.
func (p *process) receive(t *task) {
	if !p.serving {
		return
	}
	right := subjects.BucketOf(t.req.Name, p.count)
	if t.hops == 0 && t.bucket != right {
		p.answer(t, p.moved())
		return
	}
	t.bucket = right
	s := p.shardOf(right)
	s.put(func() {
		c := s.cell(t.bucket)
		if c == nil {
			p.answer(t, noPrimary())
			return
		}
		s.request(t, s.touch(c))
	})
}

// request is shard.request of broker/cell.go.
func (s *shard) request(t *task, c *cell) {
	t.in.Req = &t.req
	if t.req.Op == subjects.OpAcquire {
		t.in.Key = s.p.w.rnd.Uint64() | 1
		if c.Turned() == replicated.Taken && s.p.live < s.p.state.Settings.MinQuorum {
			s.p.answer(t, noPrimary())
			return
		}
	}
	switch c.Request(s.now, &t.in, nil) {
	case replicated.Taken:
		s.p.w.stats.Requests++
		if s.closed.Has(t.in.Zone, t.in.Session.Conn) {
			c.Tell(s.now, &bucket.Input{Kind: bucket.Disconnect, Zone: t.in.Zone, Conn: t.in.Session.Conn})
		}
	case replicated.Elsewhere:
		s.elsewhere(t, c)
	case replicated.Misplaced:
		right := subjects.BucketOf(t.req.Name, c.Table().Buckets())
		if t.hops == 0 {
			s.p.answer(t, s.p.moved())
			return
		}
		t.bucket = right
		s.p.receive(t)
	case replicated.Full:
		s.p.answer(t, noPrimary())
	case replicated.Later:
		s.park(t, c)
	}
}

func (s *shard) elsewhere(t *task, c *cell) {
	view := c.Chain().View()
	node := view.Primary().Node
	switch {
	case s.p.gone[node]:
		s.park(t, c)
	case t.hops == 0:
		s.p.answer(t, s.p.moved())
	case t.hops > maxHops:
		s.p.answer(t, noPrimary())
	default:
		next := *t
		next.hops, next.parked = t.hops+1, 0
		s.p.m.others(func(o *machine) {
			if o.p.number == node {
				s.p.w.send(s.p.m, o, "forward", func(q *process) {
					t := next
					q.receive(&t)
				})
			}
		})
	}
}

func (s *shard) park(t *task, c *cell) {
	now := s.now.Boot
	if t.parked == 0 {
		t.parked = now + parkTime
	}
	if t.parked <= now {
		s.p.answer(t, noPrimary())
		return
	}
	c.parked = append(c.parked, t)
	c.until, c.why = c.parked[0].parked, c.Turned()
}

func (s *shard) unpark(c *cell) {
	if len(c.parked) == 0 {
		return
	}
	if s.now.Boot < c.until && s.orphaned(c) {
		c.why = c.Turned()
		return
	}
	again := c.parked
	c.parked, c.until = nil, 0
	for _, t := range again {
		s.request(t, c)
	}
}

func (s *shard) orphaned(c *cell) bool {
	switch c.Turned() {
	case replicated.Later:
		return true
	case replicated.Elsewhere:
		view := c.Chain().View()
		return s.p.gone[view.Primary().Node]
	}
	return false
}

// answer is shard.refuse: what a node says without a bucket.
func (p *process) answer(t *task, body subjects.Body) { p.w.reply(p.m, t.in.Zone, t.in.Reply, body) }

func noPrimary() *subjects.Refusal {
	return &subjects.Refusal{Code: 503, Reason: subjects.ReasonUnavailable}
}

// moved says where to ask instead.
func (p *process) moved() *subjects.Refusal {
	m := p.bucketMap()
	return &subjects.Refusal{Code: 421, Reason: subjects.ReasonMoved, Map: &m}
}
