package edge

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/opencluster/oclocks/bucket"
)

// maxClosed is how many closed connections are remembered.
const maxClosed = 16 << 10

// ClosedConns remembers connections that clients closed lately: a request that was on its way when its connection's end
// was told must not make a hold that only silence would end.
type ClosedConns struct {
	until map[closedConn]int64
	swept int64 // when those whose time is over were looked for last
}

type closedConn struct {
	zone string
	conn bucket.Conn
}

// Add remembers a connection for a while after now (boot time, nanoseconds). When too many are remembered, those whose
// time is over are forgotten, once a second, and if there are none the new one is not remembered: then silence ends its sessions.
func (c *ClosedConns) Add(zone string, conn bucket.Conn, now int64) {
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

// Has says whether a connection was closed lately.
func (c *ClosedConns) Has(zone string, conn bucket.Conn) bool {
	if len(c.until) == 0 || conn.Server == "" {
		return false
	}
	_, ok := c.until[closedConn{zone, conn}]
	return ok
}

// Again calls for every connection that is remembered still, in their order: a bucket that has become this node's is told of
// them. Its primary before may not have lived to hear of them, and what it heard is not in the history.
func (c *ClosedConns) Again(now int64, do func(zone string, conn bucket.Conn)) {
	if len(c.until) == 0 {
		return
	}
	all := slices.SortedFunc(maps.Keys(c.until), func(a, b closedConn) int {
		return cmp.Or(cmp.Compare(a.zone, b.zone), a.conn.Compare(b.conn))
	})
	for _, k := range all {
		if c.until[k] > now {
			do(k.zone, k.conn)
		}
	}
}

// Empty says whether none is remembered.
func (c *ClosedConns) Empty() bool { return len(c.until) == 0 }
