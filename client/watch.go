package client

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync/atomic"

	"github.com/nats-io/nats.go"

	"github.com/opencluster/oclocks/subjects"
)

// WatchOptions says which events to watch; with none set, all but Session.
type WatchOptions struct {
	Server  bool // servers come, go and change
	Cluster bool // the cluster changes its mode
	Lock    bool // locks are granted, released, …; only zones that have these events switched on
	Session bool // the client's own session: opens it if there is none
	Buffer  int  // events kept for a slow reader, 1024 by default; beyond, the newest are dropped and Dropped counts
}

// Event is one event: the field of its family is set, the others are nil.
type Event struct {
	Subject string
	Server  *subjects.ServerEvent // of a server or of the cluster
	Lock    *subjects.LockEvent
	Session *subjects.SessionEvent
}

// Watcher receives events until it is stopped.
type Watcher struct {
	msgs    chan *nats.Msg
	subs    []*nats.Subscription
	stopped chan struct{}
	once    atomic.Bool
	client  *Client
}

const defaultBuffer = 1024

// Watch subscribes to events. Those that are published after it returned are received. Stop it when it is not needed any
// longer.
func (c *Client) Watch(ctx context.Context, o WatchOptions) (*Watcher, error) {
	if !o.Server && !o.Cluster && !o.Lock && !o.Session {
		o.Server, o.Cluster, o.Lock = true, true, true
	}
	if o.Buffer <= 0 {
		o.Buffer = defaultBuffer
	}
	var topics []string
	if o.Server {
		topics = append(topics, subjects.ServerEvents)
	}
	if o.Cluster {
		topics = append(topics, subjects.ClusterEvents)
	}
	if o.Lock {
		topics = append(topics, subjects.LockEvents)
	}
	if o.Session {
		info, err := c.Session(ctx)
		if err != nil {
			return nil, fmt.Errorf("watch: %w", err)
		}
		topics = append(topics, info.Events)
	}
	w := &Watcher{msgs: make(chan *nats.Msg, o.Buffer), stopped: make(chan struct{}), client: c}
	for _, topic := range topics {
		sub, err := c.nc.ChanSubscribe(topic, w.msgs)
		if err != nil {
			w.Stop()
			return nil, fmt.Errorf("watch %s: %w", topic, err)
		}
		w.subs = append(w.subs, sub)
	}
	flush, cancel := context.WithTimeout(ctx, c.opts.timeout)
	defer cancel()
	if err := c.nc.FlushWithContext(flush); err != nil {
		w.Stop()
		return nil, fmt.Errorf("watch: %w: %w", ErrUnavailable, err)
	}
	return w, nil
}

// Next waits for the next event. It returns ErrClosed once the watcher or the client is stopped.
func (w *Watcher) Next(ctx context.Context) (*Event, error) {
	for {
		select {
		case msg := <-w.msgs:
			if e := decodeEvent(msg); e != nil {
				return e, nil
			}
		case <-w.stopped:
			return nil, ErrClosed
		case <-w.client.quit:
			return nil, ErrClosed
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// Events gives the events until ctx ends or the watcher is stopped; that is the last error, if it is not ErrClosed.
func (w *Watcher) Events(ctx context.Context) iter.Seq2[*Event, error] {
	return func(yield func(*Event, error) bool) {
		for {
			e, err := w.Next(ctx)
			if errors.Is(err, ErrClosed) || !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// Dropped counts the events that were dropped because the reader was too slow.
func (w *Watcher) Dropped() (n int) {
	for _, sub := range w.subs {
		if dropped, err := sub.Dropped(); err == nil {
			n += dropped
		}
	}
	return n
}

// Stop ends the subscriptions. It may be called again.
func (w *Watcher) Stop() {
	if w.once.Swap(true) {
		return
	}
	close(w.stopped)
	for _, sub := range w.subs {
		if err := sub.Unsubscribe(); err != nil && !errors.Is(err, nats.ErrConnectionClosed) {
			w.client.opts.log.Debug("unsubscribe from events", "subject", sub.Subject, "error", err)
		}
	}
}

// decodeEvent reads an event, nil if the message is none: its body must repeat its subject.
func decodeEvent(msg *nats.Msg) *Event {
	address, err := subjects.ParseEvent(msg.Subject)
	if err != nil {
		return nil
	}
	e := &Event{Subject: msg.Subject}
	var claimed string
	switch address.Family {
	case subjects.FamilyLock:
		e.Lock = new(subjects.LockEvent)
		err, claimed = e.Lock.DecodeJSON(msg.Data), e.Lock.Subject
	case subjects.FamilySession:
		e.Session = new(subjects.SessionEvent)
		err, claimed = e.Session.DecodeJSON(msg.Data), e.Session.Subject
	default:
		e.Server = new(subjects.ServerEvent)
		err, claimed = e.Server.DecodeJSON(msg.Data), e.Server.Subject
	}
	if err != nil || claimed != msg.Subject {
		return nil
	}
	return e
}
