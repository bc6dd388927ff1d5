package main

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/opencluster/oclocks/bench/ladder"
	"github.com/opencluster/oclocks/bench/rig"
)

const floorRounds = 1 // if --rounds does not say otherwise

// rung is a step of the ladder, for processes with as many processors as there are or with one.
type rung struct {
	name    string
	servers *rig.Plain
	step    int
}

// measureFloor measures what a lock is made of, step by step, next to raw NATS and to whole daemons.
func measureFloor(ctx context.Context) ([]table, error) {
	c, err := startContest(ctx)
	if err != nil {
		return nil, err
	}
	defer c.stop()
	var rungs []rung
	for _, env := range [][]string{nil, {"GOMAXPROCS=1"}} {
		servers, stop, err := ladder.Start(ctx, env)
		if err != nil {
			return nil, err
		}
		defer stop() //nolint:gocritic // two
		for step, what := range ladder.Steps {
			name := fmt.Sprint(step+1, ": ", what)
			if env != nil {
				name = fmt.Sprint(step+1, ", one processor for each server")
			}
			rungs = append(rungs, rung{name, servers, step})
		}
	}
	for range roundsOr(floorRounds) {
		if err := c.climb(ctx, rungs); err != nil {
			return nil, err
		}
	}
	var tables []table
	if wanted("latency") {
		tables = append(tables, c.floorAlone(rungs))
	}
	if wanted("throughput") {
		tables = append(tables, c.floorTogether(rungs))
	}
	return tables, nil
}

// climb measures all rungs: first one worker, with calls counted in a time of its own, then many.
func (c *contest) climb(ctx context.Context, rungs []rung) error {
	if wanted("latency") {
		if err := c.climbAlone(ctx, rungs); err != nil {
			return err
		}
	}
	if !wanted("throughput") {
		return nil
	}
	for _, workers := range []int{64, 256} {
		if err := c.rawPairs(ctx, workers); err != nil {
			return err
		}
		for _, r := range rungs {
			if err := c.climbTogether(ctx, r, workers); err != nil {
				return err
			}
		}
		for _, d := range c.clusters {
			if err := c.nearPairs(ctx, d, workers); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *contest) climbAlone(ctx context.Context, rungs []rung) error {
	for away := range 2 {
		if err := c.alone(ctx, rawRow(away), c.plain.Servers, func() (*nats.Conn, error) { return nats.Connect(c.plain.URL(away)) }, rig.EchoSubject(0)); err != nil {
			return err
		}
	}
	for _, r := range rungs {
		if err := c.alone(ctx, r.name, r.servers.Servers, func() (*nats.Conn, error) { return nats.Connect(r.servers.URL(0)) }, ladder.Subject(r.step, 0)); err != nil {
			return err
		}
	}
	for _, d := range c.clusters {
		if err := c.lockAlone(ctx, d); err != nil {
			return err
		}
	}
	return nil
}

// alone measures one worker who sends requests.
func (c *contest) alone(ctx context.Context, name string, servers []*rig.Child, connect func() (*nats.Conn, error), subject string) error {
	nc, err := connect()
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer nc.Close()
	return c.timedAndCounted(ctx, name, servers, func(int) (time.Duration, error) {
		begin := time.Now()
		_, err := nc.Request(subject, []byte(rig.AcquireText), rig.Patience)
		return time.Since(begin), err
	}, 1)
}

// lockAlone measures locks at their primary's node. A lock and its release are two operations.
func (c *contest) lockAlone(ctx context.Context, d *rig.Daemons) error {
	nc, err := d.Only(0)
	if err != nil {
		return err
	}
	defer nc.Close()
	l, name, err := locksAt(d, nc)
	if err != nil {
		return err
	}
	return c.timedAndCounted(ctx, rowOf(d.Label, kindProtocol, 0), d.Children(), func(i int) (time.Duration, error) { return l.timed(nc, name(i)) }, 2)
}

// timedAndCounted samples how long something takes, then what the servers do for it.
func (c *contest) timedAndCounted(ctx context.Context, name string, servers []*rig.Child, do func(i int) (time.Duration, error), operations float64) error {
	if err := c.one(ctx, name, do); err != nil {
		return err
	}
	done := 0
	calls, err := rig.CountCalls(ctx, servers, func() error {
		for begin := time.Now(); time.Since(begin) < timed/2; done++ {
			if _, err := do(done); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	for what, n := range calls { // order: each is a sample of its own
		c.samples.add(name+" "+what, n/float64(done)/operations)
	}
	return nil
}

// climbTogether measures many workers at all nodes in turn, each of whom asks its own node.
func (c *contest) climbTogether(ctx context.Context, r rung, workers int) error {
	conns, err := connectEach(r.servers.URL)
	if err != nil {
		return err
	}
	defer closeAll(conns)
	got, err := worked(ctx, r.servers.Servers, workers, func(w int) error {
		for range 2 {
			if _, err := conns[w%len(conns)].Request(ladder.Subject(r.step, w%clusterNodes), []byte(rig.AcquireText), rig.Patience); err != nil {
				return fmt.Errorf("%s: %w", r.name, err)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	c.paired(r.name, workers, got)
	return nil
}

func (c *contest) floorAlone(rungs []rung) table {
	t := table{Title: "From a bare request to a lock, one worker",
		Columns: []string{"p50", "p99", "p50 / NATS", "system calls", "of them futex", "switches"}}
	line := func(name string) {
		t.add(name, micros(c.samples.time(name+" p50")), micros(c.samples.time(name+" p99")), ratio(c.samples.over(name+" p50", rawRow(1)+" p50")),
			c.calls(name, rig.AllCalls), c.calls(name, rig.FutexCalls), c.calls(name, rig.Switches))
	}
	line(rawRow(0))
	line(rawRow(1))
	for _, r := range rungs {
		line(r.name)
	}
	for _, d := range c.clusters {
		line(rowOf(d.Label, kindProtocol, 0))
	}
	t.note("Each numbered row does what the one above it does, and what it names, for a request to the own node. / NATS: the plain request to another node in the same round.")
	t.note("System calls, switches of threads: of all three servers for one request, counted by perf in a time of its own; a lock's are the mean of lock and release.")
	return t
}

// calls is what was counted, if there was somebody to count.
func (c *contest) calls(name, what string) value {
	if len(c.samples[name+" "+what]) == 0 {
		return nothing
	}
	return tenths(c.samples.median(name + " " + what))
}

func (c *contest) floorTogether(rungs []rung) table {
	t := table{Title: "From a bare request to a lock, many workers",
		Columns: rateColumns}
	line := func(name string) { c.rateLine(&t, name) }
	line(rawSpread)
	line(rawRow(1))
	for _, r := range rungs {
		line(r.name)
	}
	for _, d := range c.clusters {
		line(d.Label + ": " + kindNear)
	}
	t.note("Pairs of requests a second, each to the own node. Servers: processor time of all three for a pair.")
	return t
}
