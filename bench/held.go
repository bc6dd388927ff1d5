package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/opencluster/oclocks/broker"
	"github.com/opencluster/oclocks/conf"
	"github.com/opencluster/oclocks/subjects"
)

// fillers is how many workers take the locks that are held.
const fillers = 256

// measureHeld measures what a client sees of the number of locks held: a random one of them is released and taken again,
// over NATS, by one worker.
func measureHeld(ctx context.Context) ([]table, error) {
	daemon, err := startDaemon(ctx)
	if err != nil {
		return nil, err
	}
	defer stopDaemon(daemon)
	h := &held{locks: locks{buckets: conf.Default().Buckets}}
	t := table{Title: "Release and acquire through the daemon while many locks are held, one worker", Columns: []string{"p50", "p99"}}
	var first, last time.Duration
	for _, n := range []int{1_000, 100_000, 1_000_000} {
		if err := h.fill(ctx, daemon, n); err != nil {
			return nil, fmt.Errorf("take %d locks: %w", n, err)
		}
		r, err := overNATS(ctx, daemon.URL(), 1, h.pair)
		if err != nil {
			return nil, err
		}
		last = quantile(r.times, 0.5)
		if first == 0 {
			first = last
		}
		t.add(strconv.Itoa(n)+" held", micros(last), micros(quantile(r.times, 0.99)))
	}
	t.add("last / first", ratio(float64(last)/float64(first)))
	t.note("Goal: at most %.1f.", goalRatio)
	return []table{t}, nil
}

// held are locks that are held through a daemon, with their unlock keys.
type held struct {
	locks
	keys []uint64
}

// fill takes locks until n are held.
func (h *held) fill(ctx context.Context, daemon *broker.Daemon, n int) error {
	conns, err := connect(daemon.URL(), connections)
	if err != nil {
		return err
	}
	defer closeAll(conns)
	from := len(h.keys)
	h.keys = append(h.keys, make([]uint64, n-from)...)
	var (
		next   atomic.Int64
		group  sync.WaitGroup
		failed atomic.Pointer[error]
	)
	for w := range fillers {
		group.Go(func() {
			for ctx.Err() == nil && failed.Load() == nil {
				i := from + int(next.Add(1)) - 1
				if i >= n {
					return
				}
				key, err := h.take(conns[w%connections], i)
				if err != nil {
					failed.Store(&err)
				}
				h.keys[i] = key
			}
		})
	}
	group.Wait()
	if err := failed.Load(); err != nil {
		return *err
	}
	return ctx.Err()
}

func (h *held) take(nc *nats.Conn, i int) (key uint64, err error) {
	grant, err := h.acquire(nc, &subjects.Request{Name: name(i), Has: subjects.HasTTL, TTL: time.Hour})
	return grant.Key, err
}

func (h *held) pair(nc *nats.Conn, _ int) error {
	i := rand.IntN(len(h.keys))
	if err := h.release(nc, name(i), h.keys[i]); err != nil {
		return err
	}
	var err error
	h.keys[i], err = h.take(nc, i)
	return err
}
