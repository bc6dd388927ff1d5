package control

import (
	"github.com/opencluster/oclocks/broker/control/desk"
	"github.com/opencluster/oclocks/broker/control/flow"
	"github.com/opencluster/oclocks/bucket/chain"
	"github.com/opencluster/oclocks/conf"
	"github.com/opencluster/oclocks/conf/shared"
	"github.com/opencluster/oclocks/internal/boottime"
)

const maxBuckets = conf.MaxBuckets

// Propose asks for a view to be committed (chain.Output.Propose). It never waits; asking again is free.
func (c *Control) Propose(bucket uint32, view chain.View) {
	if err := view.Validate(); err != nil || bucket >= c.State().Buckets() {
		// In a command with others it would have them all refused.
		c.log.Error("a copy asks for a view that cannot be one", "bucket", bucket, "view", view, "error", err)
		return
	}
	c.asksMu.Lock()
	c.asks.Add(flow.Ask{Bucket: bucket, View: view.Clone()})
	c.asksMu.Unlock()
	signal(c.asksDue)
}

// proposer has the views that the copies ask for committed (flow.Proposer).
func (c *Control) proposer() {
	timer := boottime.NewTimer()
	defer timer.Close()
	for {
		c.asksMu.Lock()
		command, at := c.asks.Next(boottime.Now())
		c.asksMu.Unlock()
		if command == nil {
			if at > 0 {
				timer.Reset(at)
			}
			select {
			case <-c.asksDue:
			case <-timer.C:
			case <-c.ctx.Done():
				return
			}
			continue
		}
		_, result, err := c.arb.Propose(c.ctx, command)
		r, known := result.(shared.Result)
		switch {
		case err != nil:
			c.log.Debug("the outcome of proposed views is not known", "error", err)
		case r.Err() != nil:
			c.log.Error("proposed views are refused", "error", r.Err())
		}
		c.asksMu.Lock()
		refused := c.asks.Done(boottime.Now(), err == nil && known, r, c.State())
		c.asksMu.Unlock()
		if len(refused) > 0 {
			c.box.notice(desk.Never{Asks: refused})
		}
	}
}

// overtaken forgets questions about views that others have made.
func (c *Control) overtaken(views []shared.BucketView) {
	c.asksMu.Lock()
	defer c.asksMu.Unlock()
	for _, v := range views {
		c.asks.Committed(v.Bucket, v.View.Epoch)
	}
}

// Sealed tells what a sealed copy has (chain.Output.Sealed). It never waits.
func (c *Control) Sealed(bucket uint32, report chain.Report) {
	c.box.with(func(in *desk.Inbox) { in.Sealed(bucket, report) })
}

func signal(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}
