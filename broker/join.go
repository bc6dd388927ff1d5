package broker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/opencluster/oclocks/broker/control"
	"github.com/opencluster/oclocks/broker/natsd"
	"github.com/opencluster/oclocks/conf"
	"github.com/opencluster/oclocks/conf/shared"
)

// joinTime is how long a daemon looks for others before it says that there are none, if it may found a cluster.
const joinTime = 5 * time.Second

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
		// other nodes.
		cfg.Zones = nil
		cfg.Cluster = &natsd.Cluster{
			Name: d.settings.Cluster, Listen: d.settings.ClusterListen, Advertise: d.settings.ClusterAdvertise,
			Join: d.settings.Join, Identity: d.identity, Data: d.settings.Data,
		}
	}
	if d.nats, err = natsd.Start(ctx, cfg); err != nil {
		return fmt.Errorf("start the embedded NATS server: %w", err)
	}
	if d.nodes, err = d.nats.ConnectNodes(nats.Name("oclocks control " + d.node)); err != nil {
		return fmt.Errorf("connect for the control plane: %w", err)
	}
	if len(d.settings.Join) == 0 {
		return nil
	}
	return d.findOthers(ctx)
}

// findOthers waits for a connection to another node. A node that reaches nobody goes on alone only if it may found a
// cluster, or belongs to one already.
func (d *Daemon) findOthers(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, joinTime)
	defer cancel()
	err := d.nats.Join(ctx)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, natsd.ErrDuplicate):
		return fmt.Errorf("join the cluster: %w", err)
	}
	d.log.Warn("no other node is reached yet; the daemon goes on trying", "error", err)
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
		Clients: []string{d.nats.Addr().String()}, Fresh: !past.whole, Dir: d.settings.Data, Conn: d.nodes,
		NodeLease: d.settings.NodeLease, Logger: d.log, Watch: d.watchRoutes, Alert: d.alert, Describe: d.describe,
	}
	if route := d.nats.RouteAddr(); route != nil {
		host, port := d.settings.RouteAddress(route.Port)
		cfg.Routes = []string{fmt.Sprintf("%s:%d", host, port)}
	}
	if d.settings.MayFound() {
		if cfg.Found, err = d.founding(); err != nil {
			return nil, err
		}
	}
	if d.control, err = control.Start(ctx, cfg); err != nil {
		return nil, fmt.Errorf("start the control plane: %w", err)
	}
	if d.number, d.life, state, err = d.control.WaitRegistered(ctx); err != nil {
		return nil, fmt.Errorf("join the cluster: %w", err)
	}
	d.state.Store(state)
	return state, nil
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

// watchControl ends the daemon when it cannot be part of its cluster any more.
func (d *Daemon) watchControl() {
	select {
	case <-d.control.Failed():
		d.fail(fmt.Errorf("the control plane: %w", d.control.Err()))
	case <-d.over:
	}
}
