package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/opencluster/oclocks/bench/rig"
)

const (
	measured = 2 * time.Second // of each workload but the last two
	rivals   = 10              // workers on one lock
	waiters  = 1000
	names    = 16 // that one worker takes in turn
	longest  = 90 * time.Second
)

// Names of figures.
const (
	lockP50, lockP99    = "lock_p50_us", "lock_p99_us"
	pairs64, pairs256   = "pairs_64", "pairs_256"
	handOver, unfair    = "hand_overs", "most_over_least_served"
	drained             = "drained_ms"
	gap, gapOfOne       = "gap_ms", "gap_of_one_ms"
	overlaps, neverBack = "overlaps", "stops"
)

// figures are what one round gave.
type figures map[string]float64

// measure runs all workloads but the end of a node.
func measure(ctx context.Context, s service) (figures, error) {
	f := figures{}
	ctx, cancel := context.WithTimeout(ctx, 4*longest)
	defer cancel()
	for _, step := range []struct {
		name string
		do   func(ctx context.Context, s service, f figures) error
	}{{"one worker", latency}, {"pairs", pairs}, {"hand-overs", handOvers}, {"drain", drain}} {
		if err := step.do(ctx, s, f); err != nil {
			return f, fmt.Errorf("%s: %w", step.name, err)
		}
	}
	return f, nil
}

// latency is one worker who takes free locks and gives them back.
func latency(ctx context.Context, s service, f figures) error {
	w, err := s.Worker(ctx, 0)
	if err != nil {
		return err
	}
	defer w.Close()
	var times []time.Duration
	begin := time.Now()
	for i := 0; i < 2*names || time.Since(begin) < measured; i++ {
		at := time.Now()
		if err := w.Lock(ctx, fmt.Sprint("one/", i%names)); err != nil {
			return err
		}
		if took := time.Since(at); i >= names { // each name was there once
			times = append(times, took)
		}
		if err := w.Unlock(ctx); err != nil {
			return err
		}
	}
	f[lockP50], f[lockP99] = micros(rig.Quantile(times, 0.5)), micros(rig.Quantile(times, 0.99))
	return nil
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }
func millis(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e6 }

// pairs is many workers, each with a lock of its own.
func pairs(ctx context.Context, s service, f figures) error {
	for n, name := range map[int]string{64: pairs64, 256: pairs256} {
		rate, err := withWorkers(ctx, s, n, func(all []worker) (float64, error) {
			pair := func(i int) error {
				if err := all[i].Lock(ctx, fmt.Sprint("own/", i)); err != nil {
					return err
				}
				return all[i].Unlock(ctx)
			}
			if err := together(n, pair); err != nil { // each name was there once
				return 0, err
			}
			return repeated(n, pair)
		})
		if err != nil {
			return err
		}
		f[name] = rate
	}
	return nil
}

// withWorkers lends n workers, who are made side by side.
func withWorkers[T any](ctx context.Context, s service, n int, do func(all []worker) (T, error)) (r T, err error) {
	all := make([]worker, n)
	defer func() {
		for _, w := range all {
			if w != nil {
				w.Close()
			}
		}
	}()
	if err := together(n, func(i int) (err error) { all[i], err = s.Worker(ctx, i); return err }); err != nil {
		return r, fmt.Errorf("make %d workers: %w", n, err)
	}
	return do(all)
}

// together does n things side by side and gives the first error.
func together(n int, do func(i int) error) error {
	var (
		group  sync.WaitGroup
		failed atomic.Pointer[error]
	)
	for i := range n {
		group.Go(func() {
			if err := do(i); err != nil {
				failed.CompareAndSwap(nil, &err)
			}
		})
	}
	group.Wait()
	if err := failed.Load(); err != nil {
		return *err
	}
	return nil
}

// repeated is how often a second n workers get something done.
func repeated(n int, do func(i int) error) (float64, error) {
	var (
		done  atomic.Int64
		begin = time.Now()
	)
	err := together(n, func(i int) error {
		k := int64(0)
		defer func() { done.Add(k) }()
		for ; time.Since(begin) < measured; k++ {
			if err := do(i); err != nil {
				return err
			}
		}
		return nil
	})
	return float64(done.Load()) / time.Since(begin).Seconds(), err
}

// section is what a lock protects: it sees who enters after whom, and whether two are in it.
type section struct {
	inside   atomic.Int32
	overlaps atomic.Int64
	last     int
	changes  int
	served   map[int]int
}

// visit is called by who has the lock.
func (s *section) visit(who int) {
	if s.inside.Add(1) != 1 {
		s.overlaps.Add(1)
		s.inside.Add(-1)
		return // what it would note is protected by nothing
	}
	if s.last != who {
		s.last = who
		s.changes++
	}
	s.served[who]++
	s.inside.Add(-1)
}

// handOvers is ten workers who want one lock: how often it goes to another one, and how evenly.
func handOvers(ctx context.Context, s service, f figures) error {
	_, err := withWorkers(ctx, s, rivals, func(all []worker) (struct{}, error) {
		in := section{last: -1, served: make(map[int]int)}
		begin := time.Now()
		var elapsed time.Duration
		err := together(rivals, func(i int) error {
			for time.Since(begin) < measured {
				if err := all[i].Lock(ctx, "one-for-all"); err != nil {
					return err
				}
				if time.Since(begin) < measured {
					in.visit(i)
				}
				if err := all[i].Unlock(ctx); err != nil {
					return err
				}
			}
			return nil
		})
		elapsed = measured
		f[handOver] = float64(in.changes) / elapsed.Seconds()
		least := slices.Min(countsOf(in.served, rivals))
		most := slices.Max(countsOf(in.served, rivals))
		f[unfair] = float64(most) / float64(max(1, least))
		f[overlaps] += float64(in.overlaps.Load())
		return struct{}{}, err
	})
	return err
}

func countsOf(served map[int]int, n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = served[i]
	}
	return all
}

// drain is how long it takes until a thousand who wait have had the lock, one after the other, from its release on.
func drain(ctx context.Context, s service, f figures) error {
	const name = "drained"
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	_, err := withWorkers(ctx, s, waiters+1, func(all []worker) (struct{}, error) {
		holder := all[waiters]
		if err := holder.Lock(ctx, name); err != nil {
			return struct{}{}, err
		}
		in := section{last: -1, served: make(map[int]int)}
		ended := make(chan error, 1)
		go func() {
			ended <- together(waiters, func(i int) error {
				if err := all[i].Lock(ctx, name); err != nil {
					return err
				}
				in.visit(i)
				return all[i].Unlock(ctx)
			})
		}()
		if err := rig.Await(ctx, func() (bool, error) {
			n, err := s.Waiting(ctx, name)
			return n >= waiters, err
		}); err != nil {
			cancel()
			return struct{}{}, fmt.Errorf("%d do not wait: %w", waiters, err)
		}
		begin := time.Now()
		if err := holder.Unlock(ctx); err != nil {
			cancel()
			return struct{}{}, err
		}
		err := <-ended
		f[drained] = millis(time.Since(begin))
		f[overlaps] += float64(in.overlaps.Load())
		return struct{}{}, err
	})
	return err
}
