package client

import (
	"errors"
	"sync"

	"github.com/nats-io/nats.go"
)

// outgoing is a message to be published, or a subscription to begin or to end.
type outgoing struct {
	kind    outgoingKind
	subject string
	reply   string
	body    []byte
}

type outgoingKind uint8

const (
	message  outgoingKind = iota
	follow                // subscribe to the session's events
	listen                // subscribe to the inbox of a lane
	unlisten              // end that
)

// outlet is the way out over one connection: what is to be published, and its sender. Who calls the client and waits for the answer
// publishes what he has put there himself, unless somebody is at it; all else is left to the sender. A publish blocks where the
// connection stands still and its buffers are full, for no longer than FlusherTimeout; the client's lock is not held meanwhile.
type outlet struct {
	c     *Client
	nc    *nats.Conn
	wake  chan struct{} // the queue is not empty; holds one
	queue []outgoing    // guarded by Client.mu

	publishing sync.Mutex
	batch      []outgoing                    // empty, but while it is published
	events     *nats.Subscription            // of the session; at home only
	boxes      map[string]*nats.Subscription // inboxes of lanes; at home only
}

func newOutlet(c *Client, nc *nats.Conn) *outlet {
	return &outlet{c: c, nc: nc, wake: make(chan struct{}, 1), boxes: map[string]*nats.Subscription{}}
}

// publish publishes what is queued. It does nothing and says so if somebody else is publishing, unless it is to wait.
func (o *outlet) publish(wait bool) bool {
	if wait {
		o.publishing.Lock()
	} else if !o.publishing.TryLock() {
		return false
	}
	defer o.publishing.Unlock()
	o.c.mu.Lock()
	o.batch, o.queue = o.queue, o.batch[:0]
	o.c.mu.Unlock()
	for i := range o.batch {
		msg := &o.batch[i]
		switch msg.kind {
		case follow:
			o.follow(msg.subject)
		case listen:
			o.listen(msg.subject)
		case unlisten:
			o.end(o.boxes[msg.subject])
			delete(o.boxes, msg.subject)
		default:
			if err := o.nc.PublishRequest(msg.subject, msg.reply, msg.body); err != nil {
				// The machine repeats it. Nothing else is lost: what was not sent was not heard.
				o.c.opts.log.Debug("publish", "subject", msg.subject, "error", err)
			}
		}
		*msg = outgoing{}
	}
	return true
}

// run publishes what others leave, until the client is closed or one of the channels is.
func (o *outlet) run(over, broken <-chan struct{}) {
	for {
		select {
		case <-o.c.quit:
			return
		case <-over:
			return
		case <-broken:
			return
		case <-o.wake:
			o.publish(true)
		}
	}
}

// follow subscribes to the events of the session, in place of those of an earlier one.
func (o *outlet) follow(subject string) {
	if subject == "" || o.events != nil && o.events.Subject == subject {
		return
	}
	sub, err := o.nc.Subscribe(subject, o.c.receiveEvent)
	if err != nil {
		o.c.opts.log.Warn("subscribe to the session's events", "subject", subject, "error", err)
		return
	}
	o.end(o.events)
	o.events = sub
}

// listen subscribes to the inbox of a lane that is not there.
func (o *outlet) listen(inbox string) {
	sub, err := o.nc.Subscribe(inbox, o.c.receive)
	if err != nil {
		o.c.opts.log.Warn("subscribe to an inbox", "subject", inbox, "error", err)
		return
	}
	o.boxes[inbox] = sub
}

// end ends a subscription, if there is one.
func (o *outlet) end(sub *nats.Subscription) {
	if sub == nil {
		return
	}
	if err := sub.Unsubscribe(); err != nil && !errors.Is(err, nats.ErrConnectionClosed) {
		o.c.opts.log.Debug("unsubscribe", "subject", sub.Subject, "error", err)
	}
}

// send is the home connection's sender.
func (c *Client) send() {
	c.home.run(nil, nil)
	c.home.publishing.Lock()
	defer c.home.publishing.Unlock()
	c.home.end(c.home.events)
}
