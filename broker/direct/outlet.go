package direct

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
)

const (
	maxWaiting = 64 << 20 // bytes that the socket has not taken; as a route of NATS, and as much as one change may have
	keepBytes  = 1 << 20  // a larger buffer is not kept
)

// ErrSlow means that the other node does not read as fast as this one writes.
var ErrSlow = errors.New("the other node does not read fast enough")

// outlet is the connection that TLS writes to. During the handshake it is like any other. After hold it keeps what is
// written until push, which gives the socket what that takes, with one call that never waits. What is left is the business of
// drain, which does wait.
type outlet struct {
	net.Conn
	raw   syscall.RawConn
	limit int
	held  atomic.Bool
	try   func(fd uintptr) bool // pass as a value, made once
	wrote int                   // what try did
	fault error

	mu    sync.Mutex
	text  []byte        // to be written
	taken int           // bytes that drain is writing: they wait as well
	busy  bool          // drain is writing, and nobody else may
	wake  chan struct{} // busy has become true; holds one
	spare []byte        // only drain's: memory for text
}

func newOutlet(conn net.Conn, limit int) (*outlet, error) {
	under, ok := conn.(syscall.Conn)
	if !ok {
		return nil, fmt.Errorf("%T is not a socket", conn)
	}
	raw, err := under.SyscallConn()
	if err != nil {
		return nil, fmt.Errorf("the socket: %w", err)
	}
	o := &outlet{Conn: conn, raw: raw, limit: limit, wake: make(chan struct{}, 1)}
	o.try = o.pass
	return o, nil
}

// hold has everything wait for push that is written from now on.
func (o *outlet) hold() { o.held.Store(true) }

func (o *outlet) Write(b []byte) (int, error) {
	if !o.held.Load() {
		return o.Conn.Write(b)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.taken+len(o.text)+len(b) > o.limit {
		return 0, ErrSlow
	}
	o.text = append(o.text, b...)
	return len(b), nil
}

// push gives the socket what it takes.
func (o *outlet) push() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.busy || len(o.text) == 0 {
		return nil
	}
	o.wrote, o.fault = 0, nil
	if err := o.raw.Write(o.try); err != nil {
		return err
	}
	if o.fault != nil {
		return o.fault
	}
	o.text = o.text[:copy(o.text, o.text[o.wrote:])]
	if len(o.text) > 0 {
		o.busy = true
		o.wake <- struct{}{} // there is room: drain has taken the last one before busy ended
	}
	return nil
}

// pass writes once. It always says that it is done, so that nobody waits for the socket. mu is held.
func (o *outlet) pass(fd uintptr) bool {
	for {
		n, err := write(fd, o.text)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case errors.Is(err, syscall.EAGAIN):
		case err != nil:
			o.fault = fmt.Errorf("write: %w", err)
		default:
			o.wrote = n
		}
		return true
	}
}

// drain writes what push could not, until the connection is closed.
func (o *outlet) drain(closed <-chan struct{}) error {
	for {
		select {
		case <-o.wake:
		case <-closed:
			return nil
		}
		for {
			chunk := o.chunk()
			if chunk == nil {
				break
			}
			if _, err := o.Conn.Write(chunk); err != nil {
				return err
			}
			if cap(chunk) <= keepBytes {
				o.spare = chunk[:0]
			}
		}
	}
}

// chunk takes what is to be written; nil: nothing, and push may write again.
func (o *outlet) chunk() []byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.taken = len(o.text)
	if len(o.text) == 0 {
		o.busy = false
		return nil
	}
	chunk := o.text
	o.text, o.spare = o.spare, nil
	return chunk
}
