package main

import (
	"errors"
	"math"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// How long all goroutines stood still for the garbage collector, and how much of that it took until they did, as histograms. Their
// buckets are wide: one goes from 918 to 1,049 µs.
const (
	pauseMetric    = "/sched/pauses/total/gc:seconds"
	stoppingMetric = "/sched/pauses/stopping/gc:seconds"
)

// pauses are those of the garbage collector since it was asked for.
type pauses struct {
	total, stopping *metrics.Float64Histogram // at the beginning
	cycles          int64                     // that the runtime had told of
	longer          time.Duration             // the longest that all pauses of one cycle took together, exactly
}

func watchPauses() (p *pauses, err error) {
	p = &pauses{}
	if p.total, err = histogram(pauseMetric); err == nil {
		p.stopping, err = histogram(stoppingMetric)
	}
	p.look()
	p.longer = 0
	return p, err
}

// look must be called more often than every 256 cycles, which is as many as the runtime remembers.
func (p *pauses) look() {
	var stats debug.GCStats
	debug.ReadGCStats(&stats)
	for i := range min(stats.NumGC-p.cycles, int64(len(stats.Pause))) {
		p.longer = max(p.longer, stats.Pause[i])
	}
	p.cycles = stats.NumGC
}

func histogram(name string) (*metrics.Float64Histogram, error) {
	sample := []metrics.Sample{{Name: name}}
	metrics.Read(sample)
	if sample[0].Value.Kind() != metrics.KindFloat64Histogram {
		return nil, errors.New("the runtime does not tell " + name)
	}
	return sample[0].Value.Float64Histogram(), nil
}

// pauseFigures are bounds: by the runtime's histogram, and the longest one by its cycle too.
type pauseFigures struct {
	n               uint64
	median          time.Duration // at most
	atLeast, atMost time.Duration // the longest
	stopping        time.Duration // at most: the longest until all stood still
}

func (p *pauses) figures() (f pauseFigures, err error) {
	total, err := histogram(pauseMetric)
	if err != nil {
		return f, err
	}
	stopping, err := histogram(stoppingMetric)
	if err != nil {
		return f, err
	}
	for i := range total.Counts {
		f.n += total.Counts[i] - p.total.Counts[i]
	}
	seen := uint64(0)
	for i := range total.Counts {
		more := total.Counts[i] - p.total.Counts[i]
		if more == 0 {
			continue
		}
		f.atLeast, f.atMost = seconds(max(0, total.Buckets[i])), upper(total, i)
		if seen <= f.n/2 {
			f.median = f.atMost
		}
		seen += more
	}
	for i := range stopping.Counts {
		if stopping.Counts[i] > p.stopping.Counts[i] {
			f.stopping = upper(stopping, i)
		}
	}
	p.look()
	f.atMost = min(f.atMost, max(p.longer, f.atLeast))
	f.stopping = min(f.stopping, f.atMost)
	return f, nil
}

func seconds(v float64) time.Duration { return time.Duration(v * float64(time.Second)) }

// upper is the upper end of a bucket.
func upper(h *metrics.Float64Histogram, bucket int) time.Duration {
	if math.IsInf(h.Buckets[bucket+1], 1) {
		return math.MaxInt64
	}
	return seconds(h.Buckets[bucket+1])
}
