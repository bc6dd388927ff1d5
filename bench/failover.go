package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/opencluster/oclocks/bench/rig"
)

const (
	failoverRounds  = 20 // if --rounds does not say otherwise
	failoverWorkers = 16
	windowGoal      = time.Second

	// before and after are what belongs to the end of a node.
	before = 100 * time.Millisecond
	after  = 4 * time.Second
)

// disaster is one way for a node to go.
type disaster struct {
	part   string // for --parts
	name   string
	signal syscall.Signal
	victim func(d *rig.Daemons, nc *nats.Conn, round int) (int, error)
	args   map[int][]string // of single daemons
}

// lowest is a priority at which a node is primary of nothing.
var lowest = map[int][]string{2: {"--priority", "15"}}

var disasters = []disaster{
	{"follower", "kill -9, primary, not the leader", syscall.SIGKILL, follower, nil},
	{"leader", "kill -9, primary and leader", syscall.SIGKILL, leading, nil},
	{"secondary", "kill -9, primary of nothing", syscall.SIGKILL, last, lowest},
	{"stop-follower", "SIGTERM, primary, not the leader", syscall.SIGTERM, follower, nil},
	{"stop-leader", "SIGTERM, primary and leader", syscall.SIGTERM, leading, nil},
}

func leading(d *rig.Daemons, nc *nats.Conn, _ int) (int, error) { return d.Leader(nc) }

func follower(d *rig.Daemons, nc *nats.Conn, round int) (int, error) {
	leader, err := d.Leader(nc)
	return (leader + 1 + round%(len(d.Nodes)-1)) % len(d.Nodes), err
}

func last(d *rig.Daemons, _ *nats.Conn, _ int) (int, error) { return len(d.Nodes) - 1, nil }

// measureFailover measures for how long nobody anywhere is granted anything when a node goes, and what it costs those who
// ask.
func measureFailover(ctx context.Context) ([]table, error) {
	paths, remove, err := binaries(ctx)
	if err != nil {
		return nil, err
	}
	defer remove()
	t := table{Title: fmt.Sprintf("A node of three goes, %d workers", failoverWorkers),
		Columns: []string{"no grant, p50", "max", "slowest lock, p50", "max", "while it returns, max", "failed", "lost"}}
	for _, path := range paths {
		for _, x := range disasters {
			if len(flags.parts) > 0 && !slices.Contains(flags.parts, x.part) {
				continue
			}
			w, err := watch(ctx, path, &x)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", x.name, err)
			}
			name := x.name
			if len(paths) > 1 {
				name = w.label + ": " + name
			}
			s := w.samples
			t.add(name, millis(s.time("gap")), millis(time.Duration(s.max("gap"))), millis(s.time("slowest")),
				millis(time.Duration(s.max("slowest"))), millis(time.Duration(s.max("return"))),
				count(w.load.failed.Load()), count(w.load.lost.Load()))
			for _, problem := range w.load.problems() {
				t.note("%s: %s", name, problem)
			}
		}
	}
	t.note("No grant: the longest time between two grants, whoever they are for, around the end of the node; %d rounds each, the", roundsOr(failoverRounds))
	t.note("node is started again between. Goal: %v, %v for one that is primary of nothing. Failed, lost: of all requests and", windowGoal, before)
	t.note("claims, the restarts included; also if two hold a lock at once or a token does not rise.")
	return []table{t}, nil
}

// watched is what came of the rounds of one disaster.
type watched struct {
	label   string
	samples samples
	load    *strain
}

func watch(ctx context.Context, path string, x *disaster) (w *watched, err error) {
	d, err := startCluster(ctx, path, clusterNodes, x.args)
	if err != nil {
		return nil, err
	}
	defer d.Stop()
	w = &watched{label: d.Label, samples: samples{}}
	load, err := startStrain(ctx, d)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, load.stop()) }()
	w.load = load
	for round := range roundsOr(failoverRounds) {
		if err := w.round(ctx, d, x, round); err != nil {
			return nil, fmt.Errorf("round %d: %w", round+1, err)
		}
	}
	return w, nil
}

// round lets one node go, looks what happens, and brings it back.
func (w *watched) round(ctx context.Context, d *rig.Daemons, x *disaster, round int) error {
	nc, err := d.Only(0)
	if err != nil {
		return err
	}
	victim, err := x.victim(d, nc, round)
	nc.Close()
	if err != nil {
		return err
	}
	began := time.Now()
	d.Nodes[victim].End(x.signal)
	if err := w.load.until(ctx, time.Now().Add(after)); err != nil {
		return err
	}
	gap, slowest := w.load.between(began.Add(-before), time.Now())
	w.samples.addTime("gap", gap)
	w.samples.addTime("slowest", slowest)
	if flags.verbose {
		fmt.Fprintf(os.Stderr, "%s round %d: %s at %s: no grant for %v, slowest %v\n", x.name, round+1, d.Nodes[victim].Name,
			began.Format("15:04:05.000"), gap.Round(time.Millisecond), slowest.Round(time.Millisecond))
	}
	began = time.Now()
	if err := d.Start(ctx, victim); err != nil {
		return err
	}
	if err := d.Settled(ctx); err != nil {
		return err
	}
	if err := w.load.until(ctx, time.Now().Add(before)); err != nil {
		return err
	}
	gap, _ = w.load.between(began, time.Now())
	w.samples.addTime("return", gap)
	return nil
}
