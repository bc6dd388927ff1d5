package cli

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/opencluster/oclocks/client"
	"github.com/opencluster/oclocks/internal/cli/output"
	"github.com/opencluster/oclocks/subjects"
)

// App is one invocation of oclocks-cli. The exported fields are set before a method is called.
type App struct {
	Stdin, Stdout, Stderr *os.File

	URL, Creds, Context string        // where to, as whom; "" leaves it to the NATS environment
	Timeout             time.Duration // for connecting, and for every single request
	JSON, Quiet         bool
	Command             string // as it was typed, for hints: "oclocks-cli session open"

	signals chan os.Signal // nil if none are taken
	printer *output.Printer
}

// Printer prints to Stdout.
func (a *App) Printer() *output.Printer {
	if a.printer == nil {
		a.printer = &output.Printer{Out: a.Stdout, JSON: a.JSON, Quiet: a.Quiet, Now: time.Now}
	}
	return a.printer
}

// connect connects to the broker; Timeout bounds it.
func (a *App) connect(ctx context.Context, opts ...client.Option) (*client.Client, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, a.Timeout, errNoAnswer)
	defer cancel()
	if a.Creds != "" {
		opts = append(opts, client.WithCredentials(a.Creds))
	}
	if a.Context != "" {
		opts = append(opts, client.WithContext(a.Context))
	}
	c, err := client.Connect(ctx, a.URL, opts...)
	if refusal := (*subjects.Refusal)(nil); errors.As(err, &refusal) && refusal.Code == 503 && refusal.Why == "" {
		return nil, &noBroker{err: err, reason: refusal}
	}
	return c, err
}

// with connects, does something, and closes the connection. A signal ends it.
func (a *App) with(ctx context.Context, opts []client.Option, do func(context.Context, *client.Client) error) error {
	ctx, stop := a.interruptible(ctx)
	defer stop()
	c, err := a.connect(ctx, opts...)
	if err != nil {
		return err
	}
	return errors.Join(do(ctx, c), a.close(ctx, c))
}

// close closes the client. What it left open (nothing, but for a session) ends with its lease if the broker does not answer.
func (a *App) close(ctx context.Context, c *client.Client) error {
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), a.Timeout, errNoAnswer)
	defer cancel()
	return c.Close(ctx)
}

// limited bounds one request by Timeout.
func (a *App) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, a.Timeout, errNoAnswer)
}

// ask connects, sends one request, and prints the answer.
func ask[T subjects.Body](ctx context.Context, a *App, op subjects.Op, name string,
	send func(context.Context, *client.Client) (T, error),
) error {
	return a.with(ctx, nil, func(ctx context.Context, c *client.Client) error {
		ctx, cancel := a.limited(ctx)
		defer cancel()
		answer, err := send(ctx, c)
		if err != nil {
			return &opError{op: op, name: name, err: err}
		}
		return a.Printer().Body(answer)
	})
}
