package natsd

import (
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/opencluster/oclocks/conf"
)

const (
	connectTimeout = 5 * time.Second
	reconnectWait  = 20 * time.Millisecond
)

// ConnectSystem connects to the system account, with all permissions. Like all connections that are made here it stays
// inside the process, comes back by itself, keeps nothing to publish while it is away, and is closed by Stop. ErrStopping
// once LameDuck or Stop has begun. opts win over what is set here.
func (s *Server) ConnectSystem(opts ...nats.Option) (*nats.Conn, error) {
	creds, err := s.cfg.Auth.SystemUser()
	if err != nil {
		return nil, fmt.Errorf("connect to the system account: %w", err)
	}
	return s.connect("", "oclocks system", creds, opts)
}

// ConnectNodes connects to the account in which nodes talk to each other.
func (s *Server) ConnectNodes(opts ...nats.Option) (*nats.Conn, error) {
	creds, err := s.cfg.Auth.NodesUser()
	if err != nil {
		return nil, fmt.Errorf("connect to the account of the nodes: %w", err)
	}
	return s.connect("", "oclocks nodes", creds, opts)
}

// ConnectZone connects to a zone, with all permissions in it. ErrNoZone if it is not served. There is room for
// conf.InternalConnections of them; they are closed when the zone is removed.
func (s *Server) ConnectZone(name string, opts ...nats.Option) (*nats.Conn, error) {
	if _, ok := s.accounts.id(name); !ok {
		return nil, fmt.Errorf("connect to zone %s: %w", name, ErrNoZone)
	}
	creds, err := s.cfg.Auth.ZoneUser(name)
	if err != nil {
		return nil, fmt.Errorf("connect to zone %s: %w", name, err)
	}
	return s.connect(name, "oclocks "+name, creds, opts)
}

func (s *Server) connect(zone, name string, creds conf.Credentials, opts []nats.Option) (*nats.Conn, error) {
	log := s.log.With("connection", name)
	all := append([]nats.Option{
		nats.Name(name),
		nats.InProcessServer(inProcess{s}),
		nats.FlusherTimeout(0), // the connection has its own, see limited
		nats.UserJWT(func() (string, error) { return creds.JWT, nil }, creds.Pair.Sign),
		nats.Timeout(connectTimeout),
		nats.MaxReconnects(-1),
		nats.ReconnectWait(reconnectWait),
		nats.ReconnectJitter(reconnectWait, reconnectWait),
		nats.IgnoreDiscoveredServers(),
		// A message that is published late may contradict what others have been told since.
		nats.ReconnectBufSize(-1),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil && !s.isStopping() {
				log.Warn("the broker's own NATS connection is lost", "error", err)
			}
		}),
		nats.ErrorHandler(func(_ *nats.Conn, sub *nats.Subscription, err error) {
			subject := ""
			if sub != nil {
				subject = sub.Subject
			}
			log.Error("the broker's own NATS connection reports an error", "subject", subject, "error", err)
		}),
	}, opts...)
	nc, err := nats.Connect("", all...)
	if err != nil {
		return nil, fmt.Errorf("connect %s inside the process: %w", name, err)
	}
	return s.keep(zone, nc)
}

// keep remembers a connection, so that Stop closes it.
func (s *Server) keep(zone string, nc *nats.Conn) (*nats.Conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping {
		nc.Close()
		return nil, ErrStopping
	}
	open := slices.DeleteFunc(s.conns[zone], (*nats.Conn).IsClosed)
	s.conns[zone] = append(open, nc)
	return nc, nil
}

// connected counts the broker's own connections in a zone.
func (s *Server) connected(zone string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, nc := range s.conns[zone] {
		if nc.IsConnected() {
			n++
		}
	}
	return n
}

// closeOwn closes the broker's own connections: of the zones that are named, of all if none is.
func (s *Server) closeOwn(zones ...string) {
	s.mu.Lock()
	var conns []*nats.Conn
	for zone, of := range s.conns {
		if len(zones) == 0 || slices.Contains(zones, zone) {
			conns = append(conns, of...)
			delete(s.conns, zone)
		}
	}
	s.mu.Unlock()
	for _, nc := range conns {
		nc.Close()
	}
}

// inProcess is what nats.go dials. nats-server leaves a connection hanging that is opened after lame duck began.
type inProcess struct{ s *Server }

func (p inProcess) InProcessConn() (net.Conn, error) {
	if p.s.isStopping() {
		return nil, ErrStopping
	}
	conn, err := p.s.ns.InProcessConn()
	if err != nil {
		return nil, err
	}
	return &limited{Conn: conn}, nil
}

// writeLimit is how long a write to the server takes at the most; the least is half of it.
const writeLimit = time.Minute

// limited is a connection whose writes have a time limit. To move that of a pipe is a timer and a channel each time, which for nats.go is
// before and after each write; here the limit moves when half of it has gone.
type limited struct {
	net.Conn

	mu    sync.Mutex
	until time.Time // of the writes; zero: none is set here
}

// Write has at least half of the limit.
func (c *limited) Write(b []byte) (int, error) {
	if err := c.limit(time.Now()); err != nil {
		return 0, err
	}
	return c.Conn.Write(b)
}

func (c *limited) limit(now time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.until.Sub(now) >= writeLimit/2 {
		return nil
	}
	c.until = now.Add(writeLimit)
	return c.Conn.SetWriteDeadline(c.until)
}

// SetDeadline is of reads and writes; the next write has the usual limit again.
func (c *limited) SetDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.until = time.Time{}
	return c.Conn.SetDeadline(t)
}

// SetWriteDeadline is likewise.
func (c *limited) SetWriteDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.until = time.Time{}
	return c.Conn.SetWriteDeadline(t)
}
