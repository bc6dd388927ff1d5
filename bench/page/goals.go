package main

import (
	"fmt"
	"strings"
)

// goal is one that figures can be held against. most: the figure may not be above it, else not below.
type goal struct {
	what  string
	limit float64
	most  bool
	unit  string // after the number
	found func(f *figures) (float64, bool)
}

const daemonRow = "oclocks-daemon"

func own(name string) func(f *figures) (float64, bool) {
	return func(f *figures) (float64, bool) { return f.peer("oclocks").median(name) }
}

func toRaw(name string) func(f *figures) (float64, bool) {
	return func(f *figures) (float64, bool) { return f.peer("oclocks").ratio(name) }
}

func of(title, name, column string) func(f *figures) (float64, bool) {
	return func(f *figures) (float64, bool) { return f.cell(title, name, column) }
}

var goals = []goal{
	{"1. Pairs/s, 256 workers, of raw NATS to another node", 1.0, false, " ×", toRaw("pairs_256")},
	{"1. The same with 64 workers", 1.0, false, " ×", toRaw("pairs_64")},
	{"2. Uncontended lock, p50, of a raw request to another node", 1.1, true, " ×", toRaw("lock_p50_us")},
	{"2. p99, of its p99", 1.5, true, " ×", toRaw("lock_p99_us")},
	{"3. Hand-overs a second, 10 workers on one lock", 6000, false, "", own("hand_overs")},
	{"3. Most / least served", 1.05, true, "", own("most_over_least_served")},
	{"3. 1,000 waiters drained", 300, true, " ms", own("drained_ms")},
	{"4. `locks.acquire`, 256 workers, of raw NATS", 0.5, false, " ×", of("Three nodes: pairs", daemonRow+": locks.acquire", "256 / NATS")},
	{"4. The same with 64 workers", 0.5, false, " ×", of("Three nodes: pairs", daemonRow+": locks.acquire", "64 / NATS")},
	{"6. A pair with 10 million held locks, processor time, of that with 1,000", 1.2, true, " ×",
		of("Release and acquire through", "last / first", "processor time")},
	{"6. The same, p50", 1.2, true, " ×", of("Release and acquire through", "last / first", "p50")},
	{"7. Longest pause of the collector at 1 million locks", 1000, true, " µs", of("Release and acquire through", "1000000 held", "longest")},
	{"8. Fail-over window, primary that does not lead, median", 1000, true, " ms", of("A node of three goes", "kill -9, primary, not the leader", "no grant, p50")},
	{"8. The same, primary and leader", 1000, true, " ms", of("A node of three goes", "kill -9, primary and leader", "no grant, p50")},
}

func goalsBlock(f *figures) string {
	var b strings.Builder
	b.WriteString("| goal | limit | measured | met? |\n|---|---|---|---|\n")
	for _, g := range goals {
		sign := "≥ "
		if g.most {
			sign = "≤ "
		}
		measured, met := "not measured", "–"
		if v, ok := g.found(f); ok {
			measured, met = number(v)+g.unit, "**no**"
			if g.most == (v <= g.limit) || v == g.limit {
				met = "yes"
			}
		}
		fmt.Fprintf(&b, "| %s | %s%s%s | %s | %s |\n", g.what, sign, number(g.limit), g.unit, measured, met)
	}
	return b.String()
}

func number(v float64) string {
	if v >= 100 {
		return thousands(v)
	}
	return fmt.Sprintf("%.2f", v)
}
