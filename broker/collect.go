package broker

import (
	"context"
	"time"

	"github.com/opencluster/oclocks/broker/edge"
	"github.com/opencluster/oclocks/broker/natsd"
	"github.com/opencluster/oclocks/bucket"
	"github.com/opencluster/oclocks/subjects"
)

// maxPage is the size of a page in bytes above which it is cut: with its subject it must fit into a message.
const maxPage = natsd.MaxPayload - 16<<10

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
		if _, refusal := edge.ReadPageMark(t.req.After); refusal != nil {
			return refusal
		}
	}
	if z.asking.Add(1) > maxAsking {
		z.asking.Add(-1)
		return overloaded()
	}
	in, req, size, reply := t.in, t.req, t.size, t.in.Reply
	in.Reply, in.Req = edge.ShareReply, nil
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
		Collect: edge.Collect{Limit: int(req.Limit)}, pause: againTime, buckets: z.d.buckets, primaries: z.d.primariesOf,
		ask: func(ctx context.Context, node uint64, wanted edge.BucketSet) *edge.Part {
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
		return &subjects.SessionClosed{Released: c.Released()}
	}
	page := c.Page()
	edge.Fit(page, nil, maxPage)
	return page
}

// primariesOf says which node is to be asked about which of the buckets.
func (d *Daemon) primariesOf(wanted edge.BucketSet) map[uint64]edge.BucketSet {
	return edge.Primaries(d.state.Load().Views, wanted, d.peers.gone)
}

// askOwn asks those of this node's buckets.
func (z *zone) askOwn(ctx context.Context, in *bucket.Input, req *subjects.Request, size int, wanted edge.BucketSet) *edge.Part {
	answer := make(chan *edge.Part, 1)
	z.gather(in, req, size, wanted, func(p *edge.Part) { answer <- p })
	select {
	case p := <-answer:
		return p
	case <-ctx.Done():
		return nil
	}
}

// gather asks those of the wanted buckets that this node is primary of. done is called once, and must not wait; never if
// the daemon ends before.
func (z *zone) gather(in *bucket.Input, req *subjects.Request, size int, wanted edge.BucketSet, done func(p *edge.Part)) {
	own := *req
	after, refusal := edge.ReadPageMark(req.After)
	if refusal != nil {
		done(&edge.Part{Refusal: refusal})
		return
	}
	own.After = after
	z.scatter(in, &own, size, &gather{op: req.Op, buckets: z.d.buckets(), wanted: wanted, limit: int(req.Limit), done: done})
}

// collect is one request that concerns all buckets, and how other nodes are asked.
type collect struct {
	edge.Collect

	pause     time.Duration // before the next round
	buckets   func() int
	primaries func(wanted edge.BucketSet) map[uint64]edge.BucketSet
	ask       func(ctx context.Context, node uint64, wanted edge.BucketSet) *edge.Part // nil: no answer in time
}

// run asks until every bucket has answered.
func (c *collect) run(ctx context.Context) *subjects.Refusal {
	for {
		c.Begin(c.buckets())
		if refusal := c.round(ctx); refusal != nil {
			return refusal
		}
		if c.Whole(c.buckets()) {
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
	asked := c.primaries(c.Missing())
	type answer struct {
		wanted edge.BucketSet
		*edge.Part
	}
	answers := make(chan answer, len(asked))
	for node, wanted := range asked { // order: all are asked at once
		go func() { answers <- answer{wanted, c.ask(ctx, node, wanted)} }()
	}
	var refusal *subjects.Refusal
	for range asked {
		a := <-answers
		if a.Part == nil {
			continue
		}
		if r := c.Take(a.Part, a.wanted); r != nil && refusal == nil {
			refusal = r
		}
	}
	return refusal
}
