package control

import (
	"maps"
	"slices"
	"time"

	"github.com/opencluster/oclocks/arbiter/plan"
	"github.com/opencluster/oclocks/broker/control/flow"
	"github.com/opencluster/oclocks/bucket/chain"
	"github.com/opencluster/oclocks/conf"
	"github.com/opencluster/oclocks/conf/shared"
)

const (
	maxBuckets = conf.MaxBuckets
	maxViews   = 4096    // in one command
	maxMembers = 100_000 // of all views in one command, which is 3 MB at the most
)

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

// proposer has the views that the copies ask for committed, one command at a time.
func (c *Control) proposer() {
	for {
		c.asksMu.Lock()
		batch := c.asks.Take(maxViews, maxMembers)
		c.asksMu.Unlock()
		if len(batch) == 0 {
			select {
			case <-c.asksDue:
				continue
			case <-c.ctx.Done():
				return
			}
		}
		command := viewsCommand(batch, 0)
		_, result, err := c.arb.Propose(c.ctx, command)
		if err != nil {
			c.asksMu.Lock()
			c.asks.Unknown()
			c.asksMu.Unlock()
			c.log.Debug("the outcome of proposed views is not known", "views", len(batch), "error", err)
			if !c.pause(retryFirst) {
				return
			}
			continue
		}
		outcomes := c.outcomes(batch, result)
		c.asksMu.Lock()
		refused := c.asks.Done(outcomes)
		c.asksMu.Unlock()
		if len(refused) > 0 {
			c.box.notice(func(d *desk) { d.refused(refused) })
		}
	}
}

// viewsCommand is a command for views; term is that of the leader who has planned them, 0 if a primary asks for them.
func viewsCommand(batch []flow.Ask, term uint64) []byte {
	change := shared.ViewChange{Term: term, Views: make([]shared.BucketView, len(batch))}
	for i, q := range batch {
		change.Views[i] = shared.BucketView{Bucket: q.Bucket, View: q.View}
	}
	return shared.Command{Views: &change}.Encode()
}

// outcomes reads the result of a command. The epochs are those of now, which is after the command: that a bucket has got a
// newer view since is as good a reason why a question is settled.
func (c *Control) outcomes(batch []flow.Ask, result any) []flow.Outcome {
	r, _ := result.(shared.Result)
	if err := r.Err(); err != nil {
		c.log.Error("proposed views are refused", "views", len(batch), "error", err)
	}
	state := c.State()
	out := make([]flow.Outcome, len(batch))
	for i, q := range batch {
		out[i] = flow.Outcome{Bucket: q.Bucket, Committed: state.Views[q.Bucket].Epoch}
		_, out[i].Taken = slices.BinarySearch(r.Taken, q.Bucket)
	}
	return out
}

// overtaken forgets questions about views that others have made.
func (c *Control) overtaken(views []flow.Ask) {
	c.asksMu.Lock()
	defer c.asksMu.Unlock()
	for _, v := range views {
		c.asks.Committed(v.Bucket, v.View.Epoch)
	}
}

// Sealed tells what a sealed copy has (chain.Output.Sealed). It never waits.
func (c *Control) Sealed(bucket uint32, report chain.Report) {
	c.mu.Lock()
	if bucket < maxBuckets {
		c.reports[bucket] = report
	}
	c.mu.Unlock()
	c.box.ring()
}

// takeReports gives the newest report of each bucket since the last call, by bucket.
func (c *Control) takeReports() []plan.BucketReport {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.reports) == 0 {
		return nil
	}
	list := make([]plan.BucketReport, 0, len(c.reports))
	for _, bucket := range slices.Sorted(maps.Keys(c.reports)) {
		list = append(list, plan.BucketReport{Bucket: bucket, Report: c.reports[bucket]})
	}
	clear(c.reports)
	return list
}

// pause waits, and says false when Close has begun.
func (c *Control) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-c.ctx.Done():
		return false
	}
}

func signal(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}
