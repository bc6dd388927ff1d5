package broker

import (
	"sync"
	"sync/atomic"

	"github.com/opencluster/oclocks/broker/edge"
	"github.com/opencluster/oclocks/bucket"
	"github.com/opencluster/oclocks/subjects"
)

// gather asks those of this node's buckets that it is primary of about one request that concerns all buckets. Each shard
// hands in the shares of its cells in the step phase and reports once in the perform phase; each share reports when what it
// tells is confirmed. The last report calls done.
type gather struct {
	zone    *zone
	op      subjects.Op
	buckets int            // how many there are
	wanted  edge.BucketSet // those that are asked; nil: all
	limit   int            // list: records on a page
	done    func(g *gather, scratch []byte) []byte
	pending atomic.Int32

	mu      sync.Mutex
	shares  []*edge.Share
	refusal *subjects.Refusal // a shard takes no more requests
}

// share is what one bucket said.
type share struct {
	g *gather
	*edge.Share
}

// scatter queues a request for all shards; done of the gather is called when they are through with it, on the goroutine of
// any of them or on the caller's. It must not wait.
func (z *zone) scatter(in *bucket.Input, req *subjects.Request, size int, g *gather) {
	shards := z.d.shards
	g.pending.Store(int32(len(shards)))
	for _, s := range shards {
		t := newTask(taskEach, z)
		t.in, t.req, t.gather, t.size = *in, *req, g, size
		if !s.queue.put(t) {
			t.free()
			g.refuse(overloaded())
			g.report(nil)
		}
	}
}

// each feeds a request for every bucket to one of them, if this node is the one to be asked about it.
func (s *shard) each(t *task, c *cell) {
	g := t.gather
	if !edge.Covers(c.Bucket, g.op, &t.in, g.wanted, g.buckets) {
		return
	}
	s.touch(c)
	if one := edge.Ask(c.Bucket, s.now, &t.in, &t.req); one != nil {
		g.add(one)
		c.Wait(&share{g, one})
	}
}

// add counts a bucket that was asked; its share is still to be confirmed.
func (g *gather) add(one *edge.Share) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shares = append(g.shares, one)
	g.pending.Add(1)
}

// refuse has the whole request refused.
func (g *gather) refuse(refusal *subjects.Refusal) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.refusal == nil {
		g.refusal = refusal
	}
}

// confirmed is called when a bucket's share is confirmed, or will never be.
func (one *share) confirmed(lost bool, scratch []byte) []byte {
	one.g.mu.Lock()
	one.Lost = lost
	one.g.mu.Unlock()
	return one.g.report(scratch)
}

// report is called once for each shard and each share. It returns the scratch.
func (g *gather) report(scratch []byte) []byte {
	if g.pending.Add(-1) > 0 {
		return scratch
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.done(g, scratch)
}
