package sim

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

var (
	seeds = flag.Int("seeds", 3, "how many seeds TestSim runs")
	start = flag.Uint64("start", 1, "the first of them")
	lines = flag.Int("story", 150, "lines of the story of a seed that fails")
	keep  = flag.Bool("goon", false, "go on after a seed that fails")
)

// TestSim runs clusters made of the code that ships through trouble, one for each seed, and looks whether the promises are kept.
func TestSim(t *testing.T) {
	var sum Stats
	began := time.Now()
	failed := 0
	for i := range *seeds {
		seed := *start + uint64(i)
		r := Run(seed, *lines)
		sum.Add(&r.Stats)
		if len(r.Wrong) > 0 {
			failed++
			t.Errorf("%s\n\nseed %d: %s\nmix: %s\nreplay it: %s", strings.Join(r.Story, "\n"),
				seed, strings.Join(r.Wrong, "\n"), r.Mix, Recipe{Seed: seed}.Command())
			if !*keep {
				break
			}
		}
		if (i+1)%500 == 0 {
			t.Logf("%d seeds, %d failed, %s", i+1, failed, report(&sum, time.Since(began)))
		}
	}
	t.Log(report(&sum, time.Since(began)))
}

// TestSeedsThatFailed runs seeds that have found bugs of the product, as it was then and as the simulator was then; what a seed does
// changes with both. Each bug has a test of its own in the room where it was.
func TestSeedsThatFailed(t *testing.T) {
	for _, seed := range []uint64{
		1,     // broker/cell.go: a shard goes round and round while a request stands at a bucket
		11,    // bucket/chain/plan.go: who is away is let into the chain again and again
		59,    // broker/adopt.go: a removed node stays in a chain in which nothing happens
		1256,  // bucket/replicated/fork.go: of two splits at once the first half is lost
		1213,  // bucket/replicated/fork.go: nobody begins what was split off a bucket that began with nothing
		10835, // arbiter/plan/members.go: a removed leader leaves voters that can decide nothing
		// internal/machine/orphan.go: an acquire that was refused has a hold after a recovery
		12000016413, 12000027040,
	} {
		if r := Run(seed, *lines); len(r.Wrong) > 0 {
			t.Errorf("%s\nseed %d: %s", strings.Join(r.Story, "\n"), seed, strings.Join(r.Wrong, "\n"))
		}
	}
}

// TestSameSeedSameRun: what a seed does, it does again.
func TestSameSeedSameRun(t *testing.T) {
	a, b := Run(3, 0), Run(3, 0)
	if fmt.Sprintf("%+v", a.Stats) != fmt.Sprintf("%+v", b.Stats) {
		t.Fatalf("two runs of one seed:\n%+v\n%+v", a.Stats, b.Stats)
	}
}

func report(s *Stats, took time.Duration) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d seeds in %v (%.2f/s), %v simulated; %d events, %d messages, %d requests, %d answers, %d grants, %d changes, %d views, %d recoveries, %d reigns, %d old disks, %d duplicates, %d alerts\n",
		s.Seeds, took.Round(time.Second), float64(s.Seeds)/took.Seconds(), time.Duration(s.Time).Round(time.Second), s.Events, s.Messages, s.Requests,
		s.Answers, s.Grants, s.Changes, s.Views, s.Recoveries, s.Reigns, s.OldDisks, s.Duplicates, s.Alerts)
	for _, name := range slices.Sorted(maps.Keys(s.Faults)) {
		fmt.Fprintf(&b, "  %8d %s\n", s.Faults[name], name)
	}
	b.WriteString("operations, and what came of them:\n")
	for _, name := range slices.Sorted(maps.Keys(s.Ops)) {
		fmt.Fprintf(&b, "  %8d %s\n", s.Ops[name], name)
	}
	return b.String()
}
