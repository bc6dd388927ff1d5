package main

import (
	"math"
	"runtime"
	"runtime/debug"
	"slices"
	"testing"
	"time"
)

func TestPace(t *testing.T) {
	now := time.Unix(1000, 0)
	live := uint64(16 << 20)
	var set []int
	p := &pace{last: now, percent: usualPercent, set: func(percent int) { set = append(set, percent) }, live: func() uint64 { return live }}
	for range load - 1 {
		now = now.Add(time.Second)
		p.collected(now)
	}
	for _, c := range []struct {
		after time.Duration
		live  uint64
		want  []int
	}{
		{100 * time.Millisecond, 16 << 20, []int{300}},  // load
		{300 * time.Millisecond, 17 << 20, nil},         // not worth it
		{300 * time.Millisecond, 320 << 20, []int{110}}, // many locks
		{100 * time.Millisecond, 330 << 20, nil},
		{2 * time.Minute, 320 << 20, []int{100}}, // idle again
		{2 * time.Minute, 16 << 20, nil},
	} {
		set, live, now = nil, c.live, now.Add(c.after)
		p.collected(now)
		if !slices.Equal(set, c.want) {
			t.Errorf("after %v with %d MiB alive: %d was set, expected %d", c.after, c.live>>20, set, c.want)
		}
	}
}

// The collector tells of each of its runs; and of none where the operator has set something.
func TestKeepPace(t *testing.T) {
	old := debug.SetGCPercent(usualPercent)
	defer debug.SetGCPercent(old)
	for _, name := range []string{"GOGC", "GOMEMLIMIT"} {
		keepPace(func(asked string) string {
			if asked == name {
				return "100"
			}
			return ""
		})
	}
	told := make(chan int, 100)
	(&pace{last: time.Now(), percent: usualPercent, set: func(percent int) { told <- percent }, live: liveBytes}).watch()
	deadline := time.After(20 * time.Second)
	for {
		runtime.GC()
		select {
		case percent := <-told:
			if percent <= usualPercent || percent > math.MaxInt32 {
				t.Errorf("%d is set under load", percent)
			}
			if now := debug.SetGCPercent(usualPercent); now != usualPercent {
				t.Errorf("the collector was told %d although the operator has set something", now)
			}
			return
		case <-time.After(time.Millisecond):
		case <-deadline:
			t.Fatal("the collector does not tell")
		}
	}
}
