package broker

import (
	"time"

	"github.com/opencluster/oclocks/bucket/replicated"
)

const (
	// parkTime is how long a request may stand at a bucket that nobody can answer for, which a fail-over explains.
	parkTime = 3 * time.Second

	// parkMost is how many requests of one zone may stand at the buckets of one shard; one more is refused.
	parkMost = 16 << 10

	// parkMostBytes bounds the size of their bodies likewise.
	parkMostBytes = 16 << 20
)

// parkedLoad is what one zone has standing at the buckets of one shard. Each zone has room of its own, so that a flood in one
// gets nobody else's request refused while a primary is being replaced.
type parkedLoad struct {
	requests int
	bytes    int
}

// park keeps a request until the bucket can be asked.
func (s *shard) park(t *task, c *cell) {
	if t.parkedUntil == 0 {
		t.parkedUntil = s.now.Boot + int64(parkTime)
	}
	load := s.parked[t.zone]
	if s.dismissed || t.parkedUntil <= s.now.Boot || load.requests >= parkMost || load.bytes+t.size > parkMostBytes {
		s.refuse(t, noPrimary())
		return
	}
	s.parked[t.zone] = parkedLoad{load.requests + 1, load.bytes + t.size}
	c.parked = append(c.parked, t)
	c.until, c.why = c.parked[0].parkedUntil, c.Turned()
}

// unpark gives the parked requests back to the queue when the bucket can be asked, and refuses those whose time is over. They
// come first in their zones, and the zones take turns: however many there are of one, another's do not wait for them.
func (s *shard) unpark(c *cell) {
	if len(c.parked) == 0 {
		return
	}
	if !s.orphaned(c) {
		for _, t := range c.parked {
			s.unload(t)
		}
		s.finished = append(s.finished, s.queue.giveBack(c.parked)...) // their zone has gone: nobody waits for an answer
		c.parked, c.until = nil, 0
		return
	}
	c.why = c.Turned() // perhaps another reason than before: until this one has gone nothing is to be done
	over := 0
	for over < len(c.parked) && c.parked[over].parkedUntil <= s.now.Boot {
		s.unload(c.parked[over])
		s.refuse(c.parked[over], noPrimary())
		over++
	}
	clear(c.parked[:over])
	if c.parked = c.parked[over:]; len(c.parked) == 0 {
		c.parked, c.until = nil, 0
		return
	}
	c.until = c.parked[0].parkedUntil
}

// unload counts a request out that stands at a bucket no longer.
func (s *shard) unload(t *task) {
	load := s.parked[t.zone]
	if load.requests == 1 {
		delete(s.parked, t.zone)
		return
	}
	s.parked[t.zone] = parkedLoad{load.requests - 1, load.bytes - t.size}
}

// orphaned says whether nobody can be asked about a bucket, as far as this node knows.
func (s *shard) orphaned(c *cell) bool {
	switch c.Turned() {
	case replicated.Later:
		return true
	case replicated.Elsewhere:
		view := c.Chain().View()
		return s.d.peers.gone(view.Primary().Node)
	}
	return false
}

// dismiss refuses the parked requests, and those that would be parked from now on: the node stops.
func (s *shard) dismiss(c *cell) {
	s.dismissed = true
	for _, t := range c.parked {
		s.unload(t)
		s.refuse(t, noPrimary())
	}
	c.parked, c.until = nil, 0
}
