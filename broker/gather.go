package broker

import (
	"sync"
	"sync/atomic"

	"github.com/opencluster/oclocks/bucket"
	"github.com/opencluster/oclocks/subjects"
)

// gather collects what the shards say to one request that concerns every bucket. Each shard hands in its part in the
// step phase and reports in the perform phase, after its changes are committed; the last one to report answers.
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
}

// each feeds a request for every bucket to one of them.
func (s *shard) each(t *task, number uint32) {
	g, table := t.gather, s.table(number)
	switch g.op {
	case subjects.OpKeep:
		count, hash, _, ended := table.Keep(s.now, t.zone.name, t.in.Session, t.req.Beat)
		g.addKept(count, hash, ended)
	case subjects.OpList:
		recs, through, done := table.List(t.zone.name, &t.req, s.now)
		g.addPage(recs, through, done)
	case subjects.OpSessionClose:
		first := len(s.out.Effects)
		s.request(t, number)
		s.out.Effects = g.takeReplies(s.out.Effects, first)
	}
}

func (g *gather) addKept(count int, hash uint64, ended *subjects.Refusal) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.kept.Count += count
	g.kept.Hash ^= hash
	if ended != nil && g.refusal == nil {
		g.refusal = ended
	}
}

func (g *gather) addPage(recs []subjects.Record, through string, done bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.page.add(recs, through, done)
}

// takeReplies removes the replies among effects[first:] and adds them up; the other effects stay.
func (g *gather) takeReplies(effects []bucket.Effect, first int) []bucket.Effect {
	g.mu.Lock()
	defer g.mu.Unlock()
	kept := effects[:first]
	for _, e := range effects[first:] {
		if e.Kind != bucket.Reply || e.To != g.reply {
			kept = append(kept, e)
			continue
		}
		switch body := e.Body.(type) {
		case *subjects.SessionClosed:
			g.released += body.Released
		case *subjects.Refusal:
			g.refusal = body
		}
	}
	return kept
}

// skip takes the place of a shard that could not take its part: the whole request is refused, since it takes effect
// whole or not at all (session-close: whole for each bucket, and repeatable).
func (g *gather) skip(node string, scratch []byte) []byte {
	g.mu.Lock()
	g.refusal = overloaded()
	g.mu.Unlock()
	return g.report(node, scratch)
}

// report is called once for each shard, after its commit; the last call answers. It returns the scratch.
func (g *gather) report(node string, scratch []byte) []byte {
	if g.pending.Add(-1) > 0 {
		return scratch
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	var body subjects.Body
	switch {
	case g.refusal != nil:
		body = g.refusal
	case g.op == subjects.OpKeep:
		g.kept.Node = node
		body = &g.kept
	case g.op == subjects.OpList:
		page := g.page.page()
		scratch = fit(page, scratch, maxPage)
		body = page
	default:
		body = &subjects.SessionClosed{Released: g.released}
	}
	return g.zone.answer(g.op, g.reply, body, scratch)
}
