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
		// Beats rise over all who keep the session, one after the other.
		for beat := uint64(time.Now().UnixMilli()); ; beat++ {
			kept, err := a.keep(ctx, c, session, beat)
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
		}
	})
	if i := new(interrupted); errors.As(err, &i) {
		return nil // that is how it ends
	}
	return err
}

func (a *App) keep(ctx context.Context, c *client.Client, session string, beat uint64) (*subjects.Kept, error) {
	ctx, cancel := a.limited(ctx)
	defer cancel()
	return c.KeepSession(ctx, session, beat)
}
