package broker

import (
	"sync"
	"sync/atomic"

	"github.com/opencluster/oclocks/broker/edge"
	"github.com/opencluster/oclocks/bucket"
	"github.com/opencluster/oclocks/subjects"
)

// inquiry is a request about which those of this node's buckets are asked that it is primary of. Each shard hands in the shares of its cells in
// the step phase and reports once in the perform phase; each share reports when what it tells is confirmed.
type inquiry interface {
	found() *findings
	// over is called with the last report, by a shard with its pen, or by who has asked, whose pen may be nil (scatter's is). The
	// findings are locked.
	over(p *pen)
}

// findings are what an inquiry has found.
type findings struct {
	pending atomic.Int32 // shards that have not asked all of their cells, and shares that are not confirmed

	mu      sync.Mutex
	shares  []*edge.Share
	refusal *subjects.Refusal // a shard takes no more requests
}

func (f *findings) found() *findings { return f }

// add counts a bucket that was asked; its share is still to be confirmed.
func (f *findings) add(one *edge.Share) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.shares = append(f.shares, one)
	f.pending.Add(1)
}

// refuse has the whole request refused by a shard that takes no more, and reports for it.
func refuse(of inquiry, p *pen) {
	f := of.found()
	f.mu.Lock()
	f.refusal = overloaded()
	f.mu.Unlock()
	report(of, p)
}

// report is called once for each shard and each share.
func report(of inquiry, p *pen) {
	f := of.found()
	if f.pending.Add(-1) > 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	of.over(p)
}

// share is what one bucket said.
type share struct {
	of inquiry
	*edge.Share
}

// confirmed is called when it is, or will never be.
func (one *share) confirmed(lost bool, p *pen) {
	f := one.of.found()
	f.mu.Lock()
	one.Lost = lost
	f.mu.Unlock()
	report(one.of, p)
}

// inquire asks a cell, whose share counts when it is confirmed.
func (s *shard) inquire(c *cell, of inquiry, in *bucket.Input, req *subjects.Request) {
	s.touch(c)
	if one := edge.Ask(c.Bucket, s.now, in, req); one != nil {
		of.found().add(one)
		c.Wait(&share{of, one})
	}
}

// gather is an inquiry for a part of an answer, which another node may be waiting for.
type gather struct {
	findings
	op      subjects.Op
	buckets int            // how many there are
	wanted  edge.BucketSet // those that are asked; nil: all
	limit   int            // list: records on a page
	done    func(part *edge.Part)
}

func (g *gather) over(*pen) {
	g.done(edge.NewPart(g.op, g.buckets, g.limit, g.refusal, g.shares))
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
			refuse(g, nil)
		}
	}
}

// each feeds a request for every bucket to one of them, if this node is the one to be asked about it.
func (s *shard) each(t *task, c *cell) {
	if g := t.gather; edge.Covers(c.Bucket, g.op, &t.in, g.wanted, g.buckets) {
		s.inquire(c, g, &t.in, &t.req)
	}
}
