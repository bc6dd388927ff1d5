package broker

import (
	"time"

	"github.com/opencluster/oclocks/broker/parking"
	"github.com/opencluster/oclocks/bucket/replicated"
	"github.com/opencluster/oclocks/subjects"
)

// turn does with a request what is to be done when its bucket has not taken it.
func (s *shard) turn(t *task, c *cell, turned replicated.Turned) {
	switch s.lot.Turn(s.now.Boot, &c.parked, t, s.standing(c, turned)) {
	case parking.Parked:
	case parking.Forward:
		view := c.Chain().View()
		s.forward(t, view.Primary().Node)
	case parking.Linger:
		s.linger(t)
	case parking.Again:
		t.bucket = subjects.BucketOf(t.req.Name, c.Table().Buckets())
		if !s.d.shardOf(t.bucket).queue.put(t) {
			s.refuse(t, overloaded())
		}
	case parking.Moved:
		s.refuse(t, t.zone.moved(c.Number()))
	case parking.Misplaced:
		s.refuse(t, t.zone.misplaced(subjects.BucketOf(t.req.Name, c.Table().Buckets()), c.Number()))
	case parking.NoPrimary:
		s.refuse(t, noPrimary())
	case parking.Overloaded:
		s.refuse(t, overloaded())
	}
}

// standing is what this node knows of a bucket that says turned.
func (s *shard) standing(c *cell, turned replicated.Turned) parking.Bucket {
	b := parking.Bucket{Turned: turned}
	if turned == replicated.Elsewhere {
		view := c.Chain().View()
		b.Gone = s.d.peers.gone(view.Primary().Node)
	}
	return b
}

func (s *shard) linger(t *task) {
	if !t.zone.aside.put(t) {
		s.refuse(t, overloaded())
		return
	}
	time.AfterFunc(parking.LingerStep, func() {
		t.zone.aside.take(t)
		t.again()
	})
}

// unpark takes from a bucket the parked requests that stand there no longer. Those that are given back to the queue come first in
// their zones, and the zones take turns: however many there are of one, another's do not wait for them.
func (s *shard) unpark(c *cell) {
	if c.parked.Len() == 0 {
		return
	}
	back, over := s.lot.Look(s.now.Boot, &c.parked, s.standing(c, c.Turned()))
	for _, t := range s.queue.giveBack(back) { // their zone has gone: nobody waits for an answer
		s.forgo(t, passDone)
	}
	s.giveUp(over)
}

// dismiss refuses the parked requests, and those that would be parked from now on: the node stops.
func (s *shard) dismiss(c *cell) { s.giveUp(s.lot.Close(&c.parked)) }

func (s *shard) giveUp(over []*task) {
	for _, t := range over {
		s.refuse(t, noPrimary())
	}
	clear(over)
}
