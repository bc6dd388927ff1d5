package natsd

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/opencluster/oclocks/conf"
)

const (
	// routePing and routePings close a route whose other side is silent for 1 to 1.5 s: a cut without a word. A process
	// that dies is noticed at once.
	routePing  = 500 * time.Millisecond
	routePings = 2

	// handshakeTime bounds a TLS handshake between daemons: many that start at once on a busy machine take long.
	handshakeTime = 10 * time.Second

	// routePool is how many connections to each other server carry the zones' messages, each zone on one of them. The
	// account of the nodes and the system account have one each besides.
	routePool = 3

	// gossipRetries is how often, once a second, a server is tried again that is known from others only.
	gossipRetries = 300

	// quietRetries says which attempts to connect are told in the log: the first, and one an hour.
	quietRetries = 3600
)

// Names of what is spoken after the TLS handshake (ALPN). Each server adds one of its own, so that one that has
// connected to itself sees it.
const (
	routeProtocol = "oclocks-route"
	selfProtocol  = "oclocks-self-"
)

// Resolver finds the IP addresses of a host, as *net.Resolver does.
type Resolver interface {
	LookupHost(ctx context.Context, host string) (addresses []string, err error)
}

// Cluster is what a Server needs to be connected with the servers of other daemons.
type Cluster struct {
	Name      string         // of the cluster; servers of another one are refused
	Listen    string         // HOST:PORT for other servers; port 0 for any
	Advertise string         // HOST:PORT where others reach Listen; "" if that is the address itself
	Join      []string       // HOST:PORT of other servers; all addresses of a DNS name are tried, for ever
	Identity  *conf.Identity // of the node whose identifier is Config.ServerName
	Data      string         // directory in which the addresses of the others are kept; "" for none
	Compress  bool           // compress what goes between servers, if both sides say so
	Resolver  Resolver       // nil for net.DefaultResolver

	poll time.Duration // how often the routes are looked at without a hint; 0 for routePoll
}

// clusterOptions adds what makes the server one of a cluster.
func (s *Server) clusterOptions(opts *server.Options) error {
	c := s.cfg.Cluster
	host, portText, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return fmt.Errorf("cluster listen address: %w", err)
	}
	port, err := strconv.ParseUint(portText, 10, 16)
	if err != nil {
		return fmt.Errorf("port of the cluster listen address %s: %w", c.Listen, err)
	}
	if c.Identity == nil {
		return errors.New("a cluster without certificates")
	}
	if c.Identity.Node() != s.cfg.ServerName {
		return fmt.Errorf("the certificate is of node %s, and this is %s", c.Identity.Node(), s.cfg.ServerName)
	}
	if name := c.Identity.Authority().Cluster(); name != c.Name {
		return fmt.Errorf("the certificate is of cluster %s, and cluster is set to %s: set it to %s, or begin with an empty data directory",
			name, c.Name, name)
	}
	nodes, _, err := s.cfg.Auth.NodesAccount()
	if err != nil {
		return fmt.Errorf("account of the nodes: %w", err)
	}
	opts.ConnectErrorReports, opts.ReconnectErrorReports = quietRetries, quietRetries
	opts.Cluster = server.ClusterOpts{
		Name:           c.Name,
		Host:           host,
		Port:           int(port),
		Advertise:      c.Advertise,
		NoAdvertise:    s.cfg.HideServers,
		TLSConfig:      s.routes.tlsConfig(),
		TLSTimeout:     handshakeTime.Seconds(),
		ConnectRetries: gossipRetries,
		PoolSize:       routePool,
		// The nodes' own messages do not wait behind those of the zones.
		PinnedAccounts: []string{nodes},
		PingInterval:   routePing,
		MaxPingsOut:    routePings,
		Compression:    server.CompressionOpts{Mode: server.CompressionOff},
	}
	if c.Compress {
		opts.Cluster.Compression.Mode = server.CompressionS2Auto
	}
	if port == 0 {
		opts.Cluster.Port = server.RANDOM_PORT
	}
	s.routes.account = nodes
	return nil
}

// tlsConfig is the node's, and notices a connection to the server itself and one to another server that claims to be
// the same node.
func (r *routes) tlsConfig() *tls.Config {
	self := selfProtocol + rand.Text()
	config := r.cfg.Identity.TLS()
	config.NextProtos = []string{self, routeProtocol, conf.ProbeProtocol}
	config.VerifyConnection = func(state tls.ConnectionState) error {
		switch {
		case state.NegotiatedProtocol == self:
			r.note(func() { r.self = true })
		case state.NegotiatedProtocol == routeProtocol && state.PeerCertificates[0].Subject.CommonName == r.cfg.Identity.Node():
			// nats-server refuses it by its name; before that, both sides are to notice.
			r.note(func() { r.duplicate = true })
		}
		return nil
	}
	return config
}

// RouteAddr is the address that other servers connect to, with the port that was chosen if port 0 was asked for; nil
// without a cluster.
func (s *Server) RouteAddr() *net.TCPAddr {
	if s.routes == nil {
		return nil
	}
	return s.ns.ClusterAddr()
}
