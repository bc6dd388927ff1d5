package broker

import (
	"context"
	"time"

	"github.com/opencluster/oclocks/bucket"
	"github.com/opencluster/oclocks/subjects"
)

const (
	// collectTime is how long a request that concerns all buckets may take; a fail-over of some of them fits into it.
	collectTime = 2 * time.Second

	// askTime is how long one round of questions may take; a node that is silent for longer is asked again, or its successor.
	askTime = 600 * time.Millisecond

	// againTime is the pause before the next round.
	againTime = 40 * time.Millisecond

	// maxAsking is how many requests of one zone may wait for other nodes here; one more is refused.
	maxAsking = 64
)

// ask answers a request that needs other nodes, on a goroutine of its own.
func (z *zone) ask(t *task) *subjects.Refusal {
	if t.req.Op == subjects.OpList {
		if _, refusal := readPageMark(t.req.After); refusal != nil {
			return refusal
		}
	}
	if z.asking.Add(1) > maxAsking {
		z.asking.Add(-1)
		return overloaded()
	}
	in, req, size, reply := t.in, t.req, t.size, t.in.Reply
	in.Reply, in.Req = shareReply, nil
	t.free()
	z.d.helpers.Go(func() {
		defer z.asking.Add(-1)
		ctx, cancel := z.d.working(collectTime)
		defer cancel()
		if req.Op == subjects.OpCluster {
			z.answer(req.Op, reply, z.cluster(ctx, &req), nil)
			return
		}
		z.answer(req.Op, reply, z.collect(ctx, &in, &req, size), nil)
	})
	return nil
}

// working is a context that ends after a time, or with the daemon. It is for goroutines of helpers.
func (d *Daemon) working(limit time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	d.helpers.Go(func() {
		select {
		case <-d.over:
			cancel()
		case <-ctx.Done():
		}
	})
	return ctx, cancel
}

// collect asks all buckets, wherever their primaries are.
func (z *zone) collect(ctx context.Context, in *bucket.Input, req *subjects.Request, size int) subjects.Body {
	c := collect{
		limit: int(req.Limit), pause: againTime, buckets: z.d.buckets, primaries: z.d.primariesOf,
		ask: func(ctx context.Context, node uint64, wanted bucketSet) *part {
			if node == z.d.number {
				return z.askOwn(ctx, in, req, size, wanted)
			}
			return z.d.links.ask(ctx, node, &question{zone: z.name, in: in, req: req, wanted: wanted})
		},
	}
	if refusal := c.run(ctx); refusal != nil {
		return refusal
	}
	if req.Op != subjects.OpList {
		return &subjects.SessionClosed{Released: c.released}
	}
	page := c.page.page()
	fit(page, nil, maxPage)
	return page
}

// primariesOf says which node is to be asked about which of the buckets. Those that nobody can be asked about now are missing.
func (d *Daemon) primariesOf(wanted bucketSet) map[uint64]bucketSet {
	nodes := make(map[uint64]bucketSet)
	views := d.state.Load().Views
	for number := range views {
		v := &views[number]
		if v.Epoch == 0 || !wanted.has(uint32(number)) {
			continue
		}
		node := v.Primary().Node
		if d.peers.gone(node) {
			continue // its successor is being found
		}
		if nodes[node] == nil {
			nodes[node] = newBucketSet(len(views))
		}
		nodes[node].add(uint32(number))
	}
	return nodes
}

// askOwn asks those of this node's buckets.
func (z *zone) askOwn(ctx context.Context, in *bucket.Input, req *subjects.Request, size int, wanted bucketSet) *part {
	answer := make(chan *part, 1)
	z.gather(in, req, size, wanted, func(p *part) { answer <- p })
	select {
	case p := <-answer:
		return p
	case <-ctx.Done():
		return nil
	}
}

// gather asks those of the wanted buckets that this node is primary of. done is called once, and must not wait; never if
// the daemon ends before.
func (z *zone) gather(in *bucket.Input, req *subjects.Request, size int, wanted bucketSet, done func(p *part)) {
	own := *req
	after, refusal := readPageMark(req.After)
	if refusal != nil {
		done(&part{refusal: refusal})
		return
	}
	own.After = after
	z.scatter(in, &own, size, &gather{zone: z, op: req.Op, buckets: z.d.buckets(), wanted: wanted, limit: int(req.Limit),
		done: func(g *gather, scratch []byte) []byte {
			done(g.part())
			return scratch
		}})
}

// collect is one request that concerns all buckets. In each round every bucket that has not answered yet is asked, at the
// node that is its primary then, and nowhere else. What comes after its round does not count, so nothing counts twice. When
// the number of buckets is doubled meanwhile it begins anew, because locks have moved then.
type collect struct {
	missing  bucketSet // buckets that have not answered
	of       int       // so many
	page     pageMerge
	released int

	limit     int           // records on a page
	pause     time.Duration // before the next round
	buckets   func() int
	primaries func(wanted bucketSet) map[uint64]bucketSet
	ask       func(ctx context.Context, node uint64, wanted bucketSet) *part // nil: no answer in time
}

// run asks until every bucket has answered.
func (c *collect) run(ctx context.Context) *subjects.Refusal {
	for {
		if n := c.buckets(); n != c.of {
			c.of, c.missing, c.page, c.released = n, allBuckets(n), pageMerge{limit: c.limit}, 0
		}
		if refusal := c.round(ctx); refusal != nil {
			return refusal
		}
		if c.missing.count() == 0 && c.of == c.buckets() {
			return nil
		}
		select {
		case <-time.After(c.pause):
		case <-ctx.Done():
			return noPrimary()
		}
	}
}

func (c *collect) round(ctx context.Context) *subjects.Refusal {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	asked := c.primaries(c.missing)
	type answer struct {
		wanted bucketSet
		*part
	}
	answers := make(chan answer, len(asked))
	for node, wanted := range asked { // order: all are asked at once
		go func() { answers <- answer{wanted, c.ask(ctx, node, wanted)} }()
	}
	var refusal *subjects.Refusal
	for range asked {
		a := <-answers
		if a.part == nil {
			continue
		}
		if r := c.take(a.part, a.wanted); r != nil && refusal == nil {
			refusal = r
		}
	}
	return refusal
}

// take takes in what some buckets said.
func (c *collect) take(p *part, wanted bucketSet) *subjects.Refusal {
	if p.refusal != nil {
		return p.refusal
	}
	if p.buckets != c.of || !p.covered.within(wanted) {
		return nil // not an answer to what was asked
	}
	if p.page != nil {
		if refusal := c.page.addPage(p.page); refusal != nil {
			return nil // no page of a node of this version: as if it had not answered
		}
	}
	c.missing.remove(p.covered)
	c.released += p.released
	return nil
}
