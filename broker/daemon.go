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

	"github.com/opencluster/oclocks/broker/natsd"
	"github.com/opencluster/oclocks/bucket"
	"github.com/opencluster/oclocks/conf"
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

	nats    *natsd.Server
	journal *journal.Journal // nil: nothing is kept
	// Nothing is granted before this boot time, in nanoseconds; 0 after a clean start.
	recoverUntil int64
	shards       []*shard
	zones        atomic.Pointer[map[string]*zone]
	system       *systemWatch
	http         *httpServer

	reloading sync.Mutex // one Reload at a time, and none during Stop
	zoneMu    sync.Mutex // starting, removing, changing zones
	ready     atomic.Bool
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
		over:     make(chan struct{}), compact: make(chan struct{}, 1),
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

// start brings everything up in the order in which it is needed: tables before anybody can ask, zones after everything
// that a request may touch.
func (d *Daemon) start(ctx context.Context) error {
	if err := d.openTables(); err != nil {
		return err
	}
	var err error
	d.nats, err = natsd.Start(ctx, natsd.Config{
		ServerName: d.node, Listen: d.settings.Listen, Auth: d.auth, Zones: d.settings.Zones, Logger: d.log,
		LameDuck: d.lameDuck, HideServers: d.settings.HideServers,
	})
	if err != nil {
		return fmt.Errorf("start the embedded NATS server: %w", err)
	}
	if d.system, err = d.watchSystem(); err != nil {
		return err
	}
	for _, s := range d.shards {
		go s.run()
	}
	if d.journal != nil {
		d.helpers.Go(d.compactor)
		d.helpers.Go(d.watchJournal)
	}
	for _, settings := range d.settings.Zones {
		if err := d.addZone(settings); err != nil {
			return err
		}
	}
	if d.settings.HTTP != "off" {
		if d.http, err = d.serveHTTP(d.settings.HTTP); err != nil {
			return err
		}
	}
	d.ready.Store(true)
	d.announce("up", "up")
	d.log.Info("serving", "url", d.nats.ClientURL(), "node", d.node, "zones", len(d.settings.Zones),
		"buckets", d.settings.Buckets, "data", d.settings.Data)
	return nil
}

// shardCount is one shard for each processor, at most one for each bucket.
func shardCount(buckets uint32) int { return min(runtime.GOMAXPROCS(0), int(buckets)) }

func (d *Daemon) shardOf(number uint32) *shard { return d.shards[int(number)%len(d.shards)] }

// zone is the zone of that name, nil if there is none.
func (d *Daemon) zone(name string) *zone { return (*d.zones.Load())[name] }

// URL is where clients connect.
func (d *Daemon) URL() string { return d.nats.ClientURL() }

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
	m := subjects.Map{Change: 1}
	if !d.settings.HideServers {
		m.Primary = make([]string, d.settings.Buckets)
		for i := range m.Primary {
			m.Primary[i] = d.node
		}
	}
	return m
}

func (d *Daemon) server() subjects.Server {
	status := "up"
	if !d.ready.Load() {
		status = "stopping"
	}
	return subjects.Server{Node: d.node, Name: d.settings.Node, URLs: []string{d.nats.ClientURL()},
		Location: d.settings.Location, Status: status}
}

// announce tells every zone that this server, and with it the cluster, is up or down.
func (d *Daemon) announce(kind, status string) {
	server := d.server()
	for _, z := range *d.zones.Load() {
		node := &subjects.ServerEvent{Subject: subjects.ServerEventSubject(kind, d.node), Type: "server." + kind,
			Node: d.node, Name: server.Name, URLs: server.URLs, Status: status}
		if d.settings.HideServers {
			node.URLs = nil
		}
		cluster := &subjects.ServerEvent{Subject: subjects.ClusterEventSubject(kind), Type: "cluster." + kind, Mode: "normal"}
		for _, event := range []*subjects.ServerEvent{node, cluster} {
			z.publish(event.Subject, event.AppendJSON(nil))
		}
	}
}

// tableConfig is what every table of this daemon is made with.
func (d *Daemon) tableConfig(number uint32) bucket.Config {
	return bucket.Config{
		Bucket: number, Buckets: d.settings.Buckets, Hash: keyedHash,
		Limits:    bucket.Limits{MaxLease: d.settings.MaxLease},
		Journaled: d.journal != nil, SyncAlways: d.journal != nil && d.settings.Sync == conf.SyncAlways,
	}
}
