package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/opencluster/oclocks/client"
	"github.com/opencluster/oclocks/internal/boottime"
	"github.com/opencluster/oclocks/internal/cli/cluster"
	"github.com/opencluster/oclocks/internal/cli/live"
	"github.com/opencluster/oclocks/internal/cli/output"
	"github.com/opencluster/oclocks/internal/cli/top"
	"github.com/opencluster/oclocks/subjects"
)

// Acquire takes a lock that outlives the process, and prints the grant.
func (a *App) Acquire(ctx context.Context, spec *LockSpec) error {
	if err := spec.Validate(); err != nil {
		return err
	}
	return a.with(ctx, nil, func(ctx context.Context, c *client.Client) error {
		limit := a.Timeout
		if spec.Wait != nil {
			limit += *spec.Wait
		}
		asking, cancel := context.WithTimeoutCause(ctx, limit, errNoAnswer)
		defer cancel()
		grant, err := c.Acquire(asking, spec.request())
		switch {
		case err == nil:
			return a.Printer().Body(grant)
		case errors.Is(err, client.ErrHeld), errors.Is(err, client.ErrTimeout):
			e := &notAcquired{name: spec.Name, code: CodeNotAcquired, record: a.lookUp(ctx, c, spec.Name)}
			if !spec.try() && spec.Wait != nil {
				e.wait = output.Span(*spec.Wait)
			}
			return e
		}
		return &opError{op: subjects.OpAcquire, name: spec.Name, err: err}
	})
}

// Release releases a hold by its key.
func (a *App) Release(ctx context.Context, name string, key uint64, outcome string) error {
	return ask(ctx, a, subjects.OpRelease, name, func(ctx context.Context, c *client.Client) (*subjects.Released, error) {
		return c.Release(ctx, name, key, outcome)
	})
}

// Renew counts the time limit of a hold anew; ttl and data replace what there was, nil leaves it. trusted, if it is not nil, is how
// long from now the caller may still trust its lock, which it has done without a break.
func (a *App) Renew(ctx context.Context, name string, key uint64, ttl *time.Duration, data []byte, trusted *time.Duration) error {
	began := boottime.Now()
	return ask(ctx, a, subjects.OpRenew, name, func(ctx context.Context, c *client.Client) (*subjects.Grant, error) {
		if trusted == nil {
			return c.Renew(ctx, name, key, ttl, data)
		}
		left := *trusted - time.Duration(boottime.Now()-began) // it took time to connect
		return c.Renew(ctx, name, key, ttl, data, client.TrustedFor(left))
	})
}

// Query prints who holds a lock and who waits for it.
func (a *App) Query(ctx context.Context, name string) error {
	return ask(ctx, a, subjects.OpQuery, name, func(ctx context.Context, c *client.Client) (*subjects.Record, error) {
		return c.Query(ctx, name)
	})
}

// List prints the locks that match, page by page; limit is how many at the most, 0 for all.
func (a *App) List(ctx context.Context, req *subjects.Request, limit int) error {
	return a.with(ctx, nil, func(ctx context.Context, c *client.Client) error {
		for next := *req; ; {
			next.Limit = subjects.MaxListLimit
			if limit > 0 {
				next.Limit = uint32(min(limit, subjects.MaxListLimit))
			}
			page, err := a.page(ctx, c, &next)
			if err != nil {
				return &opError{op: subjects.OpList, err: err}
			}
			if err := a.Printer().Page(page); err != nil {
				return err
			}
			if limit > 0 {
				if limit -= len(page.Locks); limit <= 0 {
					return nil
				}
			}
			if next.After = page.Next; page.Next == "" {
				return nil
			}
		}
	})
}

func (a *App) page(ctx context.Context, c *client.Client, req *subjects.Request) (*subjects.Page, error) {
	ctx, cancel := a.limited(ctx)
	defer cancel()
	return c.List(ctx, req)
}

// Names lists some names with a prefix, for completion at the shell. It has to be quick and says nothing of errors.
func (a *App) Names(ctx context.Context, prefix string) []string {
	const most = 50
	a.Timeout = min(a.Timeout, time.Second)
	var names []string
	// A completion that fails offers nothing.
	_ = a.with(ctx, nil, func(ctx context.Context, c *client.Client) error {
		page, err := a.page(ctx, c, &subjects.Request{Prefix: prefix, Has: subjects.HasPrefix, Limit: most})
		if err != nil {
			return err
		}
		for i := range page.Locks {
			names = append(names, page.Locks[i].Name)
		}
		return nil
	})
	return names
}

