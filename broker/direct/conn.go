package direct

import (
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// beat is the frame that says nothing but that the node is there.
var beat []byte

// Why a link was closed.
var (
	ErrSilent   = errors.New("nothing comes from the other node")
	errReplaced = errors.New("the other node has made another one")
	errRemoved  = errors.New("the node is not of the cluster any more")
	errClosed   = errors.New("this node stops")
)

// lostLevel is how much it matters why a link was lost. What the other end has closed is no trouble of this one: a node stops, or tells
// of the trouble itself; and if the link cannot be made again, that is told.
func lostLevel(reason error) slog.Level {
	for _, theirs := range []error{io.EOF, syscall.EPIPE, syscall.ECONNRESET, errReplaced, errRemoved} {
		if errors.Is(reason, theirs) {
			return slog.LevelInfo
		}
	}
	return slog.LevelWarn
}

// Link is one connection that is up. Its methods may be called at the same time.
type Link struct {
	peer  Peer
	speak int // see Version
	out   *outlet
	tls   *tls.Conn
	since time.Time

	mu   sync.Mutex // of those that send
	text []byte     // scratch

	heard  atomic.Uint64 // reads that gave something
	before uint64        // heard at the last beat; only the beating goroutine's
	missed int           // beats since something came; likewise

	once   sync.Once
	reason error
	closed chan struct{}
}

// Node is the number of the node at the other end.
func (c *Link) Node() uint64 { return c.peer.Number }

// Version is the newest version of the frames that both ends know: 1 or 2. What it means is the caller's.
func (c *Link) Version() int { return c.speak }

// Send sends frames together, of at most MaxFrame bytes each, and never waits; they are not kept. False: some may be lost, and
// the link is over, or soon will be.
func (c *Link) Send(frames ...[]byte) bool { return c.send(frames...) == nil }

// send never waits. An error has closed the connection.
func (c *Link) send(frames ...[]byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.text = c.text[:0]
	for _, frame := range frames {
		c.text = appendFrame(c.text, frame)
	}
	_, err := c.tls.Write(c.text)
	if err == nil {
		err = c.out.push()
	}
	if err != nil {
		c.close(err)
	}
	return err
}

// beat sends an empty frame, and closes the connection if nothing has come for more than so many beats.
func (c *Link) beat(most int) {
	if heard := c.heard.Load(); heard != c.before {
		c.before, c.missed = heard, 0
	} else if c.missed++; c.missed > most {
		c.close(ErrSilent)
		return
	}
	// What is wrong has closed the connection.
	_ = c.send(beat)
}

// serve reads until the connection is closed, and gives the reason.
func (c *Link) serve(take func(frame []byte) error) error {
	var drained sync.WaitGroup
	drained.Go(func() {
		if err := c.out.drain(c.closed); err != nil {
			c.close(err)
		}
	})
	c.close(readFrames(c, func(frame []byte) error {
		if len(frame) == 0 {
			return nil
		}
		return take(frame)
	}))
	drained.Wait()
	return c.reason
}

// Read reads what TLS has taken apart, and notes that something came: a large frame may take long.
func (c *Link) Read(b []byte) (int, error) {
	n, err := c.tls.Read(b)
	if n > 0 {
		c.heard.Add(1)
	}
	return n, err
}

// close ends the connection; the first reason counts.
func (c *Link) close(reason error) {
	c.once.Do(func() {
		c.reason = reason
		_ = c.out.Conn.Close() // the reader ends by that, whatever it says
		close(c.closed)
	})
}
