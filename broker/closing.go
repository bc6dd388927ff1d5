package broker

import (
	"github.com/opencluster/oclocks/bucket"
)

// closeAgain tells a bucket that has become this node's of the connections that were closed lately.
func (s *shard) closeAgain(number uint32) {
	if s.closed.Empty() {
		return
	}
	s.queue.put(&task{kind: taskCall, call: func(s *shard) {
		c := s.cell(number)
		if c == nil {
			return
		}
		s.touch(c)
		s.closed.Again(s.now.Boot, func(zone string, conn bucket.Conn) {
			c.Tell(s.now, &bucket.Input{Kind: bucket.Disconnect, Zone: zone, Conn: conn})
		})
	}})
}
