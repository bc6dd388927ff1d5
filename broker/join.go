package broker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/opencluster/oclocks/broker/control"
	"github.com/opencluster/oclocks/broker/natsd"
	"github.com/opencluster/oclocks/conf"
	"github.com/opencluster/oclocks/conf/shared"
	"github.com/opencluster/oclocks/internal/enroll"
)

// joinTime is how long a daemon looks for others before it says that there are none, if it may found a cluster.
const joinTime = 5 * time.Second

// enter gets a new node the keys of the cluster that its join token is of. It comes before everything that would make keys
// of the node's own.
func enter(ctx context.Context, cfg *Config) error {
	s := cfg.Settings
	if err := s.Validate(); err != nil {
		return fmt.Errorf("settings: %w", err)
	}
	if !s.Clustered() || s.Data == "" || cfg.Identity != nil || cfg.NodeID != "" {
		return nil
	}
	if node, err := conf.NodeID(s.Data); err != nil {
		return err
	} else if _, err := conf.OpenIdentity(s.Data, node); err == nil || !errors.Is(err, conf.ErrNotFound) {
		return err
	}
	token, err := s.JoinToken()
	switch {
	case err != nil:
		return err
	case token == "" && s.MayFound():
		return nil
	case token == "":
		return &conf.KeyError{Key: "join_token", Problem: s.Data + " belongs to no cluster yet",
			Fix: "make a join token on a node of the cluster (oclocks-startup token) and give it with --join-token, or say --found to begin a new cluster"}
	}
	ctx, cancel := context.WithTimeout(ctx, enterTime)
	defer cancel()
	joined, err := enroll.Join(ctx, token, s.Data, s.Node)
	if err != nil {
		return fmt.Errorf("join the cluster: %w", err)
	}
	cfg.Identity = joined.Identity
	return nil
}

// enterTime is how long a new node looks for somebody who lets it in.
const enterTime = 30 * time.Second

// startServer starts the embedded server and finds the other nodes.
func (d *Daemon) startServer(ctx context.Context) error {
	cfg := natsd.Config{
		ServerName: d.node, Listen: d.settings.Listen, Auth: d.auth, Zones: d.settings.Zones, Logger: d.log,
		LameDuck: d.lameDuck, HideServers: d.settings.HideServers,
	}
	var err error
	if d.settings.Clustered() {
		if d.identity == nil {
			if d.identity, err = d.openIdentity(); err != nil {
				return err
			}
		}
		// Who may come in is in the shared configuration, which this node has not heard of yet; and what comes in reaches the
		// other nodes. What it knew last has to do until then: clients that it turned away would not come back.
		cfg.Zones = nil
		if d.settings.Data != "" {
			if cfg.Zones, err = conf.SavedZones(d.settings.Data); err != nil {
				d.log.Warn("nobody is let in until the cluster tells the zones", "error", err)
				cfg.Zones = nil
			}
		}
		cfg.Cluster = &natsd.Cluster{
			Name: d.identity.Authority().Cluster(), Listen: d.settings.ClusterListen, Advertise: d.settings.ClusterAdvertise,
			Join: d.settings.Join, Identity: d.identity, Data: d.settings.Data,
		}
	}
	if d.nats, err = natsd.Start(ctx, cfg); err != nil {
		return fmt.Errorf("start the embedded NATS server: %w", err)
	}
	if d.nodes, err = d.nats.ConnectNodes(nats.Name("oclocks control " + d.node)); err != nil {
		return fmt.Errorf("connect for the control plane: %w", err)
	}
	return d.findOthers(ctx)
}

// findOthers waits for a connection to another node, if it knows of any, and decides whether this node may found a cluster:
// whoever reaches another does not, and whoever reaches nobody does only if its configuration says so.
func (d *Daemon) findOthers(ctx context.Context) error {
	if !d.settings.Clustered() {
		d.mayFound = true
		return nil
	}
	var saved map[string][]string
	var err error
	if d.settings.Data != "" {
		if saved, err = conf.SavedRoutes(d.settings.Data); err != nil {
			return err
		}
	}
	reached := false
	if len(d.settings.Join)+len(saved) > 0 {
		ctx, cancel := context.WithTimeout(ctx, joinTime)
		defer cancel()
		err := d.nats.Join(ctx)
		switch {
		case errors.Is(err, natsd.ErrDuplicate):
			return fmt.Errorf("join the cluster: %w", err)
		case err != nil:
			d.log.Warn("no other node is reached yet; the daemon goes on trying", "error", err)
		}
		reached = err == nil
	}
	d.mayFound = d.settings.Founds(reached, d.nats.OwnAddressListed(), len(saved) > 0)
	return nil
}

