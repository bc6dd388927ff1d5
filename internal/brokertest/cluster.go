package brokertest

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/opencluster/oclocks/broker"
	"github.com/opencluster/oclocks/conf"
)

// Cluster is some daemons that are one cluster, in the test's process.
type Cluster struct {
	Daemons []*broker.Daemon

	t         testing.TB
	opts      []Option
	auth      *conf.Auth
	authority *conf.Authority
	ids       []string
}

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
	for i := range n {
		data := ""
		if dir != "" {
			data = filepath.Join(dir, fmt.Sprint("node", i+1))
		}
		id, err := conf.NodeID(data)
		if err != nil {
			t.Fatal(err)
		}
		c.ids, c.Daemons = append(c.ids, id), append(c.Daemons, nil)
		c.start(i, data)
	}
	return c
}

// start starts the i-th daemon: the first one founds the cluster, the others join those that run.
func (c *Cluster) start(i int, data string) {
	c.t.Helper()
	settings := Settings(c.opts...)
	settings.Data, settings.Node = data, fmt.Sprint("n", i+1)
	settings.ClusterListen = "127.0.0.1:0"
	for _, d := range c.Daemons {
		if d != nil {
			settings.Join = append(settings.Join, d.RouteURL())
		}
	}
	identity, err := conf.NewIdentity(c.authority, c.ids[i])
	if err != nil {
		c.t.Fatal(err)
	}
	d, err := broker.Start(context.Background(), broker.Config{
		Settings: settings, Auth: c.auth, Identity: identity, NodeID: c.ids[i],
		Logger: Logger(c.t).With("n", i+1), LameDuck: defaultLameDuck,
	})
	if err != nil {
		c.t.Fatalf("start daemon %d: %v", i+1, err)
	}
	c.Daemons[i] = d
	c.t.Cleanup(func() { Stop(c.t, d) })
}
