package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/nats-io/nats.go"

	"github.com/opencluster/oclocks/bench/rig"
	"github.com/opencluster/oclocks/client"
	"github.com/opencluster/oclocks/conf"
)

const (
	garbageWorkers = 64
	garbageHeld    = 1_000_000
	pauseTime      = 5 // times as long as a throughput is measured

	partMade    = "allocations"
	partStopped = "pauses"
)

// wanted says whether a part of a section is to be measured.
func wanted(part string) bool { return len(flags.parts) == 0 || slices.Contains(flags.parts, part) }

// measureGarbage measures what three daemons allocate for a pair, and how long their collectors stop them while they hold many locks.
func measureGarbage(ctx context.Context) ([]table, error) {
	paths, remove, err := binaries(ctx)
	if err != nil {
		return nil, err
	}
	defer remove()
	made := table{Title: "Three nodes: garbage of a whole daemon", Columns: []string{"pairs", "allocations", "bytes", "collections a second"}}
	stopped := table{Title: fmt.Sprintf("Three nodes: pauses of the collector, %d locks held", garbageHeld),
		Columns: []string{"pauses", "p50", "longest"}}
	for _, path := range paths {
		if err := garbageOf(ctx, path, &made, &stopped); err != nil {
			return nil, err
		}
	}
	made.note("For one operation (half a pair) and node, all that the process allocates counted, NATS's part too, whatever the node is to the")
	made.note("lock. %d workers. From the daemon's own metrics. Goal: a handful.", garbageWorkers)
	stopped.note("Of all three daemons, each pause by itself, exactly, as the runtime tells with gctrace. With %d workers the two processors are never", garbageWorkers)
	stopped.note("idle, and a thread that is to stop may have to wait for one. Goal: no pause above 1 ms.")
	var all []table
	for _, t := range []table{made, stopped} {
		if len(t.Rows) > 0 {
			all = append(all, t)
		}
	}
	return all, nil
}

func garbageOf(ctx context.Context, path string, made, stopped *table) error {
	d, err := rig.StartCluster(ctx, path, clusterNodes, rig.Options{Args: flags.args, Env: []string{rig.PausesEnv}, HTTP: true, Keep: flags.keep})
	if err != nil {
		return err
	}
	defer d.Stop()
	conns, err := connectEach(d.URL)
	if err != nil {
		return err
	}
	defer closeAll(conns)
	l := &locks{buckets: conf.Default().Buckets}
	if wanted(partMade) {
		if err := made.whatIsMade(ctx, d, conns, l); err != nil {
			return err
		}
	}
	if wanted(partStopped) {
		return stopped.whileHeld(ctx, d, conns, l)
	}
	return nil
}

// whatIsMade counts what a pair over the bare protocol, and of the Go client, has the daemons allocate.
func (t *table) whatIsMade(ctx context.Context, d *rig.Daemons, conns []*nats.Conn, l *locks) error {
	protocol := func(w int) error { return l.pair(conns[w%len(conns)], w) }
	if err := t.garbage(ctx, d, kindProtocol, protocol); err != nil {
		return err
	}
	return withClients(ctx, d, func(clients []*client.Client) error {
		return t.garbage(ctx, d, kindClient, func(w int) error { return clientPair(ctx, clients, w) })
	})
}

// whileHeld takes many locks and tells of the pauses meanwhile and afterwards.
func (t *table) whileHeld(ctx context.Context, d *rig.Daemons, conns []*nats.Conn, l *locks) error {
	if _, err := d.Pauses(); err != nil { // of before
		return err
	}
	h := &held{locks: *l}
	if err := h.fill(ctx, d.URL(0), garbageHeld); err != nil {
		return fmt.Errorf("take %d locks: %w", garbageHeld, err)
	}
	if err := t.pauses(d, "while they were taken"); err != nil {
		return err
	}
	for _, workers := range []int{garbageWorkers, 1} {
		for range pauseTime {
			share := garbageHeld / workers
			if _, err := work(ctx, workers, func(w int) error { return h.again(conns[w%len(conns)], w*share+rand.IntN(share)) }); err != nil {
				return err
			}
		}
		if err := t.pauses(d, strconv.Itoa(workers)+" working"); err != nil {
			return err
		}
	}
	return nil
}

// garbage counts what the daemons allocate while workers do pairs, after they have got used to it.
func (t *table) garbage(ctx context.Context, d *rig.Daemons, name string, pair func(w int) error) error {
	if _, err := work(ctx, garbageWorkers, pair); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	metrics := []string{"go_memstats_mallocs_total", "go_memstats_alloc_bytes_total", "go_gc_duration_seconds_count"}
	look := func() (all [3]float64, err error) {
		for i, m := range metrics {
			if all[i], err = d.Sum(ctx, m); err != nil {
				return all, err
			}
		}
		return all, nil
	}
	before, err := look()
	if err != nil {
		return err
	}
	r, err := work(ctx, garbageWorkers, pair)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	after, err := look()
	operations := float64(2*r.pairs) * float64(len(d.Nodes))
	t.add(d.Label+": "+name, rate(r.rate()), tenths((after[0]-before[0])/operations), bytes((after[1]-before[1])/operations),
		tenths((after[2]-before[2])/float64(len(d.Nodes))/r.elapsed.Seconds()))
	return err
}

// pauses tells of those since the last time.
func (t *table) pauses(d *rig.Daemons, name string) error {
	all, err := d.Pauses()
	t.add(d.Label+": "+name, count(int64(len(all))), micros(rig.Quantile(all, 0.5)), micros(rig.Quantile(all, 1)))
	return err
}
