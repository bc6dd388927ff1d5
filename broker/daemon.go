package broker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/opencluster/oclocks/broker/admin"
	"github.com/opencluster/oclocks/broker/control"
	"github.com/opencluster/oclocks/broker/natsd"
	"github.com/opencluster/oclocks/conf"
	"github.com/opencluster/oclocks/conf/shared"
	"github.com/opencluster/oclocks/internal/fault"
	"github.com/opencluster/oclocks/internal/journal"
	"github.com/opencluster/oclocks/subjects"
)

// natsTimeout bounds what the daemon asks of its own embedded server.
const natsTimeout = 5 * time.Second

// defaultLameDuck is how long clients are given to leave when the daemon stops.
const defaultLameDuck = time.Second

// Config is what a daemon is started with.
type Config struct {
	Settings *conf.Settings // validated by Start
	Identity *conf.Identity // what this node shows to others; read from the data directory, or made, if nil
	Auth     *conf.Auth     // keys of the operator and the accounts; made by Start if nil
	NodeID   string         // identifier of this node; drawn or read from the data directory if ""
	Version  string         // told in info and metrics
	Logger   *slog.Logger   // nil: slog.Default
	LameDuck time.Duration  // how long clients are given to leave at a stop, at least 100 ms; 0: 1 s

	CompactBytes int64 // the journal is not compacted while it is smaller; 0: 64 MiB
}

// Daemon is a running broker.
type Daemon struct {
	settings *conf.Settings
	auth     *conf.Auth
	node     string
	version  string
	secret   []byte // of the cluster: receipts and session tokens
	lameDuck time.Duration
	keepSize int64
	log      *slog.Logger
	metrics  *metrics

	identity   *conf.Identity // nil: no other node can be with this one
	mayFound   bool           // a cluster, if the control store is empty
	nats       *natsd.Server
	nodes      *nats.Conn // into the account of the nodes: the control plane's
	control    *control.Control
	links      *links
	journal    *journal.Journal // nil: nothing is kept
	number     uint64           // of this node in its cluster
	life       uint64           // of this node: how often it has begun without all that it had
	count      atomic.Int64     // of buckets
	shards     []*shard
	sharded    atomic.Bool                    // shards is set
	turns      [conf.MaxBuckets]turnFlag      // by bucket: this node is asked about it
	heads      [conf.MaxBuckets]atomic.Uint64 // by bucket: the node that is its primary, if it is another one; 0: not known
	turned     chan struct{}                  // a bucket's turn, or the shared state, has changed; holds one
	adopted    chan struct{}                  // the shared state has changed; holds one
	apart      bool                           // zones that are added take no turn with those of the other nodes: see withdraw; guarded by zoneMu
	closing    bool                           // Stop has begun: the zones stay as they are; guarded by reloading
	zonesAt    *shared.State                  // the zones, keys and routes are those of this state; guarded by reloading
	state      atomic.Pointer[shared.State]
	peers      peers
	stopping   nodeSet // other nodes that have told that they stop
	events     *events
	live       atomic.Int64 // nodes that hold a lease, as of this node's last one
	leased     atomic.Bool  // the node has had a lease
	leaseUntil atomic.Int64 // the end of the last one, boot time in nanoseconds
	primaries  atomic.Int64
	zones      atomic.Pointer[map[string]*zone]
	tools      atomic.Pointer[admin.Server] // nil: there are none
	closeDoor  func() error                 // no more nodes are let in; nil: none were
	system     *systemWatch
	http       *httpServer

	reloading sync.Mutex // one Reload at a time, and none during Stop
	zoneMu    sync.Mutex // starting, removing, changing zones
	ready     atomic.Bool
	still     atomic.Bool // a shard stands still: see pulse.go
	drained   atomic.Bool // no more requests come: a shard that has nothing left ends
	compact   chan struct{}
	helpers   sync.WaitGroup // goroutines besides the shards and pumps; they end with over

	failOnce sync.Once
	failure  atomic.Pointer[error]
	over     chan struct{} // closed when the daemon has failed or stopped
	overOnce sync.Once
	stopOnce sync.Once
	stopErr  error
}

