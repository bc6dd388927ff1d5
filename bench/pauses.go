package main

import (
	"errors"
	"math"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"time"
)

// pauseMetric is how long all goroutines stood still for the garbage collector, as a histogram. Its buckets are wide: one goes from
// 918 to 1,049 µs.
const pauseMetric = "/sched/pauses/total/gc:seconds"

// pauses are those of the garbage collector since it was asked for.
type pauses struct {
	before []uint64
	cycles int64         // that the runtime had told of
	longer time.Duration // the longest that all pauses of one cycle took together, exactly
}

func watchPauses() (*pauses, error) {
	h, err := pausesSoFar()
	if err != nil {
		return nil, err
	}
	p := &pauses{before: slices.Clone(h.Counts)}
	p.look()
	p.longer = 0
	return p, nil
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

func pausesSoFar() (*metrics.Float64Histogram, error) {
	sample := []metrics.Sample{{Name: pauseMetric}}
	metrics.Read(sample)
	if sample[0].Value.Kind() != metrics.KindFloat64Histogram {
		return nil, errors.New("the runtime does not tell " + pauseMetric)
	}
	return sample[0].Value.Float64Histogram(), nil
}

// pauseFigures are bounds: by the runtime's histogram, and the longest one by its cycle too.
type pauseFigures struct {
	n               uint64
	median          time.Duration // at most
	atLeast, atMost time.Duration // the longest
}

func (p *pauses) figures() (f pauseFigures, err error) {
	h, err := pausesSoFar()
	if err != nil {
		return f, err
	}
	for i := range h.Counts {
		f.n += h.Counts[i] - p.before[i]
	}
	seconds := func(v float64) time.Duration { return time.Duration(v * float64(time.Second)) }
	seen := uint64(0)
	for i := range h.Counts {
		more := h.Counts[i] - p.before[i]
		if more == 0 {
			continue
		}
		f.atLeast, f.atMost = seconds(max(0, h.Buckets[i])), time.Duration(math.MaxInt64)
		if !math.IsInf(h.Buckets[i+1], 1) {
			f.atMost = seconds(h.Buckets[i+1])
		}
		if seen <= f.n/2 {
			f.median = f.atMost
		}
		seen += more
	}
	p.look()
	f.atMost = min(f.atMost, max(p.longer, f.atLeast))
	return f, nil
}
