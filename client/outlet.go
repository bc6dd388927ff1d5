package client

import (
	"errors"
	"sync"

	"github.com/nats-io/nats.go"
)

// outgoing is a message to be published, or the subject of a session's events to subscribe to.
type outgoing struct {
	subject string
	reply   string
	body    []byte
	events  bool
}

// outlet is the way out over the connection: what is to be published, and its sender. Who calls the client and waits for the answer
// publishes what he has put there himself, unless somebody is at it; all else is left to the sender. A publish blocks where the
// connection stands still and its buffers are full, for no longer than FlusherTimeout; the client's lock is not held meanwhile.
type outlet struct {
	c     *Client
	nc    *nats.Conn
	inbox string        // prefix of the reply subjects, with the last dot
	wake  chan struct{} // the queue is not empty; holds one
	queue []outgoing    // guarded by Client.mu

	publishing sync.Mutex
	batch      []outgoing         // empty, but while it is published
	events     *nats.Subscription // of the session
}

func newOutlet(c *Client, nc *nats.Conn) *outlet {
	return &outlet{c: c, nc: nc, inbox: newInbox(c.user), wake: make(chan struct{}, 1)}
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
		if msg.events {
			o.follow(msg.subject)
		} else if err := o.nc.PublishRequest(msg.subject, msg.reply, msg.body); err != nil {
			// The machine repeats it. Nothing else is lost: what was not sent was not heard.
			o.c.opts.log.Debug("publish", "subject", msg.subject, "error", err)
		}
		*msg = outgoing{}
	}
	return true
}

// run publishes what others leave, until the client is closed.
func (o *outlet) run() {
	for {
		select {
		case <-o.c.quit:
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
	o.unfollow()
	o.events = sub
}

func (o *outlet) unfollow() {
	if o.events == nil {
		return
	}
	if err := o.events.Unsubscribe(); err != nil && !errors.Is(err, nats.ErrConnectionClosed) {
		o.c.opts.log.Debug("unsubscribe from a session's events", "error", err)
	}
	o.events = nil
}

// send is the sender.
func (c *Client) send() {
	c.home.run()
	c.home.publishing.Lock()
	defer c.home.publishing.Unlock()
	c.home.unfollow()
}
