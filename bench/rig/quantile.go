package rig

import (
	"slices"
	"time"
)

// Quantile is the q-th Quantile of times, 0 to 1; it sorts them.
func Quantile(times []time.Duration, q float64) time.Duration {
	slices.Sort(times)
	if len(times) == 0 {
		return 0
	}
	return times[min(len(times)-1, int(q*float64(len(times))))]
}

// Median is 0 of nothing.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}
