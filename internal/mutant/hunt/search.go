package main

import (
	"fmt"
	"slices"
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
	theme string
}

// of says what is run.
func (s *search) of(commit string) string {
	text := "\n"
	if commit != "" {
		text += "Commit " + commit + ". "
	}
	return text + fmt.Sprintf("At most %d seeds for each, and none begun after %v.\n", s.seeds, s.most)
}

// finding is what became of one.
type finding struct {
	mutant                mutant.Mutant
	seed                  uint64 // that found it
	runs                  int    // seeds that were run, the last one included
	time                  int64  // simulated nanoseconds in them
	real                  time.Duration
	hits                  int64 // how often the mutant was different in them
	checker               string
	says                  string
	kind                  kind
	unsound               int  // seeds that said something without the mutant too
	lesser                int  // how many seeds before said something less
	earlier               kind // the best of them
	lessText, lessChecker string
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

// find runs seeds until one finds the mutant. Which one that is does not depend on jobs: the first. A seed that fails without the
// mutant too has found something else.
func (s *search) find(m mutant.Mutant) *finding {
	began := time.Now()
	results := make([]seedResult, s.seeds)
	f := &finding{mutant: m}
	for {
		mutant.Choose(m)
		s.runAll(results, began)
		f.hits += mutant.Hits()
		mutant.Choose(mutant.None)
		at := firstFind(results)
		if at < 0 {
			break
		}
		if sound := s.runSeed(s.start + uint64(at)); sound.kind == nothing {
			break
		}
		results[at] = seedResult{done: true, time: results[at].time}
		f.unsound++
	}
	f.real = time.Since(began)
	f.sum(s, results)
	return f
}

// runAll runs the seeds that were not run yet, up to the first that finds something.
func (s *search) runAll(results []seedResult, began time.Time) {
	var mu sync.Mutex
	next, first := 0, len(results)
	if at := firstFind(results); at >= 0 {
		first = at
	}
	work := func() {
		for {
			mu.Lock()
			for next < first && results[next].done {
				next++
			}
			at, over := next, next >= first
			next++
			mu.Unlock()
			if over || time.Since(began) > s.most {
				return
			}
			r := s.runSeed(s.start + uint64(at))
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
}

func firstFind(results []seedResult) int {
	return slices.IndexFunc(results, func(r seedResult) bool { return r.kind == promise })
}

// sum adds up the seeds that were run in a row.
func (f *finding) sum(s *search, results []seedResult) {
	for i := range results {
		r := &results[i]
		if !r.done {
			return
		}
		f.runs++
		f.time += r.time
		switch {
		case r.kind == promise:
			f.seed, f.kind, f.checker, f.says = s.start+uint64(i), r.kind, r.checker, r.text
			return
		case r.kind != nothing:
			f.lesser++
			if r.kind > f.earlier {
				f.earlier, f.lessText, f.lessChecker = r.kind, r.text, r.checker
			}
		}
	}
}

// runSeed runs one seed. A panic is a result too.
func (s *search) runSeed(seed uint64) (r seedResult) {
	r.done = true
	defer func() {
		if p := recover(); p != nil {
			r.text = fmt.Sprintf("panic: %v", p)
			r.checker, r.kind = judge(r.text)
		}
	}()
	res := sim.Recipe{Seed: seed, Theme: s.theme}.Run(0)
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
		return fmt.Sprintf("seed %d, %d runs, %s simulated, %s, %d hits, %d lesser, %d unsound; %s: %.160s", f.seed, f.runs, span(f.time),
			f.real.Round(time.Second/10), f.hits, f.lesser, f.unsound, f.checker, firstLine(f.says))
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
