package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/opencluster/oclocks/bench/rig"
	"github.com/opencluster/oclocks/client"
	"github.com/opencluster/oclocks/subjects"
)

const (
	clusterRounds = 3 // if --rounds does not say otherwise
	clusterNodes  = 3
	perNode       = 2 // connections to each node when there are many workers
)

// binaries are the daemons that are measured: those of --daemon, else the one of this tree, which is built.
func binaries(ctx context.Context) (all []string, remove func(), err error) {
	if len(flags.daemons) > 0 {
		return flags.daemons, func() {}, nil
	}
	path, remove, err := rig.Build(ctx)
	return []string{path}, remove, err
}

// startCluster starts n daemons with the flags' arguments and, by index, further ones of single nodes.
func startCluster(ctx context.Context, path string, n int, of map[int][]string) (*rig.Daemons, error) {
	return rig.StartCluster(ctx, path, n, rig.Options{Args: flags.args, ArgsOf: of, Keep: flags.keep})
}

// contest is plain NATS and one or more clusters of daemons in one run: they take turns in each round.
type contest struct {
	plain    *rig.Plain
	clusters []*rig.Daemons
	samples  samples
}

func startContest(ctx context.Context) (*contest, error) {
	paths, remove, err := binaries(ctx)
	if err != nil {
		return nil, err
	}
	defer remove() // those that run need it no more
	c := &contest{samples: samples{}}
	if c.plain, err = rig.StartPlain(ctx); err != nil {
		return nil, err
	}
	for _, path := range paths {
		cluster, err := startCluster(ctx, path, clusterNodes, nil)
		if err != nil {
			c.stop()
			return nil, err
		}
		c.clusters = append(c.clusters, cluster)
	}
	return c, nil
}

func (c *contest) stop() {
	c.plain.Stop()
	for _, cluster := range c.clusters {
		cluster.Stop()
	}
}

// measureCluster measures three daemons with default settings next to three plain NATS servers.
func measureCluster(ctx context.Context) ([]table, error) {
	c, err := startContest(ctx)
	if err != nil {
		return nil, err
	}
	defer c.stop()
	parts := clusterParts
	if len(flags.parts) > 0 {
		parts = slices.DeleteFunc(slices.Clone(parts), func(p part) bool { return !slices.Contains(flags.parts, p.name) })
	}
	for range roundsOr(clusterRounds) {
		for _, p := range parts {
			if err := p.round(c, ctx); err != nil {
				return nil, err
			}
		}
	}
	var all []table
	for _, p := range parts {
		all = append(all, p.table(c))
	}
	return all, nil
}

// part is a table of the section.
type part struct {
	name  string
	round func(c *contest, ctx context.Context) error
	table func(c *contest) table
}

var clusterParts = []part{
	{"latency", (*contest).latencies, (*contest).latencyTable},
	{"throughput", (*contest).throughputs, (*contest).throughputTable},
	{"queues", (*contest).queues, (*contest).queueTable},
}

// latencies measures one worker: plain NATS first, then each cluster.
func (c *contest) latencies(ctx context.Context) error {
	for away := range 2 {
		nc, err := nats.Connect(c.plain.URL(away))
		if err != nil {
			return fmt.Errorf("connect to a plain NATS server: %w", err)
		}
		err = c.one(ctx, rawRow(away), func(int) (time.Duration, error) {
			begin := time.Now()
			err := rig.Echo(nc, 0)
			return time.Since(begin), err
		})
		nc.Close()
		if err != nil {
			return err
		}
	}
	for _, d := range c.clusters {
		for away := range 2 {
			if err := c.locksOf(ctx, d, away); err != nil {
				return fmt.Errorf("%s: %w", d.Label, err)
			}
		}
	}
	return nil
}

