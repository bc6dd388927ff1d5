package broker

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/opencluster/oclocks/bucket"
	"github.com/opencluster/oclocks/bucket/replicated"
	"github.com/opencluster/oclocks/subjects"
)

// gather asks those of this node's buckets that it is primary of about one request that concerns all buckets. Each shard
// hands in the shares of its cells in the step phase and reports once in the perform phase; each share reports when what it
// tells is confirmed. The last report calls done.
type gather struct {
	zone    *zone
	op      subjects.Op
	buckets int       // how many there are
	wanted  bucketSet // those that are asked; nil: all
	limit   int       // list: records on a page
	done    func(g *gather, scratch []byte) []byte
	pending atomic.Int32

	mu      sync.Mutex
	shares  []*share
	refusal *subjects.Refusal // a shard takes no more requests
}

// share is what one bucket said.
type share struct {
	g      *gather
	bucket uint32
	lost   bool // it will never be confirmed: the bucket has to be asked again

	refusal  *subjects.Refusal
	released int
	kept     subjects.KeptBucket
	recs     []subjects.Record
	through  string
	done     bool
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

// each feeds a request for every bucket to one of them, if this node is the one to be asked about it. Who only looks may
// do so too while no more changes are taken.
func (s *shard) each(t *task, c *cell) {
	g, number := t.gather, c.Number()
	if g.wanted != nil && !g.wanted.has(number) {
		return
	}
	if turned := c.Turned(); turned != replicated.Taken && (turned != replicated.Full || g.op == subjects.OpSessionClose) {
		return // another node is asked, or nobody can answer: then it is not covered
	}
	if g.op != subjects.OpKeep && int(c.Table().Buckets()) != g.buckets {
		return // it is about to be split in two, or has just been
	}
	s.touch(c)
	one := &share{g: g, bucket: number}
	switch g.op {
	case subjects.OpKeep:
		count, hash, known, ended := c.Table().Keep(s.now, t.zone.name, t.in.Session, t.req.Beat)
		if !known {
			return
		}
		one.kept = subjects.KeptBucket{Bucket: number, Epoch: c.Table().Term().Epoch, Count: count, Hash: hash}
		one.refusal = ended
	case subjects.OpList:
		one.recs, one.through, one.done = c.Table().List(t.zone.name, &t.req, s.now)
	case subjects.OpSessionClose:
		t.in.Req = &t.req
		if c.Request(s.now, &t.in, one.take) != replicated.Taken {
			return
		}
	}
	g.add(one)
	c.Wait(one)
}

// shareReply stands for the reply subject in a request for every bucket. What one bucket says is not the answer, so nothing
// is published there, also not by a primary that has taken over and answers again.
const shareReply = "-"

// take keeps the reply to a request for every bucket; the other effects go their own way.
func (one *share) take(e *bucket.Effect) (other bool) {
	if e.Kind != bucket.Reply || e.To != shareReply {
		return true
	}
	switch body := e.Body.(type) {
	case *subjects.SessionClosed:
		one.released = body.Released
	case *subjects.Refusal:
		one.refusal = body
	}
	return false
}

// add counts a bucket that was asked; its share is still to be confirmed.
func (g *gather) add(one *share) {
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
	one.lost = lost
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

// part is what some buckets have said, each for itself and confirmed.
type part struct {
	buckets  int // how many there were
	covered  bucketSet
	refusal  *subjects.Refusal // the whole request is refused
	released int
	page     *subjects.Page
}

// part puts the shares together. It is called by done.
func (g *gather) part() *part {
	p := &part{buckets: g.buckets, covered: newBucketSet(g.buckets), refusal: g.refusal}
	merge := pageMerge{limit: g.limit}
	for _, one := range g.shares {
		if one.lost {
			continue
		}
		p.covered.add(one.bucket)
		p.released += one.released
		if one.refusal != nil && p.refusal == nil {
			p.refusal = one.refusal
		}
		if g.op == subjects.OpList {
			merge.add(one.recs, one.through, one.done)
		}
	}
	if g.op == subjects.OpList {
		p.page = merge.page()
	}
	return p
}

// keep answers a keep-alive for the buckets that this node is primary of. On the subject of all nodes those answer that hold
// something for the session, and the one that was chosen by the group of the nodes if it holds nothing: so there always is
// an answer, and it says the truth.
func (z *zone) keep(t *task, addr subjects.Address, group bool) {
	kept := subjects.Kept{Node: z.d.node, Beat: t.req.Beat, Lease: t.in.Session.Lease}
	reply, everybody := t.in.Reply, addr.Path == subjects.Simple && !z.d.alone()
	z.scatter(&t.in, &t.req, t.size, &gather{zone: z, op: subjects.OpKeep, done: func(g *gather, scratch []byte) []byte {
		known, refusal := g.addUp(&kept)
		if everybody && (known || refusal != nil) == group {
			return scratch
		}
		if refusal != nil {
			return z.answer(subjects.OpKeep, reply, refusal, scratch)
		}
		return z.answer(subjects.OpKeep, reply, &kept, scratch)
	}})
}

// addUp fills in what a session has, and says whether any bucket knows the session. A bucket whose share is lost is not told
// of: nothing is known about its locks.
func (g *gather) addUp(kept *subjects.Kept) (known bool, refusal *subjects.Refusal) {
	refusal = g.refusal
	kept.Buckets = []subjects.KeptBucket{}
	for _, one := range g.shares {
		known = true
		switch {
		case one.lost:
		case one.refusal != nil:
			refusal = cmp.Or(refusal, one.refusal)
		case one.kept.Count > 0:
			kept.Count += one.kept.Count
			kept.Hash ^= one.kept.Hash
			kept.Buckets = append(kept.Buckets, one.kept)
		}
	}
	slices.SortFunc(kept.Buckets, func(a, b subjects.KeptBucket) int { return cmp.Compare(a.Bucket, b.Bucket) })
	return known, refusal
}
