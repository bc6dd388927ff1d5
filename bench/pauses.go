package main

import (
	"errors"
	"math"
	"runtime/metrics"
	"slices"
	"time"
)

// pauseMetric is how long all goroutines stood still for the garbage collector, as a histogram.
const pauseMetric = "/sched/pauses/total/gc:seconds"

// pauses are those of the garbage collector since it was asked for.
type pauses struct{ before []uint64 }

func watchPauses() (*pauses, error) {
	h, err := pausesSoFar()
	if err != nil {
		return nil, err
	}
	return &pauses{slices.Clone(h.Counts)}, nil
}

func pausesSoFar() (*metrics.Float64Histogram, error) {
	sample := []metrics.Sample{{Name: pauseMetric}}
	metrics.Read(sample)
	if sample[0].Value.Kind() != metrics.KindFloat64Histogram {
		return nil, errors.New("the runtime does not tell " + pauseMetric)
	}
	return sample[0].Value.Float64Histogram(), nil
}

// pauseFigures are upper bounds, by the runtime's histogram.
type pauseFigures struct {
	n             uint64
	median, worst time.Duration
}

func (p *pauses) figures() (f pauseFigures, err error) {
	h, err := pausesSoFar()
	if err != nil {
		return f, err
	}
	for i := range h.Counts {
		f.n += h.Counts[i] - p.before[i]
	}
	seen := uint64(0)
	for i := range h.Counts {
		more := h.Counts[i] - p.before[i]
		if more == 0 {
			continue
		}
		bound := h.Buckets[i+1]
		if math.IsInf(bound, 1) {
			bound = h.Buckets[i]
		}
		f.worst = time.Duration(bound * float64(time.Second))
		if seen <= f.n/2 {
			f.median = f.worst
		}
		seen += more
	}
	return f, nil
}
