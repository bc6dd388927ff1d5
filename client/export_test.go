package client

import "github.com/nats-io/nats.go"

// WithBusyLanes opens a lane to a node after so many requests to it in a second.
func WithBusyLanes(n int) Option { return func(o *options) { o.laneBusy = n } }

// Lanes are the connections of the lanes that the client has, by node.
func (c *Client) Lanes() map[string]*nats.Conn {
	c.mu.Lock()
	defer c.mu.Unlock()
	lanes := map[string]*nats.Conn{}
	for _, l := range c.lanes {
		if l != nil {
			lanes[l.nc.ConnectedServerName()] = l.nc
		}
	}
	return lanes
}

// LanesAllowed is how many lanes the client may have.
func (c *Client) LanesAllowed() int { return c.lanesAllowed() }

// TakesBundles says whether the home connection's node has said that it takes bundles.
func (c *Client) TakesBundles() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.home.limits.Requests > 0
}

// Denied tells the client that its server lets nothing through on a subject, and gives whether it takes that for one of bundles.
func (c *Client) Denied(subject string) bool { return c.denies(c.nc, subject) }

// EnterCompany has one more client enter the company of a connection.
func EnterCompany(nc *nats.Conn, user string) (leave func() error, err error) {
	k, err := enterCompany(nc, user)
	if err != nil {
		return nil, err
	}
	return k.leave, nil
}

// Company is how many clients have entered the company of a connection, how many take part, and how many of their keep-alives are under way
// in bundles.
func Company(nc *nats.Conn, user string) (entered, members, sent int) {
	companies.Lock()
	defer companies.Unlock()
	k := companies.of[companyKey{nc, user}]
	if k == nil {
		return 0, 0, 0
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.refs, len(k.members), len(k.sent)
}
