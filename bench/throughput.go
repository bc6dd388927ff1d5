package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/opencluster/oclocks/bench/rig"
	"github.com/opencluster/oclocks/client"
	"github.com/opencluster/oclocks/subjects"
)

// throughputs measures many workers, spread over the nodes.
func (c *contest) throughputs(ctx context.Context) error {
	for _, workers := range []int{64, 256} {
		if err := c.rawPairs(ctx, workers); err != nil {
			return err
		}
		for _, d := range c.clusters {
			if err := c.pairsOf(ctx, d, workers); err != nil {
				return fmt.Errorf("%s, %d workers: %w", d.Label, workers, err)
			}
		}
	}
	return nil
}

// rawPairs are two requests each: to another node; and a third of them to the own one, as locks are spread.
func (c *contest) rawPairs(ctx context.Context, workers int) error {
	conns, err := connectEach(c.plain.URL)
	if err != nil {
		return err
	}
	defer closeAll(conns)
	for _, spread := range []bool{false, true} {
		name := rawRow(1)
		if spread {
			name = rawSpread
		}
		r, err := worked(ctx, c.plain.Servers, workers, func(w int) error {
			to := w + 1
			if spread {
				to = w + w/clusterNodes // a third each to the own node, the next one and the one after
			}
			for range 2 {
				if err := rig.Echo(conns[w%len(conns)], to%clusterNodes); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		c.paired(name, workers, r)
	}
	return nil
}

// worked is what workers got done, with the processor time that the servers took for it.
func worked(ctx context.Context, servers []*rig.Child, workers int, pair func(worker int) error) (result, error) {
	before, err := rig.Processors(servers)
	if err != nil {
		return result{}, err
	}
	r, err := work(ctx, workers, pair)
	if err != nil {
		return r, err
	}
	after, err := rig.Processors(servers)
	r.used = after - before
	return r, err
}

func (c *contest) paired(name string, workers int, r result) {
	c.samples.add(rateOf(name, workers), r.rate())
	c.samples.addTime(usedBy(name, workers), r.each())
	if flags.verbose {
		fmt.Fprintf(os.Stderr, "%s: %s, %d workers: %.0f/s, the slowest pair took %v; the servers need %v a pair\n",
			time.Now().Format("15:04:05"), name, workers, r.rate(), r.slowest.Round(time.Microsecond), r.each())
	}
}

const rawSpread = "NATS: request, a third to the own node"

func rateOf(name string, workers int) string { return name + " " + strconv.Itoa(workers) }
func usedBy(name string, workers int) string { return rateOf(name, workers) + " used" }

// connectEach makes connections to all nodes in turn.
func connectEach(url func(i int) string) ([]*nats.Conn, error) {
	var conns []*nats.Conn
	for i := range perNode * clusterNodes {
		nc, err := nats.Connect(url(i % clusterNodes))
		if err != nil {
			closeAll(conns)
			return nil, fmt.Errorf("connect: %w", err)
		}
		conns = append(conns, nc)
	}
	return conns, nil
}

// pairsOf measures pairs of acquire and release, each worker with a lock of its own, two thirds of which another node has.
func (c *contest) pairsOf(ctx context.Context, d *rig.Daemons, workers int) error {
	conns, err := connectEach(d.URL)
	if err != nil {
		return err
	}
	defer closeAll(conns)
	primaries, err := d.Primaries(conns[0])
	if err != nil {
		return err
	}
	for _, kind := range []string{kindProtocol, kindSimple} {
		l := &locks{buckets: uint32(len(primaries)), simple: kind == kindSimple}
		r, err := worked(ctx, d.Children(), workers, func(w int) error { return l.pair(conns[w%len(conns)], w) })
		if err != nil {
			return fmt.Errorf("%s: %w", kind, err)
		}
		c.paired(d.Label+": "+kind, workers, r)
	}
	if err := c.nearPairs(ctx, d, workers); err != nil {
		return err
	}
	return withClients(ctx, d, func(clients []*client.Client) error {
		r, err := worked(ctx, d.Children(), workers, func(w int) error { return clientPair(ctx, clients, w) })
		c.paired(d.Label+": "+kindClient, workers, r)
		return err
	})
}

// nearPairs measures pairs of workers who each ask their lock's primary.
func (c *contest) nearPairs(ctx context.Context, d *rig.Daemons, workers int) error {
	conns, err := connectEach(d.URL)
	if err != nil {
		return err
	}
	defer closeAll(conns)
	primaries, err := d.Primaries(conns[0])
	if err != nil {
		return err
	}
	near := &locks{buckets: uint32(len(primaries))}
	r, err := worked(ctx, d.Children(), workers, func(w int) error {
		at := primaries[subjects.BucketOf(near.name(w), near.buckets)]
		return near.pair(conns[at+clusterNodes*(w%perNode)], w)
	})
	if err != nil {
		return fmt.Errorf("%s: %w", kindNear, err)
	}
	c.paired(d.Label+": "+kindNear, workers, r)
	return nil
}

// rateColumns are those of a line of rateLine.
var rateColumns = []string{"64 workers", "256 workers", "64 / NATS", "256 / NATS", "servers, 64", "servers, 256"}

// rateLine adds how often something was done by many workers, next to raw NATS, and what the servers took for it.
func (c *contest) rateLine(t *table, name string) {
	a, b := rateOf(name, 64), rateOf(name, 256)
	t.add(name, rate(c.samples.median(a)), rate(c.samples.median(b)),
		ratio(c.samples.over(a, rateOf(rawRow(1), 64))), ratio(c.samples.over(b, rateOf(rawRow(1), 256))),
		micros(c.samples.time(usedBy(name, 64))), micros(c.samples.time(usedBy(name, 256))))
}

func (c *contest) throughputTable() table {
	t := table{Title: "Three nodes: pairs a second, workers spread over all nodes",
		Columns: rateColumns}
	line := func(name string) { c.rateLine(&t, name) }
	line(rawRow(1))
	line(rawSpread)
	for _, d := range c.clusters {
		for _, kind := range []string{kindProtocol, kindNear, kindClient, kindSimple} {
			line(d.Label + ": " + kind)
		}
	}
	t.note("Each worker has a lock of its own; all share %d connections. Goal: 1.0, locks.acquire 0.5.", perNode*clusterNodes)
	t.note("Servers: processor time of all three for one pair, which other load on the machine changes less.")
	return t
}
