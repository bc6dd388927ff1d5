package client

import (
	"context"
	"net"

	"github.com/nats-io/nats.go"
)

// dialer makes connections for nats.go.
type dialer struct {
	dial func(network, address string) (net.Conn, error)
	tls  bool // what it makes has TLS already
}

// Dial is for nats.CustomDialer.
func (d dialer) Dial(network, address string) (net.Conn, error) { return d.dial(network, address) }

// SkipTLSHandshake is asked by nats.go.
func (d dialer) SkipTLSHandshake() bool { return d.tls }

// laneDialer is the caller's dialer, or one of our own. What it makes ends with ctx.
func laneDialer(ctx context.Context, o *nats.Options) dialer {
	if custom := o.CustomDialer; custom != nil {
		skips, ok := custom.(interface{ SkipTLSHandshake() bool }) // as nats.go asks
		return dialer{func(network, address string) (net.Conn, error) {
			return dialWithin(ctx, func() (net.Conn, error) { return custom.Dial(network, address) })
		}, ok && skips.SkipTLSHandshake()}
	}
	own := net.Dialer{Timeout: o.Timeout}
	if o.Dialer != nil {
		own = *o.Dialer
	}
	if o.AllowMultipathTCP != nil {
		own.SetMultipathTCP(*o.AllowMultipathTCP)
	}
	return dialer{func(network, address string) (net.Conn, error) {
		return dialWithin(ctx, func() (net.Conn, error) { return own.DialContext(ctx, network, address) })
	}, false}
}

// dialWithin does not wait for a dialer that goes on when ctx has ended: what that brings is closed.
func dialWithin(ctx context.Context, dial func() (net.Conn, error)) (net.Conn, error) {
	type dialed struct {
		conn net.Conn
		err  error
	}
	result := make(chan dialed)
	go func() {
		conn, err := dial()
		select {
		case result <- dialed{conn, err}:
		case <-ctx.Done():
			if err == nil {
				_ = conn.Close() // nobody has heard of it
			}
		}
	}()
	select {
	case r := <-result:
		if r.err == nil {
			context.AfterFunc(ctx, func() { _ = r.conn.Close() }) // its user hears of it
		}
		return r.conn, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
