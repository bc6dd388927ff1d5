package sim

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"
)

// Ledger has the figures of a campaign, or of several together. Times are seconds.
type Ledger struct {
	Commit     string         `json:"commit,omitempty"`
	Began      time.Time      `json:"began"`
	Start      uint64         `json:"start"` // first seed
	Seeds      int            `json:"seeds"`
	Simulated  float64        `json:"simulated_seconds"`
	Wall       float64        `json:"wall_seconds"`
	Jobs       int            `json:"jobs"` // cores that were used, if there were so many
	Operations int            `json:"operations"`
	Answers    int            `json:"answers"`
	Messages   int            `json:"messages"`
	Changes    int            `json:"changes"` // of the control plane
	Views      int            `json:"views"`
	Recoveries int            `json:"recoveries"`
	Reigns     int            `json:"reigns"`
	Faults     map[string]int `json:"faults"`
	Failed     []Failure      `json:"failed"`
	Print      string         `json:"fingerprint,omitempty"` // of all runs together, in whatever order they ended

	began  time.Time
	prints uint64
}

// Failure is a seed that did not keep a promise.
type Failure struct {
	Seed  uint64 `json:"seed"`
	Wrong string `json:"wrong"`
}

func newLedger(start uint64) Ledger {
	now := time.Now()
	return Ledger{Began: now.UTC().Truncate(time.Second), began: now, Start: start, Faults: map[string]int{}, Failed: []Failure{}}
}

func (l *Ledger) add(r *Result) {
	s := &r.Stats
	l.Seeds += s.Seeds
	one := fingerprint(r.Seed)
	one.number(r.Fingerprint)
	l.prints += uint64(one)
	l.Simulated += float64(s.Time) / float64(second)
	l.Operations += s.Requests
	l.Answers += s.Answers
	l.Messages += s.Messages
	l.Changes += s.Changes
	l.Views += s.Views
	l.Recoveries += s.Recoveries
	l.Reigns += s.Reigns
	addUp(&l.Faults, s.Faults)
	if len(r.Wrong) > 0 {
		wrong, _, _ := strings.Cut(strings.TrimSpace(r.Wrong[0]), "\n")
		l.Failed = append(l.Failed, Failure{r.Seed, wrong})
	}
}

func (l *Ledger) end(jobs int) {
	l.Wall, l.Jobs = time.Since(l.began).Seconds(), min(jobs, runtime.NumCPU())
	l.Print = fmt.Sprintf("%016x", l.prints)
}

// line tells the figures in one line.
func (l *Ledger) line() string {
	wall := l.Wall
	if wall == 0 {
		wall = time.Since(l.began).Seconds()
	}
	return fmt.Sprintf("%d seeds, %d failed, %d operations, %v simulated in %v: %.1f seeds, %.0f operations, %.0f simulated seconds a second",
		l.Seeds, len(l.Failed), l.Operations, time.Duration(l.Simulated*1e9).Round(time.Second), time.Duration(wall*1e9).Round(time.Second),
		float64(l.Seeds)/wall, float64(l.Operations)/wall, l.Simulated/wall)
}

func (l *Ledger) String() string { return l.line() }

// Sum adds the figures of another campaign.
func (l *Ledger) Sum(o *Ledger) {
	l.Seeds += o.Seeds
	l.Simulated += o.Simulated
	l.Wall += o.Wall
	l.Operations += o.Operations
	l.Answers += o.Answers
	l.Messages += o.Messages
	l.Changes += o.Changes
	l.Views += o.Views
	l.Recoveries += o.Recoveries
	l.Reigns += o.Reigns
	addUp(&l.Faults, o.Faults)
	l.Failed = append(l.Failed, o.Failed...)
}

// Append adds the ledger to a file as one line of JSON.
func (l *Ledger) Append(path string) error {
	text, err := json.Marshal(l)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return fmt.Errorf("append to the ledger: %w", err)
	}
	if _, err := f.Write(append(text, '\n')); err != nil {
		return fmt.Errorf("append to the ledger: %w; %w", err, f.Close())
	}
	return f.Close()
}

// ReadLedgers adds up all lines of a file that Append wrote.
func ReadLedgers(path string) (sum Ledger, lines int, err error) {
	f, err := os.Open(path)
	if err != nil {
		return sum, 0, err
	}
	defer f.Close()
	for d := json.NewDecoder(f); d.More(); lines++ {
		var l Ledger
		if err := d.Decode(&l); err != nil {
			return sum, lines, fmt.Errorf("%s, ledger %d: %w", path, lines+1, err)
		}
		sum.Sum(&l)
	}
	return sum, lines, nil
}