// locksOf measures locks of which the first node is primary, by a worker that is connected to it or to another one.
func (c *contest) locksOf(ctx context.Context, d *rig.Daemons, away int) error {
	nc, err := d.Only(away)
	if err != nil {
		return err
	}
	defer nc.Close()
	l, name, err := locksAt(d, nc)
	if err != nil {
		return err
	}
	if err := c.one(ctx, rowOf(d.Label, kindProtocol, away), func(i int) (time.Duration, error) { return l.timed(nc, name(i)) }); err != nil {
		return err
	}
	if err := c.one(ctx, rowOf(d.Label, kindSimple, away), func(i int) (time.Duration, error) {
		simple := *l
		simple.simple = true
		return simple.timed(nc, name(i))
	}); err != nil {
		return err
	}
	cl, err := client.Connect(ctx, d.URL(away))
	if err != nil {
		return err
	}
	defer cl.Close(ctx) // what it did is measured
	return c.one(ctx, rowOf(d.Label, kindClient, away), func(i int) (time.Duration, error) {
		m := cl.Mutex(name(i))
		begin := time.Now()
		if _, err := m.Lock(ctx); err != nil {
			return 0, err
		}
		took := time.Since(begin)
		return took, m.Unlock(ctx)
	})
}

// locksAt gives names of locks of which the first node is primary.
func locksAt(d *rig.Daemons, nc *nats.Conn) (l *locks, name func(i int) string, err error) {
	primaries, err := d.Primaries(nc)
	if err != nil {
		return nil, nil, err
	}
	l = &locks{buckets: uint32(len(primaries))}
	return l, func(i int) string {
		for k := 0; ; k++ {
			name := fmt.Sprintf("one/%d/%d", i, k)
			if primaries[subjects.BucketOf(name, l.buckets)] == 0 {
				return name
			}
		}
	}, nil
}

// one repeats something for about a second and samples the quantiles of what it gives.
func (c *contest) one(ctx context.Context, name string, do func(i int) (time.Duration, error)) error {
	var times []time.Duration
	for i, begin := 0, time.Now(); time.Since(begin) < timed && ctx.Err() == nil; i++ {
		took, err := do(i)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		times = append(times, took)
	}
	c.samples.addTime(name+" p50", rig.Quantile(times, 0.5))
	c.samples.addTime(name+" p99", rig.Quantile(times, 0.99))
	return ctx.Err()
}

// The ways to ask for a lock.
const (
	kindProtocol = "protocol"
	kindClient   = "Go client"
	kindSimple   = "locks.acquire"
	kindNear     = "protocol, each at its primary"
)

func rowOf(label, kind string, away int) string {
	where := ", own node"
	if away != 0 {
		where = ", other node"
	}
	return label + ": " + kind + where
}

func rawRow(away int) string { return rowOf("NATS", "request", away) }

// withClients lends Go clients at all nodes in turn.
func withClients(ctx context.Context, d *rig.Daemons, do func(clients []*client.Client) error) (err error) {
	var clients []*client.Client
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), rig.Patience)
		defer cancel()
		for _, cl := range clients {
			err = errors.Join(err, cl.Close(closing))
		}
	}()
	for i := range perNode * clusterNodes {
		cl, err := client.Connect(ctx, d.URL(i%clusterNodes))
		if err != nil {
			return err
		}
		clients = append(clients, cl)
	}
	return do(clients)
}

func (c *contest) latencyTable() table {
	t := table{Title: "Three nodes: one request, or one lock, by one worker",
		Columns: []string{"p50", "p99", "p50 / NATS", "p99 / NATS"}}
	line := func(name string) {
		t.add(name, micros(c.samples.time(name+" p50")), micros(c.samples.time(name+" p99")),
			ratio(c.samples.over(name+" p50", rawRow(1)+" p50")), ratio(c.samples.over(name+" p99", rawRow(1)+" p99")))
	}
	line(rawRow(0))
	line(rawRow(1))
	for _, d := range c.clusters {
		for _, kind := range []string{kindProtocol, kindClient, kindSimple} {
			line(rowOf(d.Label, kind, 0))
			line(rowOf(d.Label, kind, 1))
		}
	}
	t.note("Medians of %d rounds in which all take turns. / NATS: the plain request to another node in the same round.",
		roundsOr(clusterRounds))
	t.note("Goal: p50 at most 1.1, p99 at most 1.5. The daemons' routes are encrypted, those of plain NATS are not.")
	return t
}
