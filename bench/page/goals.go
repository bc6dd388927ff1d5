package main

import (
	"fmt"
	"strings"

	"github.com/opencluster/oclocks/conf"
)

// goal is one that figures can be held against. most: the figure may not be above it, else not below.
type goal struct {
	what  string
	limit float64
	most  bool
	unit  string // after the number
	found func(f *figures) (float64, bool)
}

// reported is the limit of what has none.
const reported = 0

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
	{"5. A held lock beyond its name, 1 million held", 150, true, " B", of("One lock table: acquire", "1000000 held", "beyond its name")},
	{"5. A waiter", 600, true, " B", of("One lock table: memory", "a waiter", "memory")},
	{"5. An idle zone, never used, on each node", 64, true, " KiB", of("Memory of a zone", daemonRow+": a zone, never used", "each")},
	{"5. What a bucket keeps of a zone that was busy, after ten minutes, times its buckets", 64, true, " KiB", keptOfZone},
	{"5. An idle session that had a lock, on each node", 1024, true, " B", of("Memory of a session", daemonRow+": has nothing", "each")},
	{"6. A pair with 10 million held locks, processor time, of that with 1,000", 1.2, true, " ×",
		of("Release and acquire through", "last / first", "processor time")},
	{"6. The same, p50", 1.2, true, " ×", of("Release and acquire through", "last / first", "p50")},
	{"6. The same with 1,000 zones, processor time, of that with one", 1.2, true, " ×", of("Three nodes: a pair in a cluster", "many / one", "servers")},
	{"6. The same, p50", 1.2, true, " ×", of("Three nodes: a pair in a cluster", "many / one", "p50")},
	{"6. 9 nodes, p50 of a pair, of that of 3", reported, true, " ×", of("Three nodes and nine", "nine / three", "p50")},
	{"6. The same, pairs/s with 256 workers", reported, false, " ×", of("Three nodes and nine", "nine / three", "256 workers")},
	{"6. 100,000 sessions with a lock each kept alive, lease 10 s, of a core", 0.1, true, "", of("Three nodes: 100000 sessions", daemonRow+": each has a lock, lease 10s", "of a processor")},
	{"6. The same, lease 1 min", 0.1, true, "", of("Three nodes: 100000 sessions", daemonRow+": each has a lock, lease 1m0s", "of a processor")},
	{"6. The same by clients that share 300 connections, lease 10 s", 0.1, true, "", of("Three nodes: 100000 sessions", daemonRow+": each has a lock, in bundles, lease 10s", "of a processor")},
	{"6. The same, lease 1 min", 0.1, true, "", of("Three nodes: 100000 sessions", daemonRow+": each has a lock, in bundles, lease 1m0s", "of a processor")},
	{"7. Allocations for an operation in a daemon, NATS's included, protocol", 5, true, "", of("Three nodes: garbage", daemonRow+": protocol", "allocations")},
	{"7. The same, Go client", 5, true, "", of("Three nodes: garbage", daemonRow+": Go client", "allocations")},
	{"7. Longest pause of the collector at 1 million locks, three daemons, 64 workers", 1000, true, " µs", of("Three nodes: pauses", daemonRow+": 64 working", "longest")},
	{"7. The same, one worker", 1000, true, " µs", of("Three nodes: pauses", daemonRow+": 1 working", "longest")},
	{"7. The same, daemon and clients in one process, collected again and again", 1000, true, " µs",
		of("Release and acquire through", "1000000 held", "at most")},
	{"8. Fail-over window, primary that does not lead, median", 1000, true, " ms", of("A node of three goes", "kill -9, primary, not the leader", "no grant, p50")},
	{"8. The same, primary and leader", 1000, true, " ms", of("A node of three goes", "kill -9, primary and leader", "no grant, p50")},
}

func keptOfZone(f *figures) (float64, bool) {
	v, ok := f.cell("One lock table: memory", "the same ten minutes later", "memory")
	return v * float64(conf.Default().Buckets) / (1 << 10), ok
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
		limit := sign + number(g.limit) + g.unit
		if g.limit == reported {
			limit = "–"
		}
		if v, ok := g.found(f); ok && g.limit == reported {
			measured = number(v) + g.unit
		} else if ok {
			measured, met = number(v)+g.unit, "**no**"
			if g.most == (v <= g.limit) || v == g.limit {
				met = "yes"
			}
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", g.what, limit, measured, met)
	}
	return b.String()
}

func number(v float64) string {
	if v >= 100 {
		return thousands(v)
	}
	return fmt.Sprintf("%.2f", v)
}