// Start starts a daemon and returns when it serves. The context bounds the start only; [Daemon.Stop] ends the daemon.
func Start(ctx context.Context, cfg Config) (*Daemon, error) {
	if err := enter(ctx, &cfg); err != nil {
		return nil, err
	}
	d, err := newDaemon(cfg)
	if err != nil {
		return nil, err
	}
	if err := d.start(ctx); err != nil {
		return nil, errors.Join(err, d.abandon())
	}
	return d, nil
}

func newDaemon(cfg Config) (*Daemon, error) {
	settings := *cfg.Settings
	if err := settings.Validate(); err != nil {
		return nil, fmt.Errorf("settings: %w", err)
	}
	d := &Daemon{
		settings: &settings, auth: cfg.Auth, node: cfg.NodeID, version: cfg.Version, log: cfg.Logger,
		lameDuck: cmp.Or(cfg.LameDuck, defaultLameDuck),
		keepSize: cfg.CompactBytes,
		identity: cfg.Identity, events: newEvents(),
		over: make(chan struct{}), compact: make(chan struct{}, 1), turned: make(chan struct{}, 1), adopted: make(chan struct{}, 1),
	}
	if d.log == nil {
		d.log = slog.Default()
	}
	if d.version == "" {
		d.version = "devel"
	}
	var err error
	if d.node == "" {
		if d.node, err = conf.NodeID(settings.Data); err != nil {
			return nil, err
		}
	}
	if d.auth == nil {
		if d.auth, err = openAuth(settings.Data); err != nil {
			return nil, err
		}
	}
	d.secret = d.auth.Secret()
	d.metrics = newMetrics(d)
	empty := make(map[string]*zone)
	d.zones.Store(&empty)
	return d, nil
}

func openAuth(dir string) (*conf.Auth, error) {
	if dir == "" {
		return conf.NewAuth()
	}
	return conf.OpenAuth(dir)
}

// start brings everything up in the order in which it is needed: the journal tells whether the node is whole, the server
// reaches the others, the control plane tells who this node is, then come its copies, and the zones after everything that a
// request may touch.
func (d *Daemon) start(ctx context.Context) error {
	if fault.File() != "" {
		d.log.Warn("this daemon goes wrong on purpose: it is a test's", "faults", fault.File())
	}
	past, err := d.openJournal()
	if err != nil {
		return err
	}
	if err := d.startServer(ctx); err != nil {
		return err
	}
	state, err := d.register(ctx, past)
	if err != nil {
		return err
	}
	if err := d.settle(); err != nil {
		return err
	}
	if err := d.openBuckets(past, state); err != nil {
		return err
	}
	if err := d.serve(ctx, state); err != nil {
		return err
	}
	d.ready.Store(true)
	if tools := d.tools.Load(); tools != nil {
		if err := tools.Serving(); err != nil {
			return err
		}
	}
	d.announce(statusUp)
	d.helpers.Go(d.tellEvents)
	d.log.Info("serving", "url", d.nats.ClientURL(), "node", d.node, "number", d.number, "zones", len(state.Zones),
		"buckets", d.buckets(), "data", d.settings.Data)
	return nil
}

// serve starts the shards, gives them to the control plane, and lets clients in.
func (d *Daemon) serve(ctx context.Context, state *shared.State) error {
	conn, err := d.nats.ConnectNodes(nats.Name("oclocks chains " + d.node))
	if err != nil {
		return fmt.Errorf("connect for the chains: %w", err)
	}
	if d.links, err = d.openLinks(conn, d.number); err != nil {
		return err
	}
	for _, s := range d.shards {
		go s.run()
	}
	d.control.Serve(newCopies(d, state))
	if d.system, err = d.watchSystem(); err != nil {
		return err
	}
	if d.journal != nil {
		d.helpers.Go(d.compactor)
		d.helpers.Go(d.watchJournal)
	}
	d.helpers.Go(d.watchControl)
	d.helpers.Go(d.watchShards)
	if err := d.serveOperators(ctx); err != nil {
		return err
	}
	if err := d.openZones(ctx, state); err != nil {
		return err
	}
	d.helpers.Go(d.follow)
	if d.settings.HTTP != "off" {
		if d.http, err = d.serveHTTP(d.settings.HTTP); err != nil {
			return err
		}
	}
	return d.waitServing(ctx)
}