// Force ends the hold that has a token.
func (a *App) Force(ctx context.Context, name string, token uint64, reason string, now bool) error {
	return ask(ctx, a, subjects.OpForce, name, func(ctx context.Context, c *client.Client) (*subjects.Forced, error) {
		return c.Force(ctx, name, token, reason, now)
	})
}

// Check says whether a fencing token is current, also by its exit code.
func (a *App) Check(ctx context.Context, name string, token uint64) error {
	current := false
	err := ask(ctx, a, subjects.OpCheck, name, func(ctx context.Context, c *client.Client) (*subjects.Checked, error) {
		checked, err := c.Check(ctx, name, token)
		current = err == nil && checked.Current
		return checked, err
	})
	if err == nil && !current {
		return &ExitError{CodeRefused}
	}
	return err
}

// Servers prints the nodes, those nearest to location first.
func (a *App) Servers(ctx context.Context, location string) error {
	return ask(ctx, a, subjects.OpServers, "", func(ctx context.Context, c *client.Client) (*subjects.Servers, error) {
		return c.Servers(ctx, location)
	})
}

// Info describes the broker and the zone.
func (a *App) Info(ctx context.Context) error {
	return ask(ctx, a, subjects.OpInfo, "", func(ctx context.Context, c *client.Client) (*subjects.Info, error) {
		return c.Info(ctx)
	})
}

// retryPing is how long Ping waits before it tries again to find a broker.
const retryPing = 100 * time.Millisecond

// Ping measures the response time of a node, "" for any, count times. Until the first answer it tries again and again for
// as long as wait.
func (a *App) Ping(ctx context.Context, node string, count int, every, wait time.Duration) error {
	began := time.Now()
	for {
		err := a.ping(ctx, node, count, every)
		var i *interrupted
		if err == nil || errors.As(err, &i) || time.Since(began)+retryPing > wait {
			return err
		}
		select {
		case <-time.After(retryPing):
		case <-ctx.Done():
			return err
		}
	}
}

func (a *App) ping(ctx context.Context, node string, count int, every time.Duration) error {
	return a.with(ctx, nil, func(ctx context.Context, c *client.Client) error {
		for i := 0; ; {
			asking, cancel := a.limited(ctx)
			pong, err := c.Ping(asking, node)
			cancel()
			if err != nil {
				return &opError{op: subjects.OpPing, err: err}
			}
			if err := a.Printer().Body(&output.Ping{Pong: pong.Pong, RTT: pong.RTT}); err != nil {
				return err
			}
			if i++; i >= count {
				return nil
			}
			select {
			case <-time.After(every):
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
	})
}

// Top shows the live view.
func (a *App) Top(ctx context.Context, prefix string, every time.Duration, once bool) error {
	return a.with(ctx, nil, func(ctx context.Context, c *client.Client) error {
		err := top.Run(ctx, c, top.Options{
			Out: a.Stdout, Printer: a.Printer(), Prefix: prefix, Every: every, Timeout: a.Timeout, Once: once, Now: time.Now,
		})
		if err != nil {
			return &opError{op: subjects.OpList, err: err}
		}
		return nil
	})
}

// Cluster shows the cluster's nodes and buckets, once or live.
func (a *App) Cluster(ctx context.Context, buckets cluster.Buckets, every time.Duration, watch bool) error {
	return a.with(ctx, nil, func(ctx context.Context, c *client.Client) error {
		err := a.cluster(ctx, c, buckets, every, watch)
		if err != nil {
			return &opError{op: subjects.OpCluster, err: err}
		}
		return nil
	})
}

func (a *App) cluster(ctx context.Context, c *client.Client, buckets cluster.Buckets, every time.Duration, watch bool) error {
	if a.Quiet && !a.JSON {
		ctx, cancel := a.limited(ctx)
		defer cancel()
		frame, err := cluster.Gather(ctx, c, cluster.Buckets{}, time.Now)
		if err == nil {
			_, err = fmt.Fprintln(a.Stdout, output.Text(frame.Mode))
		}
		return err
	}
	return live.Run(ctx, live.Options{
		Out: a.Stdout, Printer: a.Printer(), Every: every, Timeout: a.Timeout, Once: !watch, Heading: cluster.Heading,
		Look: func(ctx context.Context, _ int) (live.Frame, error) { return cluster.Gather(ctx, c, buckets, time.Now) },
	})
}
