package control

import (
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
	queue   chan *nats.Msg
	bytes   atomic.Int64
	dropped atomic.Uint64
}

func newPost(nc *nats.Conn) *post { return &post{nc: nc, queue: make(chan *nats.Msg, postMessages)} }

// send takes the data over. It never waits.
func (p *post) send(subject string, data []byte) {
	if p.bytes.Add(int64(len(data))) > postBytes {
		p.bytes.Add(-int64(len(data)))
		p.dropped.Add(1)
		return
	}
	select {
	case p.queue <- &nats.Msg{Subject: subject, Data: data}:
	default:
		p.bytes.Add(-int64(len(data)))
		p.dropped.Add(1)
	}
}

// run publishes until stop is closed.
func (p *post) run(stop <-chan struct{}) {
	for {
		select {
		case m := <-p.queue:
			p.bytes.Add(-int64(len(m.Data)))
			if err := p.nc.PublishMsg(m); err != nil { // the connection is away: what is late would be of no use
				p.dropped.Add(1)
			}
		case <-stop:
			return
		}
	}
}
