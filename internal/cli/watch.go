package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/opencluster/oclocks/client"
	"github.com/opencluster/oclocks/subjects"
)

// WatchFamilies are what Watch can be asked for.
var WatchFamilies = []string{"lock", "server", "session", "all"}

// watchBuffer is how many events may wait to be printed.
const watchBuffer = 4096

// Watch prints events as they come, until a signal; of those about locks only those whose names begin with prefix.
func (a *App) Watch(ctx context.Context, family, prefix string) error {
	trouble := make(chan error, 1)
	onError := nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
		select {
		case trouble <- err:
		default: // the first is told
		}
	})
	err := a.with(ctx, []client.Option{client.WithNATSOptions(onError)}, func(ctx context.Context, c *client.Client) error {
		return a.watch(ctx, c, family, prefix, trouble)
	})
	if i := new(interrupted); errors.As(err, &i) {
		return nil // that is how it ends
	}
	return err
}

func (a *App) watch(ctx context.Context, c *client.Client, family, prefix string, trouble <-chan error) error {
	var topics []string
	switch family {
	case "lock":
		topics = []string{subjects.LockEvents}
	case "server":
		topics = []string{subjects.ServerEvents, subjects.ClusterEvents}
	case "session":
		topics = []string{subjects.SessionEventSubject(c.User(), "*")}
	case "all":
		topics = []string{
			subjects.LockEvents, subjects.ServerEvents, subjects.ClusterEvents, subjects.SessionEventSubject(c.User(), "*"),
		}
	default:
		return usagef("there are no events of %q: expected lock, server, session or all", family)
	}
	msgs := make(chan *nats.Msg, watchBuffer)
	for _, topic := range topics {
		if _, err := c.Conn().ChanSubscribe(topic, msgs); err != nil {
			return fmt.Errorf("watch %s: %w", topic, err)
		}
	}
	flush, cancel := a.limited(ctx)
	defer cancel()
	if err := c.Conn().FlushWithContext(flush); err != nil {
		return fmt.Errorf("watch: %w", err)
	}
	if !a.Quiet && family != "server" && family != "session" {
		fmt.Fprintln(a.Stderr, "watching; events of locks come only from zones that have them switched on")
	}
	for {
		select {
		case msg := <-msgs:
			if event := decodeEvent(msg); event != nil && concerns(event, prefix) {
				if err := a.Printer().Body(event); err != nil {
					return err
				}
			}
		case err := <-trouble:
			switch {
			case errors.Is(err, nats.ErrPermissionViolation):
				return fmt.Errorf("watch: %w: %w", client.ErrDenied, err)
			case errors.Is(err, nats.ErrSlowConsumer):
				a.complain("events come faster than they can be printed; some were left out", "")
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// concerns says whether an event is about a lock whose name begins with prefix, or about none.
func concerns(event subjects.Body, prefix string) bool {
	switch e := event.(type) {
	case *subjects.LockEvent:
		return strings.HasPrefix(e.Name, prefix)
	case *subjects.SessionEvent:
		return e.Name == "" || strings.HasPrefix(e.Name, prefix)
	}
	return true
}

// decodeEvent reads an event, nil if the message is none: a body that does not repeat its subject is from somebody else.
func decodeEvent(msg *nats.Msg) subjects.Body {
	address, err := subjects.ParseEvent(msg.Subject)
	if err != nil {
		return nil
	}
	switch address.Family {
	case subjects.FamilyLock:
		if e := new(subjects.LockEvent); e.DecodeJSON(msg.Data) == nil && e.Subject == msg.Subject {
			return e
		}
	case subjects.FamilySession:
		if e := new(subjects.SessionEvent); e.DecodeJSON(msg.Data) == nil && e.Subject == msg.Subject {
			return e
		}
	default:
		if e := new(subjects.ServerEvent); e.DecodeJSON(msg.Data) == nil && e.Subject == msg.Subject {
			return e
		}
	}
	return nil
}
