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
	warm     = time.Second     // of one worker before it counts
	rivals   = 10              // workers on one lock
	waiters  = 1000
	names    = 16 // that one worker takes in turn
	longest  = 90 * time.Second

	turns     = 20 // that one worker and plain NATS take, and
	pairTurns = 4  // many workers
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

// figures are what was measured in one round of one thing.
type figures map[string]float64

// measure runs all workloads but the end of a node.
func measure(ctx context.Context, s service, y *yardstick, r *round) error {
	ctx, cancel := context.WithTimeout(ctx, 4*longest)
	defer cancel()
	for _, step := range []struct {
		name string
		do   func() error
	}{
		{"one worker", func() error { return latency(ctx, s, y, r) }},
		{"pairs", func() error { return pairs(ctx, s, y, r) }},
		{"hand-overs", func() error { return handOvers(ctx, s, r.Peer) }},
		{"drain", func() error { return drain(ctx, s, r.Peer) }},
	} {
		if err := step.do(); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
	}
	return nil
}

// latency is one worker who takes free locks and gives them back, in turn with one who sends plain requests.
func latency(ctx context.Context, s service, y *yardstick, r *round) error {
	w, err := s.Worker(ctx, 0)
	if err != nil {
		return err
	}
	defer w.Close()
	next := 0
	lock := func() (took time.Duration, err error) {
		at := time.Now()
		if err := w.Lock(ctx, fmt.Sprint("one/", next%names)); err != nil {
			return 0, err
		}
		took = time.Since(at)
		next++
		return took, w.Unlock(ctx)
	}
	for begin := time.Now(); next < names || time.Since(begin) < warm; { // each name was there once
		if _, err := lock(); err != nil {
			return err
		}
	}
	ask := func(away int) func() (time.Duration, error) {
		return func() (time.Duration, error) {
			at := time.Now()
			err := y.request(away)
			return time.Since(at), err
		}
	}
	rows := []struct {
		f     figures
		do    func() (time.Duration, error)
		times []time.Duration
	}{{f: r.Same, do: ask(0)}, {f: r.Raw, do: ask(1)}, {f: r.Peer, do: lock}}
	for range turns {
		for i := range rows {
			for begin := time.Now(); time.Since(begin) < measured/turns; {
				took, err := rows[i].do()
				if err != nil {
					return err
				}
				rows[i].times = append(rows[i].times, took)
			}
		}
	}
	for _, row := range rows {
		row.f[lockP50], row.f[lockP99] = micros(rig.Quantile(row.times, 0.5)), micros(rig.Quantile(row.times, 0.99))
	}
	return nil
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }
func millis(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e6 }

// pairs is many workers, each with a lock of its own, in turn with as many who send two plain requests each.
func pairs(ctx context.Context, s service, y *yardstick, r *round) error {
	for n, name := range map[int]string{64: pairs64, 256: pairs256} {
		_, err := withWorkers(ctx, s, n, func(all []worker) (struct{}, error) {
			pair := func(i int) error {
				if err := all[i].Lock(ctx, fmt.Sprint("own/", i)); err != nil {
					return err
				}
				return all[i].Unlock(ctx)
			}
			if err := together(n, pair); err != nil { // each name was there once
				return struct{}{}, err
			}
			rows := []struct {
				f  figures
				do func(i int) error
				tally
			}{
				{f: r.Same, do: func(i int) error { return y.pair(ctx, i, 0) }},
				{f: r.Raw, do: func(i int) error { return y.pair(ctx, i, 1) }},
				{f: r.Peer, do: pair},
			}
			for range pairTurns {
				for i := range rows {
					if err := rows[i].add(n, measured/pairTurns, rows[i].do); err != nil {
						return struct{}{}, err
					}
				}
			}
			for i := range rows {
				rows[i].f[name] = rows[i].rate()
			}
			return struct{}{}, nil
		})
		if err != nil {
			return err
		}
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

// tally is how often something was done, and in which time.
type tally struct {
	done int64
	took time.Duration
}

func (t *tally) rate() float64 { return float64(t.done) / t.took.Seconds() }

// add has n workers do something again and again for a time.
func (t *tally) add(n int, long time.Duration, do func(i int) error) error {
	var (
		done  atomic.Int64
		begin = time.Now()
	)
	err := together(n, func(i int) error {
		k := int64(0)
		defer func() { done.Add(k) }()
		for ; time.Since(begin) < long; k++ {
			if err := do(i); err != nil {
				return err
			}
		}
		return nil
	})
	t.done += done.Load()
	t.took += time.Since(begin)
	return err
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
