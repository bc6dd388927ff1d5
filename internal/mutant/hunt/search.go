package main

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/opencluster/oclocks/internal/mutant"
	"github.com/opencluster/oclocks/internal/sim"
)

// search is how to look for a mutant.
type search struct {
	seeds int
	start uint64
	jobs  int
	most  time.Duration
}

// finding is what became of one.
type finding struct {
	mutant   mutant.Mutant
	seed     uint64 // that found it
	runs     int    // seeds that were run, the last one included
	time     int64  // simulated nanoseconds in them
	real     time.Duration
	hits     int64 // how often the mutant was different in them
	checker  string
	says     string
	kind     kind
	earlier  kind // the best that a seed before said
	lesser   int  // how many did
	lessText string
}

func (f *finding) found() bool { return f.kind == promise }

// seedResult is one seed's.
type seedResult struct {
	done    bool
	time    int64
	text    string
	checker string
	kind    kind
}

// find runs seeds until one finds the mutant. Which one that is does not depend on jobs: the first.
func (s *search) find(m mutant.Mutant) *finding {
	mutant.Choose(m)
	defer mutant.Choose(mutant.None)
	began := time.Now()
	results := make([]seedResult, s.seeds)
	var mu sync.Mutex
	next, first := 0, s.seeds // index of the first find
	work := func() {
		for {
			mu.Lock()
			at := next
			if at >= first || at >= s.seeds || time.Since(began) > s.most {
				mu.Unlock()
				return
			}
			next++
			mu.Unlock()
			r := runSeed(s.start + uint64(at))
			mu.Lock()
			results[at] = r
			if r.kind == promise {
				first = min(first, at)
			}
			mu.Unlock()
		}
	}
	var group sync.WaitGroup
	for range max(1, s.jobs) {
		group.Go(work)
	}
	group.Wait()
	f := &finding{mutant: m, hits: mutant.Hits(), real: time.Since(began)}
	for i := range results[:min(first+1, s.seeds)] {
		r := &results[i]
		if !r.done {
			break
		}
		f.runs++
		f.time += r.time
		switch {
		case r.kind == promise:
			f.seed, f.kind, f.checker, f.says = s.start+uint64(i), r.kind, r.checker, r.text
		case r.kind != nothing:
			f.lesser++
			if r.kind > f.earlier {
				f.earlier, f.lessText = r.kind, r.text
			}
		}
	}
	return f
}

// runSeed runs one seed. A panic is a result too.
func runSeed(seed uint64) (r seedResult) {
	r.done = true
	defer func() {
		if p := recover(); p != nil {
			r.text = fmt.Sprintf("panic: %v", p)
			r.checker, r.kind = judge(r.text)
		}
	}()
	res := sim.Run(seed, 0)
	r.time = res.Stats.Time
	if len(res.Wrong) > 0 {
		r.text = strings.TrimSpace(res.Wrong[0])
		r.checker, r.kind = judge(r.text)
	}
	return r
}

// line tells it on one line.
func (f *finding) line() string {
	if f.found() {
		return fmt.Sprintf("seed %d, %d runs, %s simulated, %s, %d hits, %d lesser; %s: %.160s", f.seed, f.runs, span(f.time),
			f.real.Round(time.Second/10), f.hits, f.lesser, f.checker, firstLine(f.says))
	}
	return fmt.Sprintf("NOT FOUND in %d runs, %s simulated, %s, %d hits, %d lesser: %s: %.160s", f.runs, span(f.time),
		f.real.Round(time.Second/10), f.hits, f.lesser, f.earlier, firstLine(f.lessText))
}

// span is a simulated time for people.
func span(ns int64) string {
	d := time.Duration(ns)
	if d < 10*time.Minute {
		return d.Round(time.Second).String()
	}
	return strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}
