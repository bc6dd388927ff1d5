package client

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/opencluster/oclocks/subjects"
)

// Limits of lanes.
const (
	maxLanes    = 16
	maxLaneURLs = 4 // addresses of one node that are tried
)

// wantedLane is what the machine wants to have opened.
type wantedLane struct {
	number int
	node   string
	inbox  string // pattern of what is to be heard over it
}

// lane is a connection to one node, for requests about its buckets (package machine, lane.go: what goes over it, and why nothing
// depends on it). It is never mended: if it breaks, the machine goes on without, and asks for another one later.
type lane struct {
	*outlet

	broken chan struct{} // closed by nats.go
	over   chan struct{} // closed when the machine wants it closed
}

var (
	errWrongNode = errors.New("another node answered at its address")
	errNoNode    = errors.New("the client is connected to a server that is none of the nodes")
)

// lanesAllowed is how many lanes a client may have: none over a connection of the caller's, where the caller wants no other servers than
// it has named, over WebSockets, for which the cluster tells no addresses, or to a server in the process.
func (c *Client) lanesAllowed() int {
	if !c.own || c.opts.oneConnection {
		return 0
	}
	o := c.opts.dialed
	if o.InProcessServer != nil || o.IgnoreDiscoveredServers || strings.HasPrefix(c.nc.ConnectedUrl(), "ws") {
		return 0
	}
	return maxLanes
}

// outlet is the way out with a lane's number: the home connection if that is 0 or the lane has ended. The caller holds mu.
func (c *Client) outlet(lane int) *outlet {
	if lane > 0 && c.lanes[lane-1] != nil {
		return c.lanes[lane-1].outlet
	}
	return c.home
}

// keepLanes opens the lanes that the machine wants, each in a goroutine of its own.
func (c *Client) keepLanes() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for {
		select {
		case <-c.quit:
			return
		case want := <-c.wanted:
			c.running.Go(func() { c.runLane(ctx, want) })
		}
	}
}

// endLane takes a lane away that the machine does not want any more. The caller holds mu.
func (c *Client) endLane(number int) {
	close(c.lanes[number-1].over)
	c.lanes[number-1] = nil
}

// runLane is the life of a lane.
func (c *Client) runLane(ctx context.Context, want wantedLane) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	l, err := c.openLane(ctx, want)
	if err != nil {
		c.opts.log.Info("no connection to a node that is often asked", "node", want.node, "error", err)
		c.do(func(now int64) { c.m.LaneLost(now, want.number) })
		return
	}
	defer l.nc.Close()
	c.opts.log.Info("connected to a node that is often asked", "node", want.node, "url", l.nc.ConnectedUrlRedacted())
	c.do(func(now int64) {
		c.lanes[want.number-1] = l
		c.m.LaneOpened(now, want.number)
	})
	l.run(l.over, l.broken)
	c.do(func(now int64) {
		if c.lanes[want.number-1] == l {
			if l.nc.IsClosed() { // and not the client
				c.opts.log.Info("the connection to a node that is often asked is broken", "node", want.node, "error", l.nc.LastError())
			}
			c.lanes[want.number-1] = nil
			c.m.LaneLost(now, want.number)
		}
	})
}

// openLane connects to a node. The end of ctx ends the connection, also one that is being made.
func (c *Client) openLane(ctx context.Context, want wantedLane) (*lane, error) {
	urls, err := c.addressesOf(ctx, want.node)
	if err != nil {
		return nil, err
	}
	for _, address := range urls {
		var l *lane
		if l, err = c.dialLane(ctx, want, address); err == nil {
			return l, nil
		}
	}
	return nil, fmt.Errorf("connect: %w", err)
}

