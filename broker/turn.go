package broker

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/opencluster/oclocks/bucket/replicated"
	"github.com/opencluster/oclocks/subjects"
)

// turn begins or ends that this node is asked about a bucket: it listens on the bucket's subject in every zone exactly
// while it is the primary, so NATS brings each request to the right node.
func (d *Daemon) turn(t replicated.Turn) {
	d.turns[t.Bucket].Store(t.Primary)
	for _, z := range *d.zones.Load() { // order: each has its own
		z.turn(t.Bucket)
	}
	if t.Primary {
		d.primaries.Add(1)
	} else {
		d.primaries.Add(-1)
	}
	select {
	case d.turned <- struct{}{}:
	default:
	}
}

// turn makes the zone's subscription of a bucket what it should be. It may be called at any time, from any goroutine.
func (z *zone) turn(number uint32) {
	z.turnMu.Lock()
	defer z.turnMu.Unlock()
	sub, there := z.hot[number]
	wanted := z.d.turns[number].Load() && !z.quiet && !z.d.still.Load()
	switch {
	case wanted && !there:
		sub, err := z.listen(subjects.HotPattern(number), queueGroup)
		if err != nil {
			z.d.log.Error("a zone's bucket is not listened for; requests for it wait until the next turn", "zone", z.name,
				"bucket", number, "error", err)
			return
		}
		z.hot[number] = sub
	case !wanted && there:
		delete(z.hot, number)
		z.unlisten(sub)
	}
}

// retire ends that this node is asked anything in the zone, and waits until what was asked before is on its way: the other
// nodes are asked instead, so that nobody is refused.
func (z *zone) retire(ctx context.Context) {
	z.turnMu.Lock()
	z.quiet = true
	subs := z.subs
	z.subs = nil // a node may be removed while it stops: withdraw
	z.turnMu.Unlock()
	z.mapAgain()
	for number := range uint32(z.d.buckets()) {
		z.turn(number)
	}
	z.unlisten(subs...)
	select {
	case <-z.unlistened():
	case <-ctx.Done():
		return
	}
	if err := z.conn.FlushWithContext(ctx); err != nil {
		z.d.log.Debug("end of the zone's subscriptions", "zone", z.name, "error", err)
		return
	}
	// What came before the answer to the flush is in the inbox by now, and this comes behind it.
	select {
	case z.inbox <- &nats.Msg{Sub: lastMessage}:
	case <-ctx.Done():
		return
	}
	select {
	case <-z.through:
	case <-ctx.Done():
	}
}

// withdraw ends that this node takes its turn on the simple path: it was removed, and knows less and less about who has a bucket.
// What is asked of this node alone it goes on answering; a bucket's subject it gives up with the bucket.
func (d *Daemon) withdraw() {
	d.zoneMu.Lock()
	defer d.zoneMu.Unlock()
	d.apart = true
	for _, z := range *d.zones.Load() { // order: each has its own
		z.withdraw()
	}
}

func (z *zone) withdraw() {
	z.turnMu.Lock()
	z.apart = true
	z.turnMu.Unlock()
	z.leaveTurns()
	z.mapAgain()
	timeout := time.NewTimer(natsTimeout)
	defer timeout.Stop()
	select {
	case <-z.unlistened():
	case <-timeout.C:
		z.d.log.Debug("the end of a zone's subscriptions takes long", "zone", z.name)
	}
}

// takeTurns has this node take its turn with the others on the simple path.
func (z *zone) takeTurns() error {
	for _, subject := range []string{"locks.*", "locks.*.*"} {
		if err := z.also(subject, queueGroup); err != nil {
			return err
		}
	}
	return nil
}

// leaveTurns ends that.
func (z *zone) leaveTurns() {
	z.turnMu.Lock()
	defer z.turnMu.Unlock()
	z.subs = slices.DeleteFunc(z.subs, func(sub *nats.Subscription) bool {
		if sub.Queue == "" {
			return false
		}
		z.unlisten(sub)
		return true
	})
}

// lastMessage is the subscription of the message that is behind all others.
var lastMessage = &nats.Subscription{}

// peers are the other nodes, as far as it concerns who can be asked.
type peers struct {
	away atomic.Pointer[map[uint64]bool]
}

// gone says whether a node is known not to be there.
func (p *peers) gone(node uint64) bool {
	away := p.away.Load()
	return away != nil && (*away)[node]
}

// set is called by one goroutine.
func (p *peers) set(node uint64, away bool) {
	next := make(map[uint64]bool)
	if old := p.away.Load(); old != nil {
		next = maps.Clone(*old)
	}
	if away {
		next[node] = true
	} else {
		delete(next, node)
	}
	p.away.Store(&next)
}

// listen subscribes to a subject of the zone; what comes goes to the pump.
func (z *zone) listen(subject, group string) (*nats.Subscription, error) {
	var sub *nats.Subscription
	var err error
	if group == "" {
		sub, err = z.conn.ChanSubscribe(subject, z.inbox)
	} else {
		sub, err = z.conn.ChanQueueSubscribe(subject, group, z.inbox)
	}
	if err != nil {
		return nil, fmt.Errorf("subscribe to %s: %w", subject, err)
	}
	if err := sub.SetPendingLimits(-1, -1); err != nil && sub.Type() != nats.ChanSubscription {
		return nil, fmt.Errorf("subscribe to %s: %w", subject, err)
	}
	return sub, nil
}
