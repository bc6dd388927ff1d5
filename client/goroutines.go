package client

import (
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/opencluster/oclocks/internal/machine"
	"github.com/opencluster/oclocks/subjects"
)

// loop has the timer of everything that becomes due, and sees the connection break and come back.
func (c *Client) loop() {
	statuses := c.statuses
	for {
		select {
		case <-c.quit:
			return
		case <-c.timer.C:
			c.do(func(now int64) {
				c.armed = machine.Never
				c.m.Tick(now)
			})
		case _, ok := <-statuses:
			if !ok {
				statuses = nil // nothing more will come
			}
			c.lookAtConnection()
		}
	}
}

// lookAtConnection tells the machine what has become of the connection. The status that was announced may be over already,
// and announcements may be lost, so the connection itself is asked: before mu is taken, since it may be a while in answering.
func (c *Client) lookAtConnection() {
	status, conn, last := c.nc.Status(), connName(c.nc), c.nc.LastError()
	connected := status == nats.CONNECTED
	if connected {
		c.opts.road.arrived(c.nc.ConnectedUrl())
	}
	back := false
	c.do(func(now int64) {
		another := connected && conn != c.conn
		if c.connected && (another || !connected) {
			c.opts.log.Warn("disconnected", "status", status.String(), "error", last)
			c.m.Disconnected(now)
		}
		if connected && (another || !c.connected) {
			c.opts.log.Info("connected", "server", conn.Server, "connection", conn.CID)
			c.conn, back = conn, true
			c.leads(conn.Node)
			c.m.Connected(now, conn)
		}
		c.connected = connected
		if status == nats.CLOSED && !c.broken {
			c.broken = true
			err := fmt.Errorf("%w: the NATS connection is closed for good", ErrUnavailable)
			if last != nil {
				err = fmt.Errorf("%w: %w", err, last)
			}
			c.m.Break(now, err)
		}
	})
	if back {
		signal(c.island) // it may have come to one
		c.heard(subjects.ServerEvent{Type: Reconnected})
	}
}

// receiveEvent takes an event of the session.
func (c *Client) receiveEvent(msg *nats.Msg) {
	var event subjects.SessionEvent
	if err := event.DecodeJSON(msg.Data); err != nil || event.Subject != msg.Subject {
		return // whoever may publish here could have sent it; the broker's own repeat their subject
	}
	c.do(func(now int64) { c.m.Event(now, &event) })
}

// asyncError takes the NATS server's complaints: a publish that it does not permit is never answered otherwise.
func (c *Client) asyncError(next nats.ErrHandler) nats.ErrHandler {
	return func(nc *nats.Conn, sub *nats.Subscription, err error) {
		if subject, ok := forbidden(err); ok && !c.denies(nc, subject) {
			c.do(func(now int64) { c.m.Forbidden(now, subject) })
		}
		if next != nil {
			next(nc, sub, err)
		}
	}
}

// forbidden finds the subject in the server's `Permissions Violation for Publish to "subject"`.
func forbidden(err error) (subject string, ok bool) {
	if !errors.Is(err, nats.ErrPermissionViolation) {
		return "", false
	}
	text := err.Error()
	i := strings.Index(strings.ToLower(text), "publish to \"")
	if i < 0 {
		return "", false
	}
	subject, _, ok = strings.Cut(text[i+len("publish to \""):], "\"")
	return subject, ok
}