// addressesOf asks the broker where clients connect to a node. Who is connected to a leaf node of NATS stays with that: it may have other
// credentials there, or reach nothing else.
func (c *Client) addressesOf(ctx context.Context, node string) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, c.opts.timeout)
	defer cancel()
	list, err := c.Servers(ctx, "")
	if err != nil {
		return nil, err
	}
	home := c.nc.ConnectedServerName()
	if !slices.ContainsFunc(list.Servers, func(s subjects.Server) bool { return s.Node == home }) {
		return nil, errNoNode
	}
	for i := range list.Servers {
		if s := &list.Servers[i]; s.Node == node && len(s.URLs) > 0 {
			return s.URLs[:min(len(s.URLs), maxLaneURLs)], nil
		}
	}
	return nil, ErrUnavailable
}

// dialLane connects to a node at one of its addresses.
func (c *Client) dialLane(ctx context.Context, want wantedLane, address string) (*lane, error) {
	l := &lane{broken: make(chan struct{}), over: make(chan struct{})}
	o, err := c.laneOptions(ctx, want.node, address, l.broken)
	if err != nil {
		return nil, err
	}
	nc, err := o.Connect()
	if err != nil {
		return nil, err
	}
	if nc.ConnectedServerName() != want.node {
		err = errWrongNode
	}
	if err == nil {
		_, err = nc.Subscribe(want.inbox, c.receive)
	}
	if err == nil {
		err = nc.FlushTimeout(c.opts.timeout)
	}
	if err == nil {
		err = nc.LastError() // the server's refusal of the subscription
	}
	if err != nil {
		nc.Close()
		return nil, err
	}
	l.outlet = newOutlet(c, nc, want.node, strings.TrimSuffix(strings.TrimPrefix(want.inbox, c.inbox), "*"))
	return l, nil
}

// laneOptions are those of the home connection, but for what has to do with coming back, and with callbacks of the caller's. As nats.go
// does with a server that it is told of, it is given the user of the home connection's address, and its certificate may be for the
// name that the home connection's is for. A home connection with TLS has lanes with TLS only.
func (c *Client) laneOptions(ctx context.Context, node, address string, broken chan struct{}) (*nats.Options, error) {
	o := *c.opts.dialed
	home, err := url.Parse(c.nc.ConnectedUrl())
	if err != nil {
		return nil, fmt.Errorf("parse the home connection's address: %w", err)
	}
	state, plain := c.nc.TLSConnectionState()
	if home.Host == "" || plain != nil && !errors.Is(plain, nats.ErrConnectionNotTLS) {
		return nil, nats.ErrDisconnected
	}
	to, err := url.Parse(address)
	if err != nil || to.Host == "" {
		if to, err = url.Parse("nats://" + address); err != nil {
			return nil, fmt.Errorf("parse the node's address: %w", err)
		}
	}
	if to.User == nil {
		to.User = home.User
	}
	if plain == nil {
		o.Secure, o.TLSConfig = true, o.TLSConfig.Clone()
		if o.TLSConfig == nil {
			o.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12}
		}
		if o.TLSConfig.ServerName == "" && net.ParseIP(to.Hostname()) != nil {
			o.TLSConfig.ServerName = state.ServerName
		}
	}
	o.Url, o.Servers = to.String(), nil
	o.Name = subjects.LaneName + o.Name
	o.Timeout = c.opts.timeout
	o.AllowReconnect, o.RetryOnFailedConnect = false, false
	o.ClosedCB = func(*nats.Conn) { close(broken) }
	o.ConnectedCB, o.ReconnectedCB, o.DisconnectedCB, o.DisconnectedErrCB = nil, nil, nil, nil
	o.DiscoveredServersCB, o.ReconnectErrCB, o.LameDuckModeHandler = nil, nil, nil
	o.AsyncErrorCB = c.asyncError(func(_ *nats.Conn, _ *nats.Subscription, err error) {
		c.opts.log.Warn("NATS", "node", node, "error", err)
	})
	if o.CustomDialer == nil {
		o.SkipHostLookup = true // the dialer looks it up, and ends with ctx
	}
	o.CustomDialer = laneDialer(ctx, &o)
	return &o, nil
}
