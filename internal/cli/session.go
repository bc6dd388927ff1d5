package cli

import (
	"context"
	"errors"
	"time"

	"github.com/opencluster/oclocks/client"
	"github.com/opencluster/oclocks/subjects"
)

// OpenSession opens a session that nobody keeps alive, or comes back as an earlier one.
func (a *App) OpenSession(ctx context.Context, req *subjects.Request) error {
	return ask(ctx, a, subjects.OpSessionOpen, "", func(ctx context.Context, c *client.Client) (*subjects.Opened, error) {
		return c.OpenSession(ctx, req)
	})
}

// CloseSession ends a session and releases what it holds.
func (a *App) CloseSession(ctx context.Context, session string) error {
	return ask(ctx, a, subjects.OpSessionClose, "", func(ctx context.Context, c *client.Client) (*subjects.SessionClosed, error) {
		return c.CloseSession(ctx, session)
	})
}

// KeepSession keeps a session alive until a signal; with once it sends a single keep-alive. It prints what is answered.
func (a *App) KeepSession(ctx context.Context, session string, once bool) error {
	err := a.with(ctx, nil, func(ctx context.Context, c *client.Client) error {
		limit := a.Timeout
		// Beats rise over all who keep the session, one after the other.
		for beat := uint64(time.Now().UnixMilli()); ; beat++ {
			sent := time.Now()
			kept, err := a.keep(ctx, c, session, beat, limit)
			if err != nil {
				return &opError{op: subjects.OpKeep, err: err}
			}
			if a.JSON || once {
				if err := a.Printer().Body(kept); err != nil {
					return err
				}
			}
			if once {
				return nil
			}
			select {
			case <-time.After(kept.Lease / 2):
			case <-ctx.Done():
				return context.Cause(ctx)
			}
			limit = patience(a.Timeout, kept.Lease, time.Since(sent))
		}
	})
	if i := new(interrupted); errors.As(err, &i) {
		return nil // that is how it ends
	}
	return err
}

// patience is how long to ask for a session to be kept that was kept some time ago: it is not over before its lease is.
func patience(timeout, lease, ago time.Duration) time.Duration { return max(timeout, lease-ago) }

func (a *App) keep(ctx context.Context, c *client.Client, session string, beat uint64, limit time.Duration) (*subjects.Kept, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errNoAnswer)
	defer cancel()
	return c.KeepSession(ctx, session, beat)
}