// shardCount is one shard for every two processors, at most one for each bucket. A shard needs a fifth of what a request takes of a
// node, the rest is NATS; with fewer shards more requests share a batch, its write and its frames.
func shardCount(buckets int) int { return min((runtime.GOMAXPROCS(0)+1)/2, buckets) }

// buckets is how many there are.
func (d *Daemon) buckets() int { return int(d.count.Load()) }

// turnFlag says whether this node is asked about a bucket.
type turnFlag struct{ atomic.Bool }

func (d *Daemon) shardOf(number uint32) *shard { return d.shards[int(number)%len(d.shards)] }

// zone is the zone of that name, nil if there is none.
func (d *Daemon) zone(name string) *zone { return (*d.zones.Load())[name] }

// URL is where clients connect.
func (d *Daemon) URL() string { return d.nats.ClientURL() }

// RouteURL is where other daemons connect, HOST:PORT; "" if none can.
func (d *Daemon) RouteURL() string {
	if addr := d.nats.RouteAddr(); addr != nil {
		return addr.String()
	}
	return ""
}

// Node is the daemon's identifier.
func (d *Daemon) Node() string { return d.node }

// HTTPAddr is where health and metrics are served, "" if nowhere.
func (d *Daemon) HTTPAddr() string {
	if d.http == nil {
		return ""
	}
	return d.http.addr
}

// Auth is the daemon's key material, for issuing users.
func (d *Daemon) Auth() *conf.Auth { return d.auth }

// Wait returns when the daemon is over: ErrStopped after Stop, the reason when it failed by itself.
func (d *Daemon) Wait() error {
	<-d.over
	if err := d.failure.Load(); err != nil {
		return *err
	}
	return ErrStopped
}

// commit makes changes durable, as far as the settings say, and returns when they may be answered.
func (d *Daemon) commit(records []journal.Record) error {
	if d.journal == nil {
		return nil
	}
	if err := d.journal.Append(records); err != nil {
		return err
	}
	if d.journal.NeedsCompaction() {
		select {
		case d.compact <- struct{}{}:
		default:
		}
	}
	return nil
}

// fail ends the daemon for a reason that leaves it nothing safe to do: it answers nothing more.
func (d *Daemon) fail(err error) {
	if d.end(err) {
		d.log.Error("the daemon cannot go on", "error", err)
	}
}

// end makes the shards stop where they are; it tells whether this is the first reason to.
func (d *Daemon) end(err error) (first bool) {
	d.failOnce.Do(func() {
		first = true
		d.failure.Store(&err)
		d.ready.Store(false)
		d.overOnce.Do(func() { close(d.over) })
		for _, s := range d.shards {
			s.queue.kick()
		}
	})
	return first
}

func (d *Daemon) failed() bool { return d.failure.Load() != nil }

// bucketMap is the map that clients are told.
func (d *Daemon) bucketMap() subjects.Map {
	state := d.state.Load()
	m := subjects.Map{Change: state.Change}
	if state.Settings.HideServers {
		return m
	}
	names := make(map[uint64]string, len(state.Nodes))
	for i := range state.Nodes {
		names[state.Nodes[i].Number] = state.Nodes[i].ID
	}
	m.Primary = make([]string, len(state.Views))
	for i := range state.Views {
		if state.Views[i].Epoch > 0 {
			m.Primary[i] = names[state.Views[i].Primary().Node]
		}
	}
	return m
}
