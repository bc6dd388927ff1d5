package brokertest

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/opencluster/oclocks/broker"
	"github.com/opencluster/oclocks/conf"
	"github.com/opencluster/oclocks/internal/e2e/daemons"
)

// Cluster is some daemons that are one cluster, in the test's process.
type Cluster struct {
	Daemons []*broker.Daemon // an element is written by Restart and Start only

	t         testing.TB
	opts      []Option
	auth      *conf.Auth
	authority *conf.Authority
	ids       []string
	data      []string
	routes    []string // where each listens for the others
}

// anyPort has the kernel choose where a daemon listens.
const anyPort = "127.0.0.1:0"

// StartCluster starts a cluster of n daemons, each with its own directory below dir, or without any if dir is "". They are
// stopped when the test ends.
func StartCluster(t testing.TB, n int, dir string, opts ...Option) *Cluster {
	t.Helper()
	auth, err := conf.NewAuth()
	if err != nil {
		t.Fatal(err)
	}
	authority, err := conf.NewAuthority("oclocks")
	if err != nil {
		t.Fatal(err)
	}
	c := &Cluster{t: t, opts: opts, auth: auth, authority: authority}
	ports, err := daemons.FreePorts(n) // where a daemon listens for the others it does so again after a restart
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		data := ""
		if dir != "" {
			data = filepath.Join(dir, fmt.Sprint("node", i+1))
		}
		id, err := conf.NodeID(data)
		if err != nil {
			t.Fatal(err)
		}
		c.ids, c.data, c.routes = append(c.ids, id), append(c.data, data), append(c.routes, fmt.Sprint("127.0.0.1:", ports[i]))
		c.Daemons = append(c.Daemons, nil)
		if err := c.start(i); err != nil {
			t.Fatal(err)
		}
		c.routes[i] = c.Daemons[i].RouteURL()
	}
	return c
}

// Restart stops some daemons in an orderly way, one after the other, and starts them again.
func (c *Cluster) Restart(which ...int) {
	c.t.Helper()
	for _, i := range which {
		Stop(c.t, c.Daemons[i])
	}
	c.Start(which...)
}

// Start starts daemons that are not there any more with what they have on disk, all at once. They listen for each other where
// they did before, and for clients elsewhere.
func (c *Cluster) Start(which ...int) {
	c.t.Helper()
	errs := make(chan error)
	for _, i := range which {
		go func() { errs <- c.start(i) }()
	}
	for range which {
		if err := <-errs; err != nil {
			c.t.Error(err)
		}
	}
	if c.t.Failed() {
		c.t.FailNow()
	}
}

// start starts the i-th daemon: the first one founds the cluster, the others join those that were there before.
func (c *Cluster) start(i int) error {
	settings := Settings(c.opts...)
	settings.Data, settings.Node = c.data[i], fmt.Sprint("n", i+1)
	settings.ClusterListen = c.routes[i]
	if settings.DirectListen == "" {
		settings.DirectListen = anyPort
	}
	for j, route := range c.routes {
		if j != i {
			settings.Join = append(settings.Join, route)
		}
	}
	identity, err := conf.NewIdentity(c.authority, c.ids[i])
	if err != nil {
		return err
	}
	d, err := broker.Start(context.Background(), broker.Config{
		Settings: settings, Auth: c.auth, Identity: identity, NodeID: c.ids[i],
		Logger: Logger(c.t).With("n", i+1), LameDuck: defaultLameDuck,
	})
	if err != nil {
		return fmt.Errorf("start daemon %d: %w", i+1, err)
	}
	c.Daemons[i] = d
	c.t.Cleanup(func() { Stop(c.t, d) })
	return nil
}
