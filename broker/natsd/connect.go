package natsd

import (
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/opencluster/oclocks/broker/natsd/inside"
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

// OpenNodes is ConnectNodes for what is on the way of every request. report is told what goes wrong on the connection.
func (s *Server) OpenNodes(name string, report func(error)) (*inside.Conn, error) {
	creds, err := s.cfg.Auth.NodesUser()
	if err != nil {
		return nil, fmt.Errorf("connect to the account of the nodes: %w", err)
	}
	return s.openInside("", name, creds, report)
}

// OpenZone connects to a zone, with all permissions in it. ErrNoZone if it is not served. There is room for
// conf.InternalConnections of them; they are closed when the zone is removed. report is told what goes wrong on the connection.
func (s *Server) OpenZone(zone, name string, report func(error)) (*inside.Conn, error) {
	creds, err := s.zoneUser(zone)
	if err != nil {
		return nil, err
	}
	return s.openInside(zone, name, creds, report)
}

func (s *Server) zoneUser(zone string) (conf.Credentials, error) {
	if _, ok := s.accounts.id(zone); !ok {
		return conf.Credentials{}, fmt.Errorf("connect to zone %s: %w", zone, ErrNoZone)
	}
	creds, err := s.cfg.Auth.ZoneUser(zone)
	if err != nil {
		return conf.Credentials{}, fmt.Errorf("connect to zone %s: %w", zone, err)
	}
	return creds, nil
}

func (s *Server) openInside(zone, name string, creds conf.Credentials, report func(error)) (*inside.Conn, error) {
	c, err := inside.Open(inside.Options{
		Name: name, Dial: inProcess{s}.InProcessConn, JWT: creds.JWT, Sign: creds.Pair.Sign, Report: report,
		Lost: func(err error) {
			if !s.isStopping() {
				s.log.Warn("the broker's own NATS connection is lost", "connection", name, "error", err)
			}
		},
	})
	if err != nil {
		return nil, err
	}
	if err := s.keep(zone, c); err != nil {
		return nil, err
	}
	return c, nil
}

// own is a connection of the broker itself.
type own interface {
	IsConnected() bool
	IsClosed() bool
	Close()
}

func (s *Server) connect(zone, name string, creds conf.Credentials, opts []nats.Option) (*nats.Conn, error) {
	log := s.log.With("connection", name)
	all := append([]nats.Option{
		nats.Name(name),
		nats.InProcessServer(inProcess{s}),
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
	if err := s.keep(zone, nc); err != nil {
		return nil, err
	}
	return nc, nil
}

// keep remembers a connection, so that Stop closes it. ErrStopping: it is closed.
func (s *Server) keep(zone string, c own) error {
	s.mu.Lock()
	if !s.stopping {
		defer s.mu.Unlock()
		s.conns[zone] = append(slices.DeleteFunc(s.conns[zone], own.IsClosed), c)
		return nil
	}
	s.mu.Unlock()
	c.Close()
	return ErrStopping
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
	var conns []own
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
	return p.s.ns.InProcessConn()
}
