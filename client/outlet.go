package client

import (
	"errors"
	"sync"

	"github.com/nats-io/nats.go"

	"github.com/opencluster/oclocks/subjects"
)

// outgoing is a message to be published, or a subscription to begin or to end.
type outgoing struct {
	kind    outgoingKind
	op      string // of a request that may be in a bundle; "": it goes by itself
	subject string
	inbox   string // of the reply subject: what comes between the client's inbox and the last token
	token   string // the last one
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
// publishes what he has put there himself, and what others put there meanwhile, unless somebody is at it; all else is left to the sender.
// A publish blocks where the connection stands still and its buffers are full, for no longer than FlusherTimeout; the client's lock is
// not held meanwhile.
type outlet struct {
	c     *Client
	nc    *nats.Conn
	inbox string        // between the client's inbox and the last token of the reply subjects
	wake  chan struct{} // the queue is not empty; holds one

	// Guarded by Client.mu:
	queue []outgoing
	told  bool // somebody is going to publish the queue
	bundling

	publishing sync.Mutex
	batch      []outgoing // empty, but while it is published
	bundle     subjects.Bundle
	first      outgoing                      // of the bundle
	events     *nats.Subscription            // of the session; at home only
	boxes      map[string]*nats.Subscription // inboxes of lanes; at home only
}

// newOutlet makes the outlet of a connection to a node, "" if that is not known.
func newOutlet(c *Client, nc *nats.Conn, node, inbox string) *outlet {
	return &outlet{c: c, nc: nc, inbox: inbox, wake: make(chan struct{}, 1), bundling: bundling{node: node}, boxes: map[string]*nats.Subscription{}}
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
	o.batch, o.queue, o.told = o.queue, o.batch[:0], false
	node, limits := o.node, o.limits
	inbox, question := o.ask(o.batch)
	o.c.mu.Unlock()
	if question != "" {
		o.put(subjects.BundleSubject(node, o.c.user), o.c.inbox+inbox+subjects.TakesSheaves(question), nil)
	}
	for i := range o.batch {
		msg := &o.batch[i]
		if msg.op == "" {
			o.seal(node)
			o.carryOut(msg)
		} else if !o.add(msg, limits) {
			o.seal(node)
			if !o.add(msg, limits) {
				o.carryOut(msg)
			}
		}
		*msg = outgoing{}
	}
	o.seal(node)
	return true
}

// add puts a message into the bundle. False: it has to wait for the next one, or to go by itself if this one is empty.
func (o *outlet) add(msg *outgoing, limits subjects.BundleLimits) bool {
	if o.bundle.Len() > 0 && msg.inbox != o.first.inbox {
		return false
	}
	if !o.bundle.Add(limits, msg.token, msg.op, msg.body) {
		return false
	}
	if o.bundle.Len() == 1 {
		o.first = *msg
	}
	return true
}

// seal publishes the bundle; a single request by itself.
func (o *outlet) seal(node string) {
	switch o.bundle.Len() {
	case 0:
		return
	case 1:
		o.carryOut(&o.first)
	default:
		o.put(subjects.BundleSubject(node, o.c.user), o.bundle.Reply(o.c.inbox+o.first.inbox), o.bundle.Body())
	}
	o.bundle.Reset()
	o.first = outgoing{}
}

// carryOut does what is to be done by itself.
func (o *outlet) carryOut(msg *outgoing) {
	switch msg.kind {
	case follow:
		o.follow(msg.subject)
	case listen:
		o.listen(msg.subject)
	case unlisten:
		o.end(o.boxes[msg.subject])
		delete(o.boxes, msg.subject)
	default:
		mark := ""
		if msg.op != "" {
			mark = subjects.TakesSheaves("")
		}
		o.put(msg.subject, o.c.inbox+msg.inbox+mark+msg.token, msg.body)
	}
}

func (o *outlet) put(subject, reply string, body []byte) {
	if err := o.nc.PublishRequest(subject, reply, body); err != nil {
		// The machine repeats it. Nothing else is lost: what was not sent was not heard.
		o.c.opts.log.Debug("publish", "subject", subject, "error", err)
	}
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
