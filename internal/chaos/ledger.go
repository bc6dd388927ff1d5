package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Entry is one line of the ledger: what was run, and what came of it.
type Entry struct {
	Time       time.Time      `json:"time"`
	What       string         `json:"what"` // chaos or jepsen
	Commit     string         `json:"commit,omitempty"`
	Seed       uint64         `json:"seed"`
	Seconds    float64        `json:"seconds"`
	Nodes      int            `json:"nodes"`
	Clients    int            `json:"clients"`
	Operations int            `json:"operations"` // requests of clients: locks, releases, renewals, cancels, forces, questions
	Events     int            `json:"events"`
	Grants     int            `json:"grants"`
	Beliefs    int            `json:"beliefs"`
	Ordered    int            `json:"ordered"`   // requests for which an order was sought
	Undecided  int            `json:"undecided"` // searches that were given up
	Doubts     int            `json:"doubts"`
	Rounds     int            `json:"rounds,omitempty"`
	Faults     map[Kind]int   `json:"faults"` // that really happened
	Ways       *Ways          `json:"ways,omitempty"`
	Violations int            `json:"violations"`
	Jepsen     *JepsenFigures `json:"jepsen,omitempty"`
}

// entry is the run's line.
func (r *run) entry() *Entry {
	r.mu.Lock()
	defer r.mu.Unlock()
	stats := r.history.checker.Stats()
	ways, err := r.waysUsed()
	if err != nil {
		r.note("%v", err)
	}
	clients := 0
	for _, w := range r.workers {
		clients += actors + w.crowd()
	}
	return &Entry{
		Time: time.Now().UTC().Truncate(time.Second), What: "chaos", Seed: r.schedule.Seed, Seconds: r.since(),
		Nodes: r.schedule.Nodes, Clients: clients, Operations: r.history.operations, Events: stats.Events,
		Grants: stats.Grants, Beliefs: stats.Beliefs, Ordered: stats.Ordered, Undecided: stats.Undecided, Doubts: stats.Doubts,
		Rounds: len(r.schedule.Rounds), Faults: r.faults, Ways: &ways, Violations: len(r.history.checker.Violations()) + len(r.problems),
	}
}

// String is some lines for people.
func (e *Entry) String() string {
	var list []string
	sum := 0
	for kind, n := range e.Faults {
		list = append(list, fmt.Sprintf("%s %d", kind, n))
		sum += n
	}
	slices.Sort(list)
	return fmt.Sprintf("chaos: %.0f s, %d nodes, %d clients, %d operations, %d grants, %d beliefs, %d recoveries, %v, %d faults of %d kinds (%s): %d violations",
		e.Seconds, e.Nodes, e.Clients, e.Operations, e.Grants, e.Beliefs, e.Doubts, e.Ways, sum, len(e.Faults), strings.Join(list, ", "), e.Violations)
}

// JepsenEntry runs Jepsen's lock test and gives its line.
func JepsenEntry(ctx context.Context, cfg JepsenConfig) (*Entry, error) {
	f, err := Jepsen(ctx, cfg)
	if f == nil {
		return nil, err
	}
	e := &Entry{Time: time.Now().UTC().Truncate(time.Second), What: "jepsen", Seconds: f.Seconds, Nodes: 3, Clients: cfg.Workers,
		Operations: f.Acknowledged + f.Refused, Faults: map[Kind]int{ClientStop: f.Pauses}, Jepsen: f}
	if errors.Is(err, ErrViolation) {
		e.Violations = 1
	}
	return e, err
}

// Append adds the entry to a ledger, a file with one JSON object a line.
func (e *Entry) Append(path string) error {
	text, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("write the ledger: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // for people to read
		return fmt.Errorf("write the ledger: %w", err)
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644) //nolint:gosec // for people to read
	if err != nil {
		return fmt.Errorf("write the ledger: %w", err)
	}
	defer file.Close()
	if _, err := file.Write(append(text, '\n')); err != nil {
		return fmt.Errorf("write the ledger: %w", err)
	}
	return nil
}

// Sum adds up the ledger in a file: a text for people.
func Sum(path string) (string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("read the ledger: %w", err)
	}
	sum, runs := Entry{Faults: make(map[Kind]int), Ways: &Ways{}}, 0
	var jepsen []string
	for line := range strings.Lines(string(text)) {
		var e Entry
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			return "", fmt.Errorf("read the ledger: %w", err)
		}
		if e.Jepsen != nil {
			jepsen = append(jepsen, e.Jepsen.String())
			continue
		}
		runs++
		sum.add(&e)
	}
	out := fmt.Sprintf("%d runs, %.0f minutes, %d requests of clients, %d grants, %d beliefs, %d recoveries of buckets, %d violations\n%v\n",
		runs, sum.Seconds/60, sum.Operations, sum.Grants, sum.Beliefs, sum.Doubts, sum.Violations, sum.Ways)
	for _, kind := range Kinds() {
		out += fmt.Sprintf("%7d %s\n", sum.Faults[kind], kind)
	}
	return out + strings.Join(jepsen, "\n"), nil
}

func (e *Entry) add(o *Entry) {
	e.Seconds += o.Seconds
	e.Operations += o.Operations
	e.Events += o.Events
	e.Grants += o.Grants
	e.Beliefs += o.Beliefs
	e.Ordered += o.Ordered
	e.Undecided += o.Undecided
	e.Doubts += o.Doubts
	e.Rounds += o.Rounds
	e.Violations += o.Violations
	if o.Ways != nil {
		e.Ways.add(o.Ways)
	}
	for kind, n := range o.Faults { // order: they are added
		e.Faults[kind] += n
	}
}
