package broker

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/opencluster/oclocks/broker/edge"
	"github.com/opencluster/oclocks/broker/natsd/inside"
	"github.com/opencluster/oclocks/conf"
	"github.com/opencluster/oclocks/subjects"
)

// queueGroup is the group of the broker's subscriptions: an overlap of two nodes while a bucket is handed over never
// delivers a request twice.
const queueGroup = "oclocks"

// zone is one tenant on this node: its connection into its account, its pump and its counters.
type zone struct {
	d        *Daemon
	name     string
	conn     *inside.Conn
	stats    serviceStats
	settings atomic.Pointer[conf.Zone]

	sessions *edge.Sessions // pump only
	scratch  []byte         // pump only

	holds, waiters, sessionCount atomic.Int64

	turnMu sync.Mutex
	hot    map[uint32]*inside.Subscription // of the buckets that this node is asked about
	quiet  bool                            // of none any more
	subs   []*inside.Subscription          // of everything else

	asking atomic.Int64 // requests that wait for other nodes

	stopping atomic.Bool
}

// newZone connects into the zone's account; nothing arrives before subscribe.
func (d *Daemon) newZone(settings conf.Zone) (*zone, error) {
	z := &zone{
		d: d, name: settings.Name,
		sessions: edge.NewSessions(d.secret, settings.Name), hot: make(map[uint32]*inside.Subscription),
	}
	z.stats.started = time.Now().UTC()
	z.configure(settings)
	conn, err := d.nats.OpenZone(settings.Name, "oclocks "+d.node, z.connError)
	if err != nil {
		return nil, fmt.Errorf("zone %s: connect into its account: %w", settings.Name, err)
	}
	z.conn = conn
	return z, nil
}

// subscribe asks for everything that this node answers in the zone: its buckets, the simple path in turn with the other
// nodes, and what every node answers (keep-alives, the micro service).
func (z *zone) subscribe() error {
	for number := range uint32(z.d.buckets()) {
		z.turn(number)
	}
	for _, subject := range []string{"locks.*", "locks.*.*"} {
		if err := z.also(subject, queueGroup); err != nil {
			return err
		}
	}
	each := []string{subjects.SimplePattern(subjects.OpKeep), subjects.KeepNodePattern(z.d.node)}
	for _, subject := range append(each, serviceSubjects(z.d.node)...) {
		if err := z.also(subject, ""); err != nil {
			return err
		}
	}
	// What other nodes still pass on is answered as long as anybody is there to do so: retire does not end it.
	if _, err := z.listen(forwardSubject(z.d.number), ""); err != nil {
		return err
	}
	if err := z.sync(); err != nil {
		return fmt.Errorf("subscribe: %w", err)
	}
	return nil
}

// also listens to a subject that is not a bucket's.
func (z *zone) also(subject, group string) error {
	sub, err := z.listen(subject, group)
	if err != nil {
		return err
	}
	z.turnMu.Lock()
	defer z.turnMu.Unlock()
	z.subs = append(z.subs, sub)
	return nil
}

// connError is told of what goes wrong on the zone's connection.
func (z *zone) connError(err error) {
	z.d.metrics.dropped.Inc()
	z.d.log.Warn("the zone's connection", "zone", z.name, "error", err)
}

// sync waits until the server has taken what was subscribed and published.
func (z *zone) sync() error {
	ctx, cancel := context.WithTimeout(context.Background(), natsTimeout)
	defer cancel()
	return z.conn.Sync(ctx)
}

// configure takes over settings; requests already queued are judged by the new quota.
func (z *zone) configure(settings conf.Zone) {
	settings.Quota = settings.Quota.WithDefaults()
	z.settings.Store(&settings)
}

// full tells which of the zone's quotas are used up.
func (z *zone) full() (holds, waiters, sessions bool) {
	q := &z.settings.Load().Quota
	return z.holds.Load() >= int64(q.Holds), z.waiters.Load() >= int64(q.Waiters),
		z.sessionCount.Load() >= int64(q.Sessions)
}

// count takes in what a zone has in the bucket now.
func (c *cell) count(z *zone) {
	before, now := c.usage[z.name], c.Table().Usage(z.name)
	if before == now {
		return
	}
	c.usage[z.name] = now
	z.holds.Add(int64(now.Holds - before.Holds))
	z.waiters.Add(int64(now.Waiters - before.Waiters))
	z.sessionCount.Add(int64(now.Sessions - before.Sessions))
}

// private says whether the zone's users have inboxes that nobody else may listen to.
func (z *zone) private() bool {
	s := z.settings.Load()
	return !s.Open && !s.SharedInboxes
}

// stop closes the connection, and the pump ends; what was published before is sent first.
func (z *zone) stop() {
	if err := z.sync(); err != nil {
		z.d.log.Debug("flush the zone's connection", "zone", z.name, "error", err)
	}
	z.conn.Close()
}
