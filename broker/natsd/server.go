package natsd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/opencluster/oclocks/conf"
)

const (
	// MaxPayload is the size of the largest message, in bytes: large enough that an oversized request still reaches the
	// broker, which answers it with 413.
	MaxPayload = 1 << 20

	// A client that does not answer this many pings is disconnected as stale. Its locks end by their leases, not by this.
	pingInterval = 20 * time.Second
	maxPings     = 2

	maxConnections  = 100_000
	maxClosedStored = 64 // closed connections that nats-server remembers for monitoring, which nobody asks for here
	readyTimeout    = 10 * time.Second
	readyPoll       = 50 * time.Millisecond

	// DefaultLameDuck is how long clients are given to leave.
	DefaultLameDuck = 2 * time.Second
)

// Config is what a Server is started with.
type Config struct {
	ServerName  string // unique in the cluster
	Listen      string // HOST:PORT for clients; port 0 for any
	Auth        *conf.Auth
	Zones       []conf.Zone // valid and with different names
	Logger      *slog.Logger
	LameDuck    time.Duration // how long clients are given to leave, at least 100 ms; 0 for DefaultLameDuck
	HideServers bool          // clients do not learn of other servers
	Cluster     *Cluster      // nil: no other server can connect
}

// Server is a running NATS server. Its methods may be called at the same time.
type Server struct {
	cfg      Config
	log      *slog.Logger
	ns       *server.Server
	accounts *accounts
	routes   *routes // nil without a cluster

	applying sync.Mutex                   // one change of zones or options at a time
	base     *server.Options              // as nats-server has them, without what it fills in itself; replaced as a whole
	open     string                       // the zone that connections without credentials land in, "" for none
	here     map[string]map[string]string // by zone: what Here was told

	mu       sync.Mutex
	stopping bool
	conns    map[string][]*nats.Conn // the broker's own, by zone; "" for the other accounts
}

// Start makes the accounts of the zones and starts the server. It listens when Start returns.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	if cfg.LameDuck == 0 {
		cfg.LameDuck = DefaultLameDuck
	}
	if cfg.LameDuck < 100*time.Millisecond {
		return nil, fmt.Errorf("a lame duck time of %s: expected at least 100ms", cfg.LameDuck)
	}
	s := &Server{cfg: cfg, log: cfg.Logger.With("room", "nats"), conns: map[string][]*nats.Conn{}, here: map[string]map[string]string{}}
	bridge := newBridge(s.log)
	if cfg.Cluster != nil {
		s.routes = newRoutes(s)
		bridge.noticed = func() { signal(s.routes.hint) }
	}
	opts, err := s.options()
	if err != nil {
		return nil, fmt.Errorf("prepare the NATS server: %w", err)
	}
	if s.routes != nil {
		s.routes.prepare(ctx, opts)
	}
	s.base = cloneOptions(opts)
	if s.ns, err = server.NewServer(opts); err != nil {
		return nil, fmt.Errorf("make the NATS server: %w", err)
	}
	s.ns.SetAccountResolver(s.accounts)
	s.ns.SetLoggerV2(bridge, s.log.Enabled(ctx, slog.LevelDebug), false, false)
	s.ns.Start()
	if err := s.ready(ctx, bridge); err != nil {
		return nil, errors.Join(err, s.Stop(context.WithoutCancel(ctx)))
	}
	if s.routes != nil {
		s.routes.start(ctx)
	}
	return s, nil
}

// ready waits until clients and other servers can connect.
func (s *Server) ready(ctx context.Context, bridge *bridge) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	for {
		if err := bridge.fatal(); err != nil {
			return fmt.Errorf("%w; choose another address with --listen or --cluster-listen", err)
		}
		if s.ns.ReadyForConnections(readyPoll) {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("start the NATS server on %s: it accepts no connections: %w", s.cfg.Listen, ctx.Err())
		}
	}
}

