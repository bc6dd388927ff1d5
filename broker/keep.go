package broker

import (
	"github.com/opencluster/oclocks/broker/edge"
	"github.com/opencluster/oclocks/bucket"
	"github.com/opencluster/oclocks/subjects"
)

// keeping are keep-alives of one zone that came together: those of a bundle, or a single one. Each shard gets one task for all of them, so a
// cell takes part in a round once for all. Each is answered by itself, as soon as what is told of it is confirmed: a bucket that waits for its
// copies keeps back nobody but those whom it knows.
type keeping struct{ all []keepAlive }

// keepAlive is one of them.
type keepAlive struct {
	findings
	zone      *zone
	in        bucket.Input
	beat      uint64
	everybody bool // all nodes have it
	chosen    bool // and this copy came by the group of the nodes
}

// newKeeping is for so many keep-alives, which stay where they are.
func newKeeping(n int) *keeping { return &keeping{all: make([]keepAlive, 0, n)} }

// add takes a keep-alive whose session is verified.
func (k *keeping) add(t *task, everybody, chosen bool) {
	k.all = append(k.all, keepAlive{zone: t.zone, in: t.in, beat: t.req.Beat, everybody: everybody, chosen: chosen})
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
			for i := range k.all {
				refuse(&k.all[i], &z.pen)
			}
		}
	}
	z.pen.sheaves.send()
}

// keepAlive asks those of the shard's cells about keep-alives that know their sessions and that this node is primary of.
func (s *shard) keepAlive(t *task) {
	k := t.keeping
	for _, c := range s.cells {
		if !edge.Answerable(c.Bucket, subjects.OpKeep) {
			continue
		}
		for i := range k.all {
			if one := &k.all[i]; edge.Covers(c.Bucket, subjects.OpKeep, &one.in, nil, 0) {
				s.beat.Beat = one.beat
				s.inquire(c, one, &one.in, &s.beat)
			}
		}
	}
	for i := range k.all {
		s.asked = append(s.asked, &k.all[i])
	}
	s.finished = append(s.finished, t)
}

// over answers. On the subject of all nodes those answer that hold something for the session, and the one that was chosen by the group of
// the nodes if it holds nothing: so there always is an answer, and it says the truth.
func (one *keepAlive) over(p *pen) {
	z := one.zone
	p.kept = subjects.Kept{Node: z.d.node, Beat: one.beat, Lease: edge.Promise(&one.in.Session, z.d.maxLease()), Buckets: p.kept.Buckets}
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
