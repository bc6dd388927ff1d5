package main

import (
	"math"
	"runtime"
	"time"
)

// Go's scheduler wakes a thread for another processor whenever a goroutine becomes ready and a processor is idle. In a daemon that is
// nearly always so: each request is a chain of goroutines that wake each other, with nothing for a second processor to do, and
// the threads that look for work take time from the client and the other daemons of the machine, or wake a sleeping core for nothing.
// So a daemon has as many processors as it keeps busy, one while it does with one, and more as soon as it needs them.
// ARCHITECTURE.md, "Processors", has the figures.

const (
	lookEvery  = 50 * time.Millisecond
	busyShare  = 0.8 // of its processors that a daemon uses in busyLooks in a row: it gets twice as many
	busyLooks  = 2
	calmShare  = 0.6 // of fewer processors that it would use by the mean of calmLooks: it gets those
	calmLooks  = 20
	leastCount = 1
)

// processors is told what the process uses.
type processors struct {
	most int // as many as the machine, or its share of it, has
	now  int
	set  func(n int)

	busy          int // looks in a row
	looks         int // since calm was judged last, and what they saw
	used, elapsed time.Duration
}

// keepProcessors begins, unless the operator has said how many there are to be, or nobody tells what is used.
func keepProcessors(env func(string) string) {
	most := runtime.GOMAXPROCS(0)
	if _, err := processorTime(); err != nil || env("GOMAXPROCS") != "" || most <= leastCount {
		return
	}
	p := &processors{most: most, now: most, set: func(n int) { runtime.GOMAXPROCS(n) }}
	go p.watch(time.Now(), time.Tick(lookEvery), processorTime)
}

// watch looks at each tick. If it is not told any more what is used, there are all again.
func (p *processors) watch(last time.Time, ticks <-chan time.Time, processorTime func() (time.Duration, error)) {
	before, err := processorTime()
	for now := range ticks {
		used := before
		if err == nil {
			used, err = processorTime()
		}
		if err != nil {
			p.choose(p.most)
			return
		}
		p.looked(used-before, now.Sub(last))
		before, last = used, now
	}
}

// looked judges what was used since the last look.
func (p *processors) looked(used, elapsed time.Duration) {
	if float64(used) >= busyShare*float64(p.now)*float64(elapsed) {
		p.busy++
	} else {
		p.busy = 0
	}
	p.looks, p.used, p.elapsed = p.looks+1, p.used+used, p.elapsed+elapsed
	switch {
	case p.busy >= busyLooks && p.now < p.most:
		p.choose(min(2*p.now, p.most))
	case p.looks >= calmLooks:
		enough := math.Ceil(float64(p.used) / (calmShare * float64(p.elapsed)))
		p.choose(min(p.now, max(leastCount, int(enough))))
	}
}

// choose begins a new judgement. A change stops all goroutines for some tens of microseconds.
func (p *processors) choose(n int) {
	p.busy, p.looks, p.used, p.elapsed = 0, 0, 0, 0
	if n != p.now {
		p.now = n
		p.set(n)
	}
}
