package direct

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// What is spoken after the handshake (ALPN), by version; both ends take the newest that they know. Whoever speaks something else
// got the wrong port.
const (
	protocol  = "oclocks-direct"
	protocol2 = "oclocks-direct-2"
)

// toldEvery is how often it is told at the most that strangers come.
const toldEvery = 10 * time.Second

// ErrStranger means that who is at the other end is not the node that it should be.
var ErrStranger = errors.New("not the node that it should be")

// try is how this node comes to a link with another one.
type try struct {
	busy    bool      // it is being made, or up
	again   time.Time // not before
	pause   time.Duration
	told    bool // that it cannot be made
	unasked int  // times in a row that the other node did not say where it listens
}

// tellUnasked: a node that does not say so often in a row where it listens is told of. One that starts, or is away, says it before.
const tellUnasked = 30

// try begins to make a link, unless there is one or it is too early.
func (l *Links) try(p Peer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.tries[p.Number]
	if t == nil {
		t = &try{}
		l.tries[p.Number] = t
	}
	if l.closed || t.busy || time.Now().Before(t.again) {
		return
	}
	t.busy = true
	l.ended.Go(func() {
		lasted, err := l.meet(p)
		l.mu.Lock()
		defer l.mu.Unlock()
		t.busy = false
		switch {
		case errors.Is(err, errUnasked):
			t.pause = askAgain
		case lasted >= lasting:
			t.pause = retryFirst
		default:
			t.pause = min(max(2*t.pause, retryFirst), retryLast)
		}
		t.again = time.Now().Add(t.pause)
		l.tell(p, t, err)
	})
}

// tell tells once that a link cannot be made. mu is held.
func (l *Links) tell(p Peer, t *try, err error) {
	if !errors.Is(err, errUnasked) {
		t.unasked = 0
	}
	switch {
	case l.closed:
	case err == nil:
		t.told = false
	case errors.Is(err, errUnasked):
		if t.unasked++; t.unasked == l.cfg.unasked {
			l.cfg.Logger.Info("no direct link is made: the node is away, has them switched off, or is of an older version", "node", p.Number, "error", err)
		}
	case !t.told:
		t.told = true
		l.cfg.Logger.Warn("no direct link can be made; the chains' messages take the route, which is slower", "node", p.Number, "error", err)
	}
}

// errUnasked: the other node is not there, or does not listen for this.
var errUnasked = errors.New("the node does not say where it listens")

// meet makes a link and serves it. It gives how long it was up; an error is that it did not come up.
func (l *Links) meet(p Peer) (lasted time.Duration, err error) {
	ctx, cancel := context.WithTimeout(l.ctx, dialTime)
	defer cancel()
	address, err := l.cfg.Ask(ctx, p.Number)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", errUnasked, err)
	}
	if address == "" {
		return 0, errUnasked
	}
	var d net.Dialer
	nc, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return 0, err
	}
	c, err := l.greet(nc, true)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", address, err)
	}
	if c.peer != p {
		err := fmt.Errorf("%w: %v is at %s, and not %v", ErrStranger, c.peer, address, p)
		c.close(err)
		return 0, err
	}
	l.serve(c)
	return time.Since(c.since), nil
}

// accept takes the connections of those with lower numbers.
func (l *Links) accept() {
	for {
		nc, err := l.cfg.Listener.Accept()
		if err != nil {
			if l.ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
				return
			}
			l.stranger("a direct link is not accepted", "", err) // no descriptor left, say
			select {
			case <-time.After(l.cfg.beat):
			case <-l.ctx.Done():
				return
			}
			continue
		}
		select {
		case l.half <- struct{}{}:
			l.ended.Go(func() { l.answer(nc) })
		default:
			_ = nc.Close() // nobody hears that it failed
			l.stranger("a connection for direct links is closed: too many are half open", nc.RemoteAddr().String(), nil)
		}
	}
}

// answer lets in who is one of the nodes.
func (l *Links) answer(nc net.Conn) {
	c, err := l.greet(nc, false)
	<-l.half
	if err != nil {
		l.stranger("a connection for direct links is refused", nc.RemoteAddr().String(), err)
		return
	}
	l.serve(c)
}

// stranger tells of a connection that came to nothing, but not of each one.
func (l *Links) stranger(what, address string, err error) {
	l.mu.Lock()
	tell := !l.closed && time.Since(l.told) >= toldEvery
	if tell {
		l.told = time.Now()
	}
	l.mu.Unlock()
	if tell {
		l.cfg.Logger.Warn(what, "address", address, "error", err)
	}
}

// greet does the handshake and finds out who is there. Else the connection is closed.
func (l *Links) greet(nc net.Conn, dialed bool) (c *Link, err error) {
	defer func() {
		if err != nil {
			_ = nc.Close() // what was wrong is told
		}
	}()
	out, err := newOutlet(nc, l.cfg.limit)
	if err != nil {
		return nil, err
	}
	c = &Link{speak: 1, out: out, since: time.Now(), closed: make(chan struct{})}
	if dialed {
		c.tls = tls.Client(out, l.cfg.TLS)
	} else {
		c.tls = tls.Server(out, l.cfg.TLS)
	}
	ctx, cancel := context.WithTimeout(l.ctx, handshakeTime)
	defer cancel()
	if err := c.tls.HandshakeContext(ctx); err != nil {
		return nil, fmt.Errorf("handshake: %w", err)
	}
	state := c.tls.ConnectionState()
	switch {
	case len(state.PeerCertificates) == 0:
		return nil, fmt.Errorf("%w: it does not say who it is", ErrStranger)
	case state.NegotiatedProtocol == protocol2:
		c.speak = 2
	case state.NegotiatedProtocol != protocol:
		return nil, fmt.Errorf("%w: it does not speak %s", ErrStranger, protocol)
	}
	if dialed {
		stop := context.AfterFunc(ctx, func() { _ = nc.Close() }) // welcome says why it ended
		err := welcome(c.tls)
		if !stop() && err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return nil, err
		}
	}
	name := state.PeerCertificates[0].Subject.CommonName
	for _, p := range l.cfg.Peers() {
		if p.Identifier == name && p.Number != l.cfg.Self {
			c.peer = p
			out.hold()
			return c, nil
		}
	}
	return nil, fmt.Errorf("%w: %s is no other node of this cluster", ErrStranger, name)
}

// welcome waits for the first beat of the side that accepts: the handshake of TLS 1.3 is over at this end before the other
// one has looked at the certificate.
func welcome(c *tls.Conn) error {
	if err := c.SetReadDeadline(time.Now().Add(handshakeTime)); err != nil {
		return err
	}
	var head [headBytes]byte
	if _, err := io.ReadFull(c, head[:]); err != nil {
		return fmt.Errorf("the other side does not take this node in: %w", err)
	}
	if head != [headBytes]byte{} {
		return fmt.Errorf("%w: it begins with % x", ErrFrame, head)
	}
	return c.SetReadDeadline(time.Time{})
}
