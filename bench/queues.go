package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/opencluster/oclocks/bench/rig"
	"github.com/opencluster/oclocks/client"
)

const (
	rivals  = 10   // workers on one lock
	drained = 1000 // waiters
)

// queues measures one lock that many want.
func (c *contest) queues(ctx context.Context) error {
	for _, d := range c.clusters {
		err := withClients(ctx, d, func(clients []*client.Client) error {
			if err := c.handOvers(ctx, d, clients); err != nil {
				return err
			}
			return c.drain(ctx, d, clients)
		})
		if err != nil {
			return fmt.Errorf("%s: %w", d.Label, err)
		}
	}
	return nil
}

// handOvers counts how often a lock goes from worker to worker, and how evenly.
func (c *contest) handOvers(ctx context.Context, d *rig.Daemons, clients []*client.Client) error {
	var served [rivals]int // each by its worker
	r, err := work(ctx, rivals, func(w int) error {
		m := clients[w%len(clients)].Mutex("bench/one-for-all")
		if _, err := m.Lock(ctx); err != nil {
			return err
		}
		served[w]++
		return m.Unlock(ctx)
	})
	c.samples.add(d.Label+" hand-overs", r.rate())
	c.samples.add(d.Label+" fairness", float64(slices.Max(served[:]))/float64(max(1, slices.Min(served[:]))))
	return err
}

// drain measures how long it takes until the last of many waiters has had the lock, from the release of its holder on.
func (c *contest) drain(ctx context.Context, d *rig.Daemons, clients []*client.Client) error {
	const name = "bench/drained"
	claim, err := clients[0].Mutex(name).Lock(ctx)
	if err != nil {
		return err
	}
	var (
		group  sync.WaitGroup
		failed atomic.Pointer[error]
	)
	for i := range drained {
		group.Go(func() {
			m := clients[i%len(clients)].Mutex(name)
			if _, err := m.Lock(ctx); err != nil {
				failed.Store(&err)
				return
			}
			if err := m.Unlock(ctx); err != nil {
				failed.Store(&err)
			}
		})
	}
	if err := waitersAt(ctx, clients[0], name, drained); err != nil {
		return err
	}
	begin := time.Now()
	if err := claim.Release(ctx); err != nil {
		return err
	}
	group.Wait()
	c.samples.addTime(d.Label+" drain", time.Since(begin))
	if err := failed.Load(); err != nil {
		return *err
	}
	return nil
}

// waitersAt returns when that many wait for a lock.
func waitersAt(ctx context.Context, c *client.Client, name string, n int) error {
	ctx, cancel := context.WithTimeout(ctx, rig.Patience)
	defer cancel()
	err := rig.Await(ctx, func() (bool, error) {
		record, err := c.Query(ctx, name)
		return err == nil && record.Waiting == n, err
	})
	if err != nil {
		return fmt.Errorf("%d do not wait for %s: %w", n, name, err)
	}
	return nil
}

func (c *contest) queueTable() table {
	t := table{Title: "Three nodes: one lock that many want, Go client",
		Columns: []string{"hand-overs, 10 workers", "most / least served", "1,000 waiters drained"}}
	for _, d := range c.clusters {
		t.add(d.Label, rate(c.samples.median(d.Label+" hand-overs")), ratio(c.samples.median(d.Label+" fairness")),
			millis(c.samples.time(d.Label+" drain")))
	}
	t.note("Goal: 6,000 a second, 1.05, 300 ms.")
	return t
}