func (s *Server) options() (*server.Options, error) {
	host, portText, err := net.SplitHostPort(s.cfg.Listen)
	if err != nil {
		return nil, fmt.Errorf("listen address: %w", err)
	}
	port, err := strconv.ParseUint(portText, 10, 16)
	if err != nil {
		return nil, fmt.Errorf("port of the listen address %s: %w", s.cfg.Listen, err)
	}
	operator, err := s.cfg.Auth.Operator()
	if err != nil {
		return nil, err
	}
	if s.accounts, err = newAccounts(s.cfg.Auth, s.cfg.Zones); err != nil {
		return nil, err
	}
	resolver, err := s.accounts.snapshot()
	if err != nil {
		return nil, err
	}
	opts := &server.Options{
		ServerName:       s.cfg.ServerName,
		Host:             host,
		Port:             int(port),
		AccountResolver:  resolver,
		SystemAccount:    operator.SystemAccount,
		NoSigs:           true,
		MaxPayload:       MaxPayload,
		MaxConn:          maxConnections,
		MaxClosedClients: maxClosedStored,
		PingInterval:     pingInterval,
		MaxPingsOut:      maxPings,

		// A client that does not read must not slow the broker down, and with it everybody else: what it misses it asks for
		// again.
		NoFastProducerStall: true,

		// Nearly every subject that is looked up a second time is a request's, and of those each connection remembers what it has found. What
		// an account remembers beside is reply subjects, which never come again.
		NoSublistCache: true,

		LameDuckDuration:    s.cfg.LameDuck,
		LameDuckGracePeriod: s.cfg.LameDuck / 4,
	}
	opts.TrustedOperators = append(opts.TrustedOperators, operator)
	opts.Cluster.NoAdvertise = s.cfg.HideServers
	if port == 0 {
		opts.Port = server.RANDOM_PORT
	}
	if s.cfg.Cluster != nil {
		if err := s.clusterOptions(opts); err != nil {
			return nil, err
		}
	}
	for _, z := range s.cfg.Zones {
		if !z.Open {
			continue
		}
		s.open = z.Name
		if opts.DefaultSentinel, err = s.cfg.Auth.Sentinel(z.Name); err != nil {
			return nil, err
		}
	}
	return opts, nil
}

// reload changes options of the running server; those that it can change are few. It is called with applying locked.
// nats-server then looks at all clients again, whether they are still allowed, so it is not done without need.
func (s *Server) reload(change func(*server.Options)) error {
	if s.isStopping() {
		return ErrStopping
	}
	resolver, err := s.accounts.snapshot()
	if err != nil {
		return err
	}
	next := cloneOptions(s.base)
	change(next)
	next.AccountResolver = resolver
	base := cloneOptions(next)
	defer s.ns.SetAccountResolver(s.accounts)
	if err := s.ns.ReloadOptions(next); err != nil {
		return fmt.Errorf("change the options of the NATS server: %w", err)
	}
	s.base = base
	var errs []error
	for zone := range s.here { // order: each by itself
		if id, ok := s.accounts.id(zone); ok {
			errs = append(errs, s.mapHere(zone, id))
		}
	}
	return errors.Join(errs...)
}

// cloneOptions keeps the TLS configuration itself, in which nats-server would else see a change.
func cloneOptions(opts *server.Options) *server.Options {
	clone := opts.Clone()
	clone.Cluster.TLSConfig = opts.Cluster.TLSConfig
	clone.Cluster.PinnedAccounts = slices.Clone(opts.Cluster.PinnedAccounts) // which nats-server adds to
	return clone
}

// ClientURL is where clients connect, such as nats://127.0.0.1:4222.
func (s *Server) ClientURL() string { return s.ns.ClientURL() }

// Addr is the address that clients connect to, with the port that was chosen if port 0 was asked for.
func (s *Server) Addr() net.Addr { return s.ns.Addr() }

// ID is the server's id, as clients see it in INFO and as events tell it. It is another one after each start.
func (s *Server) ID() string { return s.ns.ID() }

// Stats are counts for metrics.
type Stats struct {
	Connections   map[string]int // of clients, by zone; the broker's own are not counted
	Subscriptions int            // in all accounts, the server's own with them
	SlowConsumers int64          // connections closed so far, because they did not read fast enough
}

// Stats counts. A connection that closes meanwhile may or may not be counted.
func (s *Server) Stats() Stats {
	st := Stats{
		Connections:   map[string]int{},
		Subscriptions: int(s.ns.NumSubscriptions()),
		SlowConsumers: s.ns.NumSlowConsumers(),
	}
	for id, zone := range s.accounts.zoneIDs() {
		account, err := s.ns.LookupAccount(id)
		if err != nil { // removed just now
			continue
		}
		st.Connections[zone] = max(0, account.NumLocalConnections()-s.connected(zone))
	}
	return st
}

// LameDuck stops listening, tells the clients with an INFO that this server goes away, gives them Config.LameDuck to
// leave, closes the others and stops the server. It returns when that is done, or early with ctx's error when ctx ends;
// then the rest is closed at once. Close the broker's own connections before: they count as clients. Disconnects that it
// causes are not ones by the client.
func (s *Server) LameDuck(ctx context.Context) error {
	s.markStopping()
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.ns.LameDuckShutdown()
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		s.ns.Shutdown()
		<-done
		return fmt.Errorf("lame duck: %w", ctx.Err())
	}
}

// Stop closes the broker's own connections, then all others, and waits until the server is gone, or for ctx.
func (s *Server) Stop(ctx context.Context) error {
	s.markStopping()
	if s.routes != nil {
		s.routes.stop()
	}
	s.closeOwn()
	s.ns.Shutdown()
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		s.ns.WaitForShutdown()
	}()
	select {
	case <-gone:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("stop the NATS server: %w", ctx.Err())
	}
}

func (s *Server) markStopping() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopping = true
}

func (s *Server) isStopping() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stopping
}
