package control

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/nats-io/nats.go"
)

const (
	postMessages = 8192
	postBytes    = 64 << 20
)

// post publishes, so that nobody who has something to send waits for the connection. Beyond its bounds messages are lost, as
// they may be in the network.
type post struct {
	nc      *nats.Conn
	queue   chan letter
	bytes   atomic.Int64
	dropped atomic.Uint64
}

// letter is a message, or a mark: everything before it has been published when it is closed.
type letter struct {
	subject string
	data    []byte
	mark    chan struct{}
}

func newPost(nc *nats.Conn) *post { return &post{nc: nc, queue: make(chan letter, postMessages)} }

// send takes the data over. It never waits.
func (p *post) send(subject string, data []byte) {
	if p.bytes.Add(int64(len(data))) > postBytes {
		p.bytes.Add(-int64(len(data)))
		p.dropped.Add(1)
		return
	}
	select {
	case p.queue <- letter{subject: subject, data: data}:
	default:
		p.bytes.Add(-int64(len(data)))
		p.dropped.Add(1)
	}
}

// run publishes until stop is closed.
func (p *post) run(stop <-chan struct{}) {
	for {
		select {
		case l := <-p.queue:
			if l.mark != nil {
				close(l.mark)
				continue
			}
			p.bytes.Add(-int64(len(l.data)))
			if err := p.nc.Publish(l.subject, l.data); err != nil { // the connection is away: what is late would be of no use
				p.dropped.Add(1)
			}
		case <-stop:
			return
		}
	}
}

// flush waits until the server has everything that was given to send before.
func (p *post) flush(ctx context.Context, stop <-chan struct{}) error {
	ctx, cancel := context.WithTimeout(ctx, requestWait)
	defer cancel()
	mark := make(chan struct{})
	select {
	case p.queue <- letter{mark: mark}:
	case <-ctx.Done():
		return fmt.Errorf("publish what waits: %w", ctx.Err())
	case <-stop:
		return ErrClosed
	}
	select {
	case <-mark:
	case <-ctx.Done():
		return fmt.Errorf("publish what waits: %w", ctx.Err())
	case <-stop:
		return ErrClosed
	}
	if err := p.nc.FlushWithContext(ctx); err != nil {
		return fmt.Errorf("publish what waits: %w", err)
	}
	return nil
}
