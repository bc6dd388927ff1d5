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

// gather collects what the buckets say to one request that concerns all of them. Each shard hands in the parts of its
// cells in the step phase and reports once in the perform phase; each part reports when what it tells is confirmed. The
// last report answers.
type gather struct {
	zone    *zone
	op      subjects.Op
	reply   string
	pending atomic.Int32

	mu       sync.Mutex
	refusal  *subjects.Refusal
	released int
	kept     subjects.Kept
	page     pageMerge
	covered  int // buckets that have been asked
}

// each feeds a request for every bucket to one of them, if this node is the one to be asked about it.
func (s *shard) each(t *task, c *cell) {
	g := t.gather
	if c.Turned() != replicated.Taken {
		return // another node is asked, or nobody can answer: then not all are covered
	}
	s.touch(c)
	switch g.op {
	case subjects.OpKeep:
		count, hash, _, ended := c.Table().Keep(s.now, t.zone.name, t.in.Session, t.req.Beat)
		g.addKept(subjects.KeptBucket{Bucket: c.Number(), Epoch: c.Table().Term().Epoch, Count: count, Hash: hash}, ended)
	case subjects.OpList:
		recs, through, done := c.Table().List(t.zone.name, &t.req, s.now)
		g.addPage(recs, through, done)
	case subjects.OpSessionClose:
		t.in.Req = &t.req
		if c.Request(s.now, &t.in, g.takeReply) != replicated.Taken {
			return
		}
	}
	g.cover()
	c.Wait(g)
}

// cover counts a bucket that was asked; its part is still to be confirmed.
func (g *gather) cover() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.covered++
	g.pending.Add(1)
}

func (g *gather) addKept(part subjects.KeptBucket, ended *subjects.Refusal) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.kept.Count += part.Count
	g.kept.Hash ^= part.Hash
	if part.Count > 0 {
		g.kept.Buckets = append(g.kept.Buckets, part)
	}
	if ended != nil && g.refusal == nil {
		g.refusal = ended
	}
}

func (g *gather) addPage(recs []subjects.Record, through string, done bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.page.add(recs, through, done)
}

// takeReply adds up the replies to a request of every bucket; the other effects go their own way.
func (g *gather) takeReply(e *bucket.Effect) (other bool) {
	if e.Kind != bucket.Reply || e.To != g.reply {
		return true
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	switch body := e.Body.(type) {
	case *subjects.SessionClosed:
		g.released += body.Released
	case *subjects.Refusal:
		g.refusal = body
	}
	return false
}

// refuse has the whole request refused, since it takes effect whole or not at all (session-close: whole for each bucket,
// and repeatable).
func (g *gather) refuse(refusal *subjects.Refusal) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.refusal == nil {
		g.refusal = refusal
	}
}

// confirmed is called when a bucket's part is confirmed, or will never be.
func (g *gather) confirmed(lost bool, scratch []byte) []byte {
	if lost {
		g.refuse(noPrimary())
	}
	return g.report(scratch)
}

// report is called once for each shard and each part; the last call answers. It returns the scratch.
func (g *gather) report(scratch []byte) []byte {
	if g.pending.Add(-1) > 0 {
		return scratch
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	d := g.zone.d
	var body subjects.Body
	switch {
	case g.refusal != nil:
		body = g.refusal
	case g.op == subjects.OpKeep:
		g.kept.Node = d.node
		slices.SortFunc(g.kept.Buckets, func(a, b subjects.KeptBucket) int { return cmp.Compare(a.Bucket, b.Bucket) })
		body = &g.kept
	case g.covered < d.buckets():
		body = noPrimary()
	case g.op == subjects.OpList:
		page := g.page.page()
		scratch = fit(page, scratch, maxPage)
		body = page
	default:
		body = &subjects.SessionClosed{Released: g.released}
	}
	return g.zone.answer(g.op, g.reply, body, scratch)
}
