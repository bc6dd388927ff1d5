package inside

import (
	"fmt"
	"net"
	"sync"
	"time"
)

const (
	handshakeTime = 5 * time.Second
	againWait     = 20 * time.Millisecond // between two attempts to connect again

	defaultPending = 64 << 20
)

// Options of a connection.
type Options struct {
	Name    string
	Dial    func() (net.Conn, error)                   // to the server, without TLS
	JWT     string                                     // of the user
	Sign    func(nonce []byte) (sig []byte, err error) // proves that it is that user
	Pending int                                        // bytes that may wait to be written; 0 for 64 MiB

	// Lost is told why the connection went away, from the reader, and may be nil.
	Lost func(err error)
	// Report is told what the server complains about, from the reader, and may be nil.
	Report func(err error)
}

// Message is what came for a subscription. It is valid only until the handler returns; its strings stay.
type Message struct {
	Subject, Reply string
	Header         []byte // the whole block, with its first line; nil if there is none
	Data           []byte
}

// Conn is a connection. Its methods may be called at the same time.
type Conn struct {
	opts    Options
	quit    chan struct{} // closed by Close
	done    chan struct{} // closed when the reader has ended
	kick    chan struct{} // holds one token while the writer is to look
	written chan struct{} // closed when the writer has ended

	subsMu sync.RWMutex
	subs   map[uint64]*Subscription

	mu      sync.Mutex
	nc      net.Conn // nil while the connection is away
	limit   int      // of a message, in bytes
	buf     []byte   // to be written
	spare   []byte   // what buf was before
	writing bool     // somebody is
	pongs   []func(err error)
	sid     uint64
	closed  bool
}

// Subscription is a subject that is listened to.
type Subscription struct {
	Subject, Queue string

	c      *Conn
	sid    uint64
	handle func(m *Message)
}

// Open connects. The errors are those of Dial and Sign, ErrProtocol, and ErrServer if the server refuses the user.
func Open(opts Options) (*Conn, error) {
	if opts.Pending == 0 {
		opts.Pending = defaultPending
	}
	c := &Conn{
		opts: opts, quit: make(chan struct{}), done: make(chan struct{}), kick: make(chan struct{}, 1), written: make(chan struct{}),
		subs: make(map[uint64]*Subscription),
	}
	in, err := c.connect()
	if err != nil {
		return nil, fmt.Errorf("connect %s inside the process: %w", opts.Name, err)
	}
	go c.read(in)
	go c.write()
	return c, nil
}

// IsConnected says whether the connection is not away.
func (c *Conn) IsConnected() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.nc != nil
}

// IsClosed says whether it will never come back.
func (c *Conn) IsClosed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

// Close ends the connection, without writing what waits (see Sync), and returns when no handler runs any more. It must not be called
// by a handler.
func (c *Conn) Close() {
	c.end()
	<-c.done
	<-c.written
}

// end makes the connection never come back.
func (c *Conn) end() {
	c.mu.Lock()
	if !c.closed {
		c.closed = true
		close(c.quit)
	}
	nc := c.nc
	c.mu.Unlock()
	if nc != nil {
		nc.Close()
	}
}

// lost forgets a connection that has ended: what was to be written is gone, and whoever waits for an answer is told.
func (c *Conn) lost(nc net.Conn, err error) {
	nc.Close()
	c.mu.Lock()
	c.nc, c.buf = nil, nil
	pongs := c.pongs
	c.pongs = nil
	closed := c.closed
	c.mu.Unlock()
	for _, told := range pongs {
		told(ErrAway)
	}
	if !closed && c.opts.Lost != nil {
		c.opts.Lost(err)
	}
}

// again connects until it succeeds; false if the connection is closed meanwhile.
func (c *Conn) again() (*input, bool) {
	for {
		in, err := c.connect()
		if err == nil {
			return in, true
		}
		select {
		case <-time.After(againWait):
		case <-c.quit:
			return nil, false
		}
	}
}
