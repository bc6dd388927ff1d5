package main

import (
	"context"
	"errors"
	"sync"

	"github.com/opencluster/oclocks/bench/rig"
	"github.com/opencluster/oclocks/client"
)

var oclocksPeer = peer{
	Key: "oclocks", Name: "oclocks, 3 nodes",
	Settings: "defaults: answered after the first secondary has it; TLS between the nodes; the Go client",
	Lacks:    "–",
	lacking:  func() error { return nil },
	version: func(ctx context.Context) string {
		return printed(ctx, "git", "describe", "--always", "--dirty", "--abbrev=10")
	},
	start: startOclocks,
}

// daemonPath is the binary of --daemon; if it is empty this tree's is built, once.
var daemonPath string

var buildDaemon = sync.OnceValues(func() (string, error) {
	path, _, err := rig.Build(context.Background()) // it stays for the next rounds
	return path, err
})

type oclocks struct {
	daemons *rig.Daemons
	clients []*client.Client
}

func startOclocks(ctx context.Context, _ string) (service, error) {
	path := daemonPath
	if path == "" {
		var err error
		if path, err = buildDaemon(); err != nil {
			return nil, err
		}
	}
	d, err := rig.StartCluster(ctx, path, 3, rig.Options{})
	if err != nil {
		return nil, err
	}
	o := &oclocks{daemons: d}
	for i := range connections {
		c, err := client.Connect(ctx, d.URLs(i%3))
		if err != nil {
			o.Stop()
			return nil, err
		}
		o.clients = append(o.clients, c)
	}
	return o, nil
}

func (o *oclocks) Worker(_ context.Context, n int) (worker, error) {
	return &oclocksWorker{client: o.clients[n%len(o.clients)]}, nil
}

func (o *oclocks) Waiting(ctx context.Context, name string) (int, error) {
	record, err := o.clients[0].Query(ctx, name)
	if err != nil {
		return 0, err
	}
	return record.Waiting, nil
}

func (o *oclocks) Victim(context.Context) (*rig.Child, error) {
	nc, err := o.daemons.Only(0)
	if err != nil {
		return nil, err
	}
	defer nc.Close()
	leader, err := o.daemons.Leader(nc)
	if err != nil {
		return nil, err
	}
	if leader < 0 {
		return nil, errors.New("the leader is none of the daemons")
	}
	return o.daemons.Nodes[leader].Child, nil
}

func (o *oclocks) Stop() {
	ctx, cancel := context.WithTimeout(context.Background(), rig.Patience)
	defer cancel()
	for _, c := range o.clients {
		_ = c.Close(ctx) // the daemons go too
	}
	o.daemons.Stop()
}

type oclocksWorker struct {
	client *client.Client
	claim  *client.Claim
}

func (w *oclocksWorker) Lock(ctx context.Context, name string) (err error) {
	w.claim, err = w.client.Mutex(name).Lock(ctx)
	return err
}

func (w *oclocksWorker) Unlock(ctx context.Context) error { return w.claim.Release(ctx) }

func (w *oclocksWorker) Close() {}
