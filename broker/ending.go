package broker

import (
	"sync"

	"github.com/nats-io/nats.go"
)

// ending ends the subscriptions of a zone, on a goroutine that there is while it has something to do.
type ending struct {
	mu   sync.Mutex
	subs []*nats.Subscription
	busy chan struct{} // closed when all are ended; nil: nothing is to be done
}

// endAtOnce is how many subscriptions of a zone are ended at a time; nats.go has a goroutine for each.
const endAtOnce = 16

// unlisten begins to end subscriptions. What the server has sent already still comes.
func (z *zone) unlisten(subs ...*nats.Subscription) {
	e := &z.ending
	e.mu.Lock()
	defer e.mu.Unlock()
	e.subs = append(e.subs, subs...)
	if e.busy == nil && len(e.subs) > 0 {
		e.busy = make(chan struct{})
		go z.end()
	}
}

// unlistened gives a channel that is closed when what unlisten was told of is ended.
func (z *zone) unlistened() <-chan struct{} {
	e := &z.ending
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.busy == nil {
		idle := make(chan struct{})
		close(idle)
		return idle
	}
	return e.busy
}

func (z *zone) end() {
	for subs := z.ending.next(); len(subs) > 0; subs = z.ending.next() {
		z.endSome(subs)
	}
}

// next gives what is to be ended next; nothing: it is idle from now on.
func (e *ending) next() []*nats.Subscription {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.subs) == 0 {
		close(e.busy)
		e.subs, e.busy = nil, nil
		return nil
	}
	n := min(endAtOnce, len(e.subs))
	some := e.subs[:n:n]
	e.subs = e.subs[n:]
	return some
}

// endSome ends some subscriptions, and returns when they are. Unsubscribe would drop what the server has sent already, so that nobody hears
// of those requests; where the connection is away there is nothing to drop.
//
// A connection that breaks meanwhile may be there again before Drain is through. Then nats.go (1.55) has subscribed to all that was not
// through once more, and knows nothing of it: the server would send requests to nobody. That is found out by the number of reconnects,
// which nats.go counts before it subscribes, and takes out a subscription, under one lock. Another connection ends it.
func (z *zone) endSome(subs []*nats.Subscription) {
	before := z.conn.Stats().Reconnects
	end, drains := (*nats.Subscription).Drain, z.conn.IsConnected()
	if !drains {
		end = (*nats.Subscription).Unsubscribe
	}
	ended, open := make(chan struct{}, len(subs)), 0
	for _, sub := range subs {
		if !sub.IsValid() { // it is over already, and would tell nobody
			continue
		}
		sub.SetClosedHandler(func(string) { ended <- struct{}{} })
		if err := end(sub); err != nil {
			z.d.log.Debug("end of a subscription", "zone", z.name, "subject", sub.Subject, "error", err)
			continue
		}
		open++
	}
	for range open {
		<-ended
	}
	if !drains || z.conn.Stats().Reconnects == before {
		return
	}
	if err := z.conn.ForceReconnect(); err != nil {
		z.d.log.Debug("end of subscriptions", "zone", z.name, "error", err)
	}
}