func (d *Daemon) openIdentity() (*conf.Identity, error) {
	if d.settings.Data == "" {
		return nil, &conf.KeyError{Key: "data", Problem: "a node of a cluster needs a directory for its certificate",
			Fix: "give --data DIR"}
	}
	identity, err := conf.OpenIdentity(d.settings.Data, d.node)
	if errors.Is(err, conf.ErrNotFound) && d.settings.MayFound() {
		identity, err = conf.CreateIdentity(d.settings.Data, d.settings.Cluster, d.node)
	}
	if err != nil {
		return nil, fmt.Errorf("the node's certificate: %w", err)
	}
	return identity, nil
}

// register makes this node known to its cluster, or founds one, and gives what the cluster's nodes share.
func (d *Daemon) register(ctx context.Context, past past) (state *shared.State, err error) {
	cfg := control.Config{
		Identifier: d.node, Name: d.settings.Node, Location: d.settings.Location, Priority: d.settings.Priority,
		Clients: []string{d.clientAddress()}, Fresh: !past.whole, Dir: d.settings.Data, Conn: d.nodes,
		NodeLease: d.settings.NodeLease, Logger: d.log, Watch: d.watchRoutes, Alert: d.alert, Describe: d.describe,
	}
	if d.journal != nil {
		cfg.Lacks = past.lacks
		if cfg.Journal, err = d.journal.Mark(); err != nil {
			return nil, fmt.Errorf("write the journal: %w", err)
		}
	}
	if route := d.nats.RouteAddr(); route != nil {
		host, port := d.settings.RouteAddress(route.Port)
		cfg.Routes = []string{net.JoinHostPort(host, strconv.Itoa(port))}
	}
	if d.mayFound {
		if cfg.Found, err = d.founding(); err != nil {
			return nil, err
		}
	}
	for again := false; ; again = true {
		if d.control, err = control.Start(ctx, cfg); err != nil {
			return nil, fmt.Errorf("start the control plane: %w", err)
		}
		if d.number, d.life, state, err = d.control.WaitRegistered(ctx); err == nil {
			break
		}
		if again || !errors.Is(err, control.ErrOldDisk) && !errors.Is(err, control.ErrLease) {
			return nil, fmt.Errorf("join the cluster: %w", err)
		}
		d.log.Warn("this node begins anew", "reason", err)
		d.control.Close() // an old control store is thrown away by that
		d.control = nil
	}
	d.state.Store(state)
	return state, nil
}

// clientAddress is where others reach this node's client port.
func (d *Daemon) clientAddress() string {
	host, port, err := net.SplitHostPort(d.nats.Addr().String())
	if err != nil {
		return d.nats.Addr().String() // it cannot be
	}
	return net.JoinHostPort(conf.Reachable(host), port)
}

// founding is what a new cluster begins with: what this node's own configuration has of what is shared from then on.
func (d *Daemon) founding() (*shared.Found, error) {
	for _, z := range d.settings.Zones {
		if err := d.auth.EnsureZone(z.Name); err != nil {
			return nil, fmt.Errorf("keys of zone %s: %w", z.Name, err)
		}
	}
	keys := d.auth.Export()
	for name := range keys { // order: each is judged by itself
		if !slices.ContainsFunc(d.settings.Zones, func(z conf.Zone) bool { return z.Name == name }) {
			delete(keys, name)
		}
	}
	return &shared.Found{
		Cluster: d.settings.Cluster, Buckets: d.settings.Buckets, Zones: d.settings.Zones, Keys: keys,
		Settings: map[string]string{
			"node_lease": d.settings.NodeLease.String(), "max_lease": d.settings.MaxLease.String(),
			"session_lease": d.settings.SessionLease.String(), "acks": d.settings.Acks, "sync": d.settings.Sync,
			"min_quorum": strconv.Itoa(d.settings.MinQuorum), "voters": strconv.Itoa(d.settings.Voters),
			"hide_servers": strconv.FormatBool(d.settings.HideServers),
		},
	}, nil
}

// watchRoutes tells the control plane which nodes are connected, one by one.
func (d *Daemon) watchRoutes(tell func(identifier string, up bool)) (stop func()) {
	known := make(map[string]bool)
	return d.nats.WatchRoutes(func(connected []string) {
		now := make(map[string]bool, len(connected))
		for _, name := range connected {
			now[name] = true
		}
		for name := range known { // order: each is told by itself
			if !now[name] {
				tell(name, false)
			}
		}
		for name := range now { // order: as above
			if !known[name] {
				tell(name, true)
			}
		}
		known = now
	})
}

// watchControl takes the daemon out of what the nodes of its cluster do in turn when it is none of them any more, and ends it when
// it cannot be part of its cluster at all.
func (d *Daemon) watchControl() {
	select {
	case <-d.control.Staying():
		d.withdraw()
	case <-d.control.Failed():
	case <-d.over:
	}
	select {
	case <-d.control.Failed():
		d.fail(fmt.Errorf("the control plane: %w", d.control.Err()))
	case <-d.over:
	}
}
