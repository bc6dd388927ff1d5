package broker

import (
	"time"

	"github.com/opencluster/oclocks/bucket"
)

// maxClosed is how many closed connections a shard remembers.
const maxClosed = 16 << 10

// closedConns remembers connections that clients closed lately: a request that was on its way when its connection's end
// was told must not make a hold that only silence would end.
type closedConns struct {
	until map[closedConn]int64
	swept int64 // when those whose time is over were looked for last
}

type closedConn struct {
	zone string
	conn bucket.Conn
}

// add remembers a connection for a while after now (boot time, nanoseconds). When too many are remembered, those whose
// time is over are forgotten, once a second, and if there are none the new one is not remembered: then silence ends its sessions.
func (c *closedConns) add(zone string, conn bucket.Conn, now int64) {
	if c.until == nil {
		c.until = make(map[closedConn]int64)
	}
	if len(c.until) >= maxClosed {
		if now-c.swept < int64(time.Second) {
			return // or a flood of short connections would have all of them looked at each time
		}
		c.swept = now
		for k, t := range c.until { // order: each is judged by itself
			if t <= now {
				delete(c.until, k)
			}
		}
		if len(c.until) >= maxClosed {
			return
		}
	}
	c.until[closedConn{zone, conn}] = now + int64(time.Minute)
}

func (c *closedConns) has(zone string, conn bucket.Conn) bool {
	if len(c.until) == 0 || conn.Server == "" {
		return false
	}
	_, ok := c.until[closedConn{zone, conn}]
	return ok
}

// closeAgain tells a bucket that has become this node's of the connections that were closed lately: its primary before may
// not have lived to hear of them, and what it heard is not in the history.
func (s *shard) closeAgain(number uint32) {
	if len(s.closed.until) == 0 {
		return
	}
	s.queue.put(&task{kind: taskCall, call: func(s *shard) {
		c := s.cell(number)
		if c == nil {
			return
		}
		s.touch(c)
		for k, until := range s.closed.until { // order: each ends its own sessions
			if until > s.now.Boot {
				c.Tell(s.now, &bucket.Input{Kind: bucket.Disconnect, Zone: k.zone, Conn: k.conn})
			}
		}
	}})
}
