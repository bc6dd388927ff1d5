package broker

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/opencluster/oclocks/broker/edge"
	"github.com/opencluster/oclocks/conf"
	"github.com/opencluster/oclocks/subjects"
)

// inboxSize is how many messages of a zone may be on their way from its connection to its pump.
const inboxSize = 8 << 10

// queueGroup is the group of the broker's subscriptions: an overlap of two nodes while a bucket is handed over never
// delivers a request twice.
const queueGroup = "oclocks"

// zone is one tenant on this node: its connection into its account, its pump and its counters.
type zone struct {
	d        *Daemon
	name     string
	conn     *nats.Conn
	here     string // begins the subjects that only this node listens to (here.go)
	bundles  string // begins the subject of bundles for this node (bundle.go); the user's token follows
	outward  outward
	aside    aside
	inbox    chan *nats.Msg
	stats    serviceStats
	settings atomic.Pointer[conf.Zone]

	sessions *edge.Sessions // pump only
	passages []*passage     // pump only: that have something to send
	pen      pen            // pump only: for refusals of what came in a bundle
	simples  simpleRate     // pump only
	texts    subjects.Texts // pump only: of requests, which the tables copy where they keep one

	holds, waiters, sessionCount atomic.Int64

	turnMu  sync.Mutex                    // shards stand behind it, so nothing is waited for with it
	hot     map[uint32]*nats.Subscription // of the buckets that this node is asked about
	quiet   bool                          // of none any more
	apart   bool                          // the node takes no turn with the others
	listens bool                          // to everything that it is to
	away    bool                          // the connection is
	often   bool                          // simple requests come often
	subs    []*nats.Subscription          // of everything else
	ending  ending
	through chan struct{} // the pump has come to the last message; holds one

	hereMu  sync.Mutex // held while mapped is changed
	mapped  bool       // requests of this server's clients come to this node
	mapping sync.WaitGroup

	asking atomic.Int64 // requests that wait for other nodes

	stopping atomic.Bool
	quit     chan struct{}
	quitOnce sync.Once
	done     chan struct{}
}

// newZone connects into the zone's account and starts the pump; nothing arrives before subscribe.
func (d *Daemon) newZone(settings conf.Zone) (*zone, error) {
	z := &zone{
		d: d, name: settings.Name, here: herePrefix(d.number), bundles: subjects.BundleSubject(d.node, ""), inbox: make(chan *nats.Msg, inboxSize),
		sessions: edge.NewSessions(d.secret, settings.Name), hot: make(map[uint32]*nats.Subscription), through: make(chan struct{}, 1), quit: make(chan struct{}), done: make(chan struct{}),
	}
	z.stats.started = time.Now().UTC()
	z.configure(settings)
	conn, err := d.nats.ConnectZone(settings.Name, nats.Name("oclocks "+d.node), nats.ErrorHandler(z.connError),
		nats.DisconnectErrHandler(z.lost), nats.ReconnectHandler(z.back))
	if err != nil {
		return nil, fmt.Errorf("zone %s: connect into its account: %w", settings.Name, err)
	}
	z.conn = conn
	go z.pump()
	return z, nil
}

// subscribe asks for everything that this node answers in the zone: its buckets, the simple path in turn with the other
// nodes, and what every node answers (keep-alives, the micro service).
func (z *zone) subscribe() error {
	for number := range uint32(z.d.buckets()) {
		z.turn(number)
	}
	if err := z.takeTurns(); err != nil {
		return err
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
	if err := z.also(subjects.BundlePattern(z.d.node), ""); err != nil {
		return err
	}
	if z.d.settings.Clustered() {
		if err := z.also(z.here+"*.*", ""); err != nil {
			return err
		}
	}
	if err := z.conn.FlushTimeout(natsTimeout); err != nil {
		return fmt.Errorf("subscribe: %w", err)
	}
	return z.comeHere()
}

// also listens to a subject that is not a bucket's; group says that the nodes take turns.
func (z *zone) also(subject, group string) error {
	z.turnMu.Lock()
	defer z.turnMu.Unlock()
	listens := func(sub *nats.Subscription) bool { return sub.Subject == subject && sub.Queue == group }
	if group != "" && (z.apart || z.quiet || z.d.still.Load()) || slices.ContainsFunc(z.subs, listens) {
		return nil
	}
	sub, err := z.listen(subject, group)
	if err != nil {
		return err
	}
	z.subs = append(z.subs, sub)
	return nil
}

// connError is told of what goes wrong on the zone's connection; a slow consumer is the pump's channel being full.
func (z *zone) connError(_ *nats.Conn, sub *nats.Subscription, err error) {
	subject := ""
	if sub != nil {
		subject = sub.Subject
	}
	z.d.metrics.dropped.Inc()
	z.d.log.Warn("the zone's connection", "zone", z.name, "subject", subject, "error", err)
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

// stop ends the pump and closes the connection; what was published before is sent first.
func (z *zone) stop() {
	z.quitOnce.Do(func() { close(z.quit) })
	<-z.done
	z.mapping.Wait()
	z.stayAway()
	if err := z.conn.FlushTimeout(natsTimeout); err != nil {
		z.d.log.Debug("flush the zone's connection", "zone", z.name, "error", err)
	}
	z.conn.Close()
	<-z.unlistened()
}
