package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/opencluster/oclocks/bench/rig"
	"github.com/opencluster/oclocks/client"
)

// connections is how many connections the workers share at most.
const connections = 4

// result is what workers got done.
type result struct {
	pairs   int
	elapsed time.Duration
	times   []time.Duration // of each pair; only with one worker
	slowest time.Duration
	used    time.Duration // processor time of the servers, if that was measured
}

func (r result) rate() float64 { return float64(r.pairs) / r.elapsed.Seconds() }

// each is the servers' processor time for one pair.
func (r result) each() time.Duration { return r.used / time.Duration(max(1, r.pairs)) }

// work lets that many workers do pairs for about two seconds. Each gets its own number.
func work(ctx context.Context, workers int, pair func(worker int) error) (result, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var (
		group  sync.WaitGroup
		mu     sync.Mutex
		total  result
		begin  = time.Now()
		ending = begin.Add(2 * timed)
	)
	for w := range workers {
		group.Go(func() {
			var (
				times   []time.Duration
				slowest time.Duration
				n       int
			)
			for last := time.Now(); last.Before(ending) && ctx.Err() == nil; n++ {
				if err := pair(w); err != nil {
					cancel(err)
					return
				}
				now := time.Now()
				slowest = max(slowest, now.Sub(last))
				if workers == 1 {
					times = append(times, now.Sub(last))
				}
				last = now
			}
			mu.Lock()
			defer mu.Unlock()
			total.pairs += n
			total.slowest = max(total.slowest, slowest)
			total.times = append(total.times, times...)
		})
	}
	group.Wait()
	total.elapsed = time.Since(begin)
	return total, context.Cause(ctx)
}

// together does something as often at once, and waits for all; the first error ends them.
func together(ctx context.Context, n int, do func(i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() {
			if err := do(i); err != nil {
				cancel(err)
			}
		})
	}
	group.Wait()
	return context.Cause(ctx)
}

// overNATS does the pairs of workers that share plain NATS connections.
func overNATS(ctx context.Context, url string, workers int, pair func(nc *nats.Conn, worker int) error) (result, error) {
	conns, err := connect(url, min(workers, connections))
	if err != nil {
		return result{}, err
	}
	defer closeAll(conns)
	return work(ctx, workers, func(w int) error { return pair(conns[w%len(conns)], w) })
}

func connect(url string, n int) ([]*nats.Conn, error) {
	var conns []*nats.Conn
	for range n {
		nc, err := nats.Connect(url)
		if err != nil {
			closeAll(conns)
			return nil, fmt.Errorf("connect: %w", err)
		}
		conns = append(conns, nc)
	}
	return conns, nil
}

func closeAll(conns []*nats.Conn) {
	for _, nc := range conns {
		nc.Close()
	}
}

// overClient does the pairs of workers that share Go clients: Lock and Unlock of a Mutex of their own.
func overClient(ctx context.Context, url string, workers int) (r result, err error) {
	var clients []*client.Client
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), rig.Patience)
		defer cancel()
		for _, c := range clients {
			err = errors.Join(err, c.Close(closing))
		}
	}()
	for range min(workers, connections) {
		c, err := client.Connect(ctx, url)
		if err != nil {
			return result{}, err
		}
		clients = append(clients, c)
	}
	return work(ctx, workers, func(w int) error { return clientPair(ctx, clients, w) })
}

// clientPair locks and unlocks a worker's own lock, with its share of the clients.
func clientPair(ctx context.Context, clients []*client.Client, worker int) error {
	m := clients[worker%len(clients)].Mutex(new(locks).name(worker))
	if _, err := m.Lock(ctx); err != nil {
		return err
	}
	return m.Unlock(ctx)
}
