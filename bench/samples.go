package main

import (
	"slices"
	"time"

	"github.com/opencluster/oclocks/bench/rig"
)

// samples has what was measured by name, one figure for each round.
type samples map[string][]float64

func (s samples) add(name string, v float64)           { s[name] = append(s[name], v) }
func (s samples) addTime(name string, d time.Duration) { s.add(name, float64(d)) }

func (s samples) median(name string) float64 { return rig.Median(s[name]) }

func (s samples) time(name string) time.Duration { return time.Duration(s.median(name)) }

func (s samples) max(name string) float64 {
	if len(s[name]) == 0 {
		return 0
	}
	return slices.Max(s[name])
}

// over is the median of what one figure is to another one of the same round: what else runs on the machine changes from
// round to round and slows both of them.
func (s samples) over(name, base string) float64 {
	var all []float64
	for i, v := range s[name] {
		if i < len(s[base]) && s[base][i] > 0 {
			all = append(all, v/s[base][i])
		}
	}
	return rig.Median(all)
}
