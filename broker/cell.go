package broker

import (
	"math"
	"time"

	"github.com/opencluster/oclocks/broker/parking"
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
	parked  parking.Place[*task]    // requests that came while nobody could answer for the bucket
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
	before := c.Table().Seq()
	turned := c.Request(s.now, &t.in, t.count)
	if turned != replicated.Taken {
		s.turn(t, c, turned)
		return
	}
	if s.closed.Has(t.zone.name, t.in.Session.Conn) {
		// The connection's end was seen before the session's first request in this bucket.
		c.Tell(s.now, &bucket.Input{Kind: bucket.Disconnect, Zone: t.zone.name, Conn: t.in.Session.Conn})
	}
	if t.via != nil || t.trip.Hops > 0 && c.Table().Seq() > before {
		s.follow(t, c)
		return
	}
	s.finished = append(s.finished, t)
}

// count counts a refusal among the effects of a request; it takes none away.
func (t *task) count(e *bucket.Effect) bool {
	if _, refused := e.Body.(*subjects.Refusal); refused && e.To == t.in.Reply {
		t.zone.stats.refused(t.req.Op)
	}
	return true
}

// due is when the cell wants to be touched without an input.
func (c *cell) due(now int64) int64 {
	next := c.Next(now)
	if c.later {
		next = now
	}
	if c.parked.Len() == 0 {
		return next
	}
	return min(next, c.parked.Next(now, c.Turned()))
}

// refuse answers a request without its bucket.
func (s *shard) refuse(t *task, refusal *subjects.Refusal) {
	s.text = t.answer(t.req.Op, refusal, s.text)
	if t.via != nil {
		s.flushed(t.via)
	}
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
