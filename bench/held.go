package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/opencluster/oclocks/bench/rig"
	"github.com/opencluster/oclocks/conf"
	"github.com/opencluster/oclocks/subjects"
)

// growthGoal is how much more an operation may cost, with the most locks held than with the fewest.
const growthGoal = 1.2

// crowd is how many workers keep the daemon busy when the cost of an operation is measured.
const crowd = 64

// measureHeld measures what a client sees of the number of locks held, and what it costs: a random one of them is released and
// taken again, over NATS.
func measureHeld(ctx context.Context) ([]table, error) {
	bare, err := withoutLocks(ctx)
	if err != nil {
		return nil, fmt.Errorf("plain NATS: %w", err)
	}
	daemon, err := startDaemon(ctx)
	if err != nil {
		return nil, err
	}
	defer stopDaemon(daemon)
	sizes := []int{1_000, 100_000, 1_000_000}
	if os.Getenv("BENCH_10M") == "1" {
		sizes = append(sizes, 10_000_000)
	}
	h := &held{locks: locks{buckets: conf.Default().Buckets}}
	t := table{Title: "Release and acquire through the daemon while many locks are held",
		Columns: []string{"p50", "p99", "pairs", "processor time", "heap", "collections", "pause, p50", "longest, at least", "at most", "to stop"}}
	var all []heldFigures
	for _, n := range sizes {
		if err := h.fill(ctx, daemon.URL(), n); err != nil {
			return nil, fmt.Errorf("take %d locks: %w", n, err)
		}
		f, err := h.measure(ctx, daemon.URL())
		if err != nil {
			return nil, fmt.Errorf("%d held: %w", n, err)
		}
		all = append(all, f)
		t.add(strconv.Itoa(n)+" held", append([]value{micros(f.p50), micros(f.p99), rate(f.rate), micros(f.cost), mebibytes(f.heap)},
			f.pause.values()...)...)
	}
	t.add("plain NATS, no locks at all", append([]value{nothing, nothing, nothing, nothing, nothing}, bare.values()...)...)
	first, last := all[0], all[len(all)-1]
	t.add("last / first", overTime(last.p50, first.p50), overTime(last.p99, first.p99), ratio(last.rate/first.rate),
		overTime(last.cost, first.cost))
	t.note("p50, p99: of a pair, one worker. Pairs, processor time: %d workers; the time of one pair, client, NATS and garbage", crowd)
	t.note("collector included, since all is one process. Pause: all goroutines stood still, as %s", pauseMetric)
	t.note("tells, in steps of a quarter (p50: at most), and runtime/debug for each collection as a whole, while the same workers worked and")
	t.note("the garbage was collected again and again. To stop: the longest until all stood still, at most, which is a part of a pause. Plain")
	t.note("NATS: requests and replies of as many workers at a plain server in the same process, with nothing of ours.")
	t.note("Goal: last / first at most %.1f in p50 and processor time, no pause above 1 ms.", growthGoal)
	return []table{t}, nil
}

func overTime(a, b time.Duration) value { return ratio(float64(a) / float64(b)) }

// heldFigures is what was measured with one number of locks held.
type heldFigures struct {
	p50, p99, cost time.Duration
	rate, heap     float64
	pause          pauseFigures
}

// held are locks that are held through a daemon, with their unlock keys.
type held struct {
	locks
	keys []uint64
}

func (h *held) measure(ctx context.Context, url string) (f heldFigures, err error) {
	f.heap = heap()
	one, err := overNATS(ctx, url, 1, func(nc *nats.Conn, _ int) error { return h.again(nc, rand.IntN(len(h.keys))) })
	if err != nil {
		return f, err
	}
	before, err := processorTime()
	if err != nil {
		return f, err
	}
	many, err := h.crowded(ctx, url)
	if err != nil {
		return f, err
	}
	after, err := processorTime()
	if err != nil {
		return f, err
	}
	f.p50, f.p99, f.rate = rig.Quantile(one.times, 0.5), rig.Quantile(one.times, 0.99), many.rate()
	f.cost = (after - before) / time.Duration(many.pairs)
	f.pause, err = collected(func() error {
		_, err := h.crowded(ctx, url)
		return err
	})
	return f, err
}

// crowded is many workers, each with its share of the locks.
func (h *held) crowded(ctx context.Context, url string) (result, error) {
	share := len(h.keys) / crowd
	return overNATS(ctx, url, crowd, func(nc *nats.Conn, w int) error { return h.again(nc, w*share+rand.IntN(share)) })
}

// withoutLocks are the pauses of a process in which there is no daemon: a plain NATS server and its clients.
func withoutLocks(ctx context.Context) (pauseFigures, error) {
	plain, err := startEcho()
	if err != nil {
		return pauseFigures{}, err
	}
	defer plain.stop()
	return collected(func() error {
		_, err := overNATS(ctx, plain.url(), crowd, plain.pair)
		return err
	})
}

func (f *pauseFigures) values() []value {
	return []value{count(int64(f.n)), micros(f.median), micros(f.atLeast), micros(f.atMost), micros(f.stopping)}
}

// collected is how long the pauses are while many workers work and the garbage is collected again and again.
func collected(work func() error) (pauseFigures, error) {
	pauses, err := watchPauses()
	if err != nil {
		return pauseFigures{}, err
	}
	var (
		collector sync.WaitGroup
		ended     atomic.Bool
	)
	collector.Go(func() {
		for !ended.Load() {
			runtime.GC()
			pauses.look()
		}
	})
	err = work()
	ended.Store(true)
	collector.Wait()
	if err != nil {
		return pauseFigures{}, err
	}
	return pauses.figures()
}

func (h *held) request(i int) *subjects.Request {
	return &subjects.Request{Op: subjects.OpAcquire, Name: name(i), Has: subjects.HasTTL, TTL: time.Hour}
}

// again releases the i-th lock and takes it again.
func (h *held) again(nc *nats.Conn, i int) error {
	if err := h.release(nc, name(i), h.keys[i]); err != nil {
		return err
	}
	grant, err := h.acquire(nc, h.request(i))
	h.keys[i] = grant.Key
	return err
}
