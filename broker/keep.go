package broker

import (
	"sync"
	"sync/atomic"

	"github.com/opencluster/oclocks/broker/edge"
	"github.com/opencluster/oclocks/bucket"
	"github.com/opencluster/oclocks/subjects"
)

// keeping are keep-alives of one zone that came together: those of a bundle, or a single one. Each shard gets one task for all of them, so a
// cell takes part in a round once for all. Each is answered by itself, as soon as what is told of it is confirmed: a bucket that waits for its
// copies keeps back nobody but those whom it knows.
type keeping struct {
	zone *zone
	all  []keepAlive

	mu sync.Mutex // guards the shares and the refusals
}

// keepAlive is one of them.
type keepAlive struct {
	of        *keeping
	in        bucket.Input
	beat      uint64
	everybody bool         // all nodes have it
	chosen    bool         // and this copy came by the group of the nodes
	pending   atomic.Int32 // shards that have not asked all of their cells, and shares that are not confirmed
	shares    []*edge.Share
	refusal   *subjects.Refusal // a shard takes no more requests
}

// newKeeping is for so many keep-alives.
func (z *zone) newKeeping(n int) *keeping { return &keeping{zone: z, all: make([]keepAlive, 0, n)} }

// add takes a keep-alive whose session is verified.
func (k *keeping) add(t *task, everybody, chosen bool) {
	k.all = append(k.all, keepAlive{of: k, in: t.in, beat: t.req.Beat, everybody: everybody, chosen: chosen})
}

// keep has all shards asked about keep-alives, which are complete.
func (z *zone) keep(k *keeping, size int) {
	shards := z.d.shards
	for i := range k.all {
		k.all[i].pending.Store(int32(len(shards)))
	}
	for _, s := range shards {
		t := newTask(taskKeep, z)
		t.keeping, t.size = k, size
		if !s.queue.put(t) {
			t.free()
			k.refuse(&z.pen)
		}
	}
	z.pen.sheaves.send()
}

// refuse has all refused by a shard that takes no more requests.
func (k *keeping) refuse(p *pen) {
	for i := range k.all {
		one := &k.all[i]
		k.mu.Lock()
		one.refusal = overloaded()
		k.mu.Unlock()
		one.report(p)
	}
}

// keepAlive asks those of the shard's cells about keep-alives that know their sessions and that this node is primary of.
func (s *shard) keepAlive(t *task) {
	k := t.keeping
	for _, c := range s.cells {
		if !edge.Answerable(c.Bucket, subjects.OpKeep) {
			continue
		}
		for i := range k.all {
			s.ask(c, &k.all[i])
		}
	}
	s.keepings = append(s.keepings, k)
	s.finished = append(s.finished, t)
}

func (s *shard) ask(c *cell, one *keepAlive) {
	if !edge.Covers(c.Bucket, subjects.OpKeep, &one.in, nil, 0) {
		return
	}
	s.touch(c)
	s.beat.Beat = one.beat
	told := edge.Ask(c.Bucket, s.now, &one.in, &s.beat)
	if told == nil {
		return
	}
	one.of.mu.Lock()
	one.shares = append(one.shares, told)
	one.of.mu.Unlock()
	one.pending.Add(1)
	c.Wait(&keptShare{one, told})
}

// keptShare is what one bucket said of a keep-alive's session.
type keptShare struct {
	*keepAlive
	told *edge.Share
}

// confirmed is called when it is, or will never be.
func (one *keptShare) confirmed(lost bool, p *pen) {
	one.of.mu.Lock()
	one.told.Lost = lost
	one.of.mu.Unlock()
	one.report(p)
}

// asked says that a shard has asked all of its cells.
func (k *keeping) asked(p *pen) {
	for i := range k.all {
		k.all[i].report(p)
	}
}

// report is called once for each shard and each share. The last one answers. On the subject of all nodes those answer that hold
// something for the session, and the one that was chosen by the group of the nodes if it holds nothing: so there always is
// an answer, and it says the truth.
func (one *keepAlive) report(p *pen) {
	if one.pending.Add(-1) > 0 {
		return
	}
	one.of.mu.Lock()
	defer one.of.mu.Unlock()
	z := one.of.zone
	p.kept = subjects.Kept{Node: z.d.node, Beat: one.beat, Lease: edge.Promise(&one.in.Session, z.d.maxLease()), Buckets: p.kept.Buckets[:0]}
	known, refusal := edge.AddUp(one.shares, one.refusal, &p.kept)
	if !edge.Answers(one.everybody, one.chosen, known || refusal != nil) {
		return
	}
	var body subjects.Body = &p.kept
	if refusal != nil {
		body = refusal
	}
	p.answer(z, subjects.OpKeep, one.in.Reply, body)
}
