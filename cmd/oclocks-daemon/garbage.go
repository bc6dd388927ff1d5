package main

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// A daemon with few locks has some 10 MiB alive and under load makes as much garbage in a tenth of a second, and the collector,
// which waits until the heap has doubled, runs all the time. So while it runs often it is told to wait for 32 MiB more. An idle
// daemon stays as small as it is, and one with many locks is not changed. ARCHITECTURE.md, "Garbage", has the figures.

const (
	garbageRoom  = 32 << 20        // bytes of garbage that may be made under load beyond as much as is alive
	often        = 2 * time.Second // a collection so soon after the one before
	load         = 8               // as many of them in a row; a daemon that starts makes fewer
	usualPercent = 100
)

// pace is told of each collection.
type pace struct {
	last    time.Time
	row     int // of collections that came often
	percent int
	set     func(percent int)
	live    func() uint64
}

// keepPace begins, unless the operator has told the collector what to do.
func keepPace(env func(string) string) {
	if env("GOGC") == "" && env("GOMEMLIMIT") == "" {
		(&pace{last: time.Now(), percent: usualPercent, set: func(percent int) { debug.SetGCPercent(percent) }, live: liveBytes}).watch()
	}
}

// watch has the collector itself tell when it has run: it finds something that nobody uses.
func (p *pace) watch() {
	runtime.SetFinalizer(&struct{ *pace }{p}, func(*struct{ *pace }) {
		p.collected(time.Now())
		p.watch()
	})
}

// collected chooses the garbage that may be made until the next collection. A small change is not worth stopping the world.
func (p *pace) collected(now time.Time) {
	percent := usualPercent
	if p.row++; now.Sub(p.last) >= often {
		p.row = 0
	}
	if p.row >= load {
		percent += int(garbageRoom * 100 / max(p.live(), 1<<20))
	}
	p.last = now
	if percent == usualPercent && p.percent != usualPercent || percent > p.percent*5/4 || percent < p.percent*3/4 {
		p.percent = percent
		p.set(percent)
	}
}

// liveBytes is what the newest collection has found alive.
func liveBytes() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	if sample[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return sample[0].Value.Uint64()
}
