package sim

import (
	"github.com/opencluster/oclocks/broker/parking"
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
	if t.trip.Hops == 0 && t.bucket != right {
		p.answer(t, p.moved())
		return
	}
	t.bucket = right
	p.shardOf(right).queue(t)
}

// queue puts a request into the shard's queue, which has no bounds here and no turns of zones.
func (s *shard) queue(t *task) { s.put(s.due(t)) }

// due is a request's turn.
func (s *shard) due(t *task) func() {
	return func() {
		c := s.cell(t.bucket)
		if c == nil {
			s.p.answer(t, noPrimary())
			return
		}
		s.request(t, s.touch(c))
	}
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
	turned := c.Request(s.now, &t.in, nil)
	if turned != replicated.Taken {
		s.turn(t, c, turned)
		return
	}
	s.p.w.stats.Requests++
	if s.closed.Has(t.in.Zone, t.in.Session.Conn) {
		c.Tell(s.now, &bucket.Input{Kind: bucket.Disconnect, Zone: t.in.Zone, Conn: t.in.Session.Conn})
	}
}

// turn is shard.turn of broker/park.go.
func (s *shard) turn(t *task, c *cell, turned replicated.Turned) {
	p := s.p
	switch s.lot.Turn(s.now.Boot, &c.parked, t, s.standing(c, turned)) {
	case parking.Parked:
	case parking.Forward:
		view := c.Chain().View()
		p.forward(t, view.Primary().Node)
	case parking.Linger:
		p.timer(int64(parking.LingerStep), func() { s.queue(t) })
	case parking.Again:
		t.bucket = subjects.BucketOf(t.req.Name, c.Table().Buckets())
		p.shardOf(t.bucket).queue(t)
	case parking.Moved, parking.Misplaced:
		p.answer(t, p.moved())
	case parking.NoPrimary, parking.Overloaded:
		p.answer(t, noPrimary())
	}
}

// standing is shard.standing.
func (s *shard) standing(c *cell, turned replicated.Turned) parking.Bucket {
	b := parking.Bucket{Turned: turned}
	if turned == replicated.Elsewhere {
		view := c.Chain().View()
		b.Gone = s.p.gone[view.Primary().Node]
	}
	return b
}

// forward passes a request on as a message, of which the network may make two.
func (p *process) forward(t *task, node uint64) {
	next := *t
	next.trip = parking.Trip{Hops: t.trip.Hops + 1}
	p.m.others(func(o *machine) {
		if o.p.number == node {
			p.w.send(p.m, o, "forward", func(q *process) {
				t := next
				q.receive(&t)
			})
		}
	})
}

// unpark is shard.unpark: what is given back comes first in the queue.
func (s *shard) unpark(c *cell) {
	if c.parked.Len() == 0 {
		return
	}
	back, over := s.lot.Look(s.now.Boot, &c.parked, s.standing(c, c.Turned()))
	if len(back) > 0 {
		again := make([]func(), 0, len(back)+len(s.tasks))
		for _, t := range back {
			again = append(again, s.due(t))
		}
		s.tasks = append(again, s.tasks...)
		s.ring()
	}
	for _, t := range over {
		s.p.answer(t, noPrimary())
	}
	clear(over)
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
