package broker

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/nats-io/nats.go"

	"github.com/opencluster/oclocks/broker/admin"
	"github.com/opencluster/oclocks/conf"
	"github.com/opencluster/oclocks/internal/enroll"
)

// serveOperators answers the operators' tools, and lets new nodes in. Nobody has the keys of a daemon without a directory.
func (d *Daemon) serveOperators(ctx context.Context) error {
	if d.settings.Data == "" {
		return nil
	}
	conn, err := d.nats.ConnectNodes(nats.Name("oclocks operators " + d.node))
	if err != nil {
		return fmt.Errorf("connect for the operators: %w", err)
	}
	http := ""
	if d.settings.HTTP != "off" {
		http = d.settings.HTTP
	}
	tools, err := admin.Serve(ctx, admin.Config{
		Conn: conn, Control: d.control, Data: d.settings.Data, Logger: d.log,
		Running: conf.Running{
			PID: os.Getpid(), URL: d.nats.ClientURL(), HTTP: http, Node: d.node, Number: d.number, Name: d.settings.Node,
			Cluster: d.settings.Cluster, Clustered: d.settings.Clustered(),
		},
	})
	if err != nil {
		return err
	}
	d.tools.Store(tools)
	if !d.settings.Clustered() {
		return nil
	}
	d.closeDoor, err = enroll.Serve(conn, enroll.Config{
		Auth: d.auth, Authority: d.identity.Authority(), Routes: d.routes, Logger: d.log,
	})
	return err
}

// routes are the addresses for nodes of all nodes, by identifier.
func (d *Daemon) routes() map[string][]string {
	routes := make(map[string][]string)
	for _, n := range d.state.Load().Nodes {
		routes[n.ID] = n.Routes
	}
	return routes
}

// leaveOperators ends what serveOperators began.
func (d *Daemon) leaveOperators() error {
	var err error
	if d.closeDoor != nil {
		if err = d.closeDoor(); errors.Is(err, nats.ErrConnectionClosed) {
			err = nil
		}
	}
	if tools := d.tools.Swap(nil); tools != nil {
		err = errors.Join(err, tools.Close())
	}
	return err
}
