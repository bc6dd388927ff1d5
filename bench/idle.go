package main

import (
	"context"
	"time"

	"github.com/opencluster/oclocks/bench/rig"
)

const (
	idleTime = 10 * time.Second
	idleGoal = 0.01
)

// measureIdle measures what a cluster costs that nobody asks anything.
func measureIdle(ctx context.Context) ([]table, error) {
	paths, remove, err := binaries(ctx)
	if err != nil {
		return nil, err
	}
	defer remove()
	t := table{Title: "Three idle daemons", Columns: []string{"of a processor", "memory"}}
	for _, path := range paths {
		if err := idle(ctx, path, &t); err != nil {
			return nil, err
		}
	}
	t.note("Over %v; memory is what is resident. Goal: below %.2f.", idleTime, idleGoal)
	return []table{t}, nil
}

func idle(ctx context.Context, path string, t *table) error {
	d, err := startCluster(ctx, path, clusterNodes, nil)
	if err != nil {
		return err
	}
	defer d.Stop()
	if err := rest(ctx, idleTime/2); err != nil { // what the start has left to do
		return err
	}
	var before []time.Duration
	for _, n := range d.Nodes {
		used, _, err := rig.Usage(n.Cmd.Process.Pid)
		if err != nil {
			return err
		}
		before = append(before, used)
	}
	begin := time.Now()
	if err := rest(ctx, idleTime); err != nil {
		return err
	}
	for i, n := range d.Nodes {
		used, memory, err := rig.Usage(n.Cmd.Process.Pid)
		if err != nil {
			return err
		}
		t.add(d.Label+" "+n.Name, value{float64(used-before[i]) / float64(time.Since(begin)), "ratio", "%.4f"}, mebibytes(memory))
	}
	return nil
}

func rest(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
