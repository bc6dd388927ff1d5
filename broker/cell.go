package broker

import (
	"math"
	"time"

	"github.com/opencluster/oclocks/bucket"
	"github.com/opencluster/oclocks/bucket/replicated"
	"github.com/opencluster/oclocks/subjects"
)

// cell is one bucket on this node, as its shard sees it.
type cell struct {
	*replicated.Bucket
	at      int                     // in the shard's cells
	usage   map[string]bucket.Usage // by zone, as counted
	touched bool                    // had an input in this batch
	later   bool                    // it could not be split in this batch
	parked  []*task                 // requests that came while nobody could answer for the bucket, in order
	until   int64                   // when the oldest of them is given up, boot time in nanoseconds
	why     replicated.Turned       // what kept the newest of them from its turn
	sync    syncSample
}

// cell is the cell of a bucket of this shard; nil if the bucket has not begun here.
func (s *shard) cell(number uint32) *cell {
	if slot := int(number) / len(s.d.shards); slot < len(s.slots) {
		return s.slots[slot]
	}
	return nil
}

// touch tells a cell the time before its first input in a batch, and has it take part in the round.
func (s *shard) touch(c *cell) *cell {
	if !c.touched {
		c.touched = true
		s.touched = append(s.touched, c)
		c.Tick(s.now)
	}
	return c
}

// request feeds one request to one bucket, or finds out where it belongs.
func (s *shard) request(t *task, c *cell) {
	t.in.Req = &t.req
	if t.req.Op == subjects.OpAcquire {
		t.in.Key = s.keys.next()
		if c.Turned() == replicated.Taken && s.d.lacksQuorum() {
			s.refuse(t, tooFewNodes())
			return
		}
	}
	t.in.HoldsFull, t.in.WaitersFull, t.in.SessionsFull = t.zone.full() // every operation can bring a new session
	switch c.Request(s.now, &t.in, t.count) {
	case replicated.Taken:
		if s.closed.Has(t.zone.name, t.in.Session.Conn) {
			// The connection's end was seen before the session's first request in this bucket.
			c.Tell(s.now, &bucket.Input{Kind: bucket.Disconnect, Zone: t.zone.name, Conn: t.in.Session.Conn})
		}
		s.finished = append(s.finished, t)
	case replicated.Elsewhere:
		s.elsewhere(t, c)
	case replicated.Misplaced:
		s.misplaced(t, c)
	case replicated.Full:
		s.refuse(t, overloaded())
	case replicated.Later:
		s.park(t, c)
	}
}

// count counts a refusal among the effects of a request; it takes none away.
func (t *task) count(e *bucket.Effect) bool {
	if _, refused := e.Body.(*subjects.Refusal); refused && e.To == t.in.Reply {
		t.zone.stats.refused(t.req.Op)
	}
	return true
}

// elsewhere sends a request to the bucket's primary: the caller himself, if he chose the bucket's subject, so that he learns
// where to ask; the request, if he left it to the broker.
func (s *shard) elsewhere(t *task, c *cell) {
	view := c.Chain().View()
	node := view.Primary().Node
	switch {
	case s.d.peers.gone(node):
		s.park(t, c) // its successor is being found
	case t.hops == 0:
		s.refuse(t, t.zone.moved(c.Number()))
	case t.hops > maxHops:
		s.refuse(t, noPrimary())
	case t.hops > 1 && s.linger(t):
	default:
		t.forward(node)
		s.finished = append(s.finished, t)
	}
}

const (
	lingerTime = 20 * time.Millisecond // longer than it takes until a committed view is known everywhere
	lingerStep = 2 * time.Millisecond
)

// linger puts a request off that another node has passed on to this one, if that was a moment ago: one of the two has not
// heard yet who is the primary now, and they would pass it to and fro.
func (s *shard) linger(t *task) bool {
	if t.lingers == 0 {
		t.lingers = s.now.Boot + int64(lingerTime)
	}
	if s.now.Boot >= t.lingers {
		return false
	}
	time.AfterFunc(lingerStep, func() {
		if !s.queue.put(t) {
			t.zone.answer(t.req.Op, t.in.Reply, overloaded(), nil)
		}
	})
	return true
}

// misplaced sends a request on whose bucket was split since it was queued: as elsewhere does.
func (s *shard) misplaced(t *task, c *cell) {
	right := subjects.BucketOf(t.req.Name, c.Table().Buckets())
	if t.hops == 0 {
		s.refuse(t, t.zone.misplaced(right, c.Number()))
		return
	}
	t.bucket = right
	if !s.d.shardOf(right).queue.put(t) {
		s.refuse(t, overloaded())
	}
}

// due is when the cell wants to be touched without an input.
func (c *cell) due(now int64) int64 {
	next := c.Next(now)
	if c.later {
		next = now
	}
	if len(c.parked) == 0 {
		return next
	}
	if c.Turned() != c.why { // who can be asked without that comes with an input
		return min(next, now)
	}
	return min(next, c.until)
}

// refuse answers a request without its bucket.
func (s *shard) refuse(t *task, refusal *subjects.Refusal) {
	s.text = t.zone.answer(t.req.Op, t.in.Reply, refusal, s.text)
	s.finished = append(s.finished, t)
}

func noPrimary() *subjects.Refusal {
	return &subjects.Refusal{Code: 503, Reason: subjects.ReasonUnavailable, RetryAfter: 100 * time.Millisecond,
		Message: "nobody can answer for this bucket now; ask again a little later"}
}

func tooFewNodes() *subjects.Refusal {
	return &subjects.Refusal{Code: 503, Reason: subjects.ReasonUnavailable, Why: subjects.WhyMinQuorum, RetryAfter: time.Second,
		Message: "fewer nodes are there than min_quorum asks for: locks are renewed and released, but no new one is given"}
}

// never is a time that does not come.
const never = int64(math.MaxInt64)
