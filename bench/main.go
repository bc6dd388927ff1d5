// Command bench measures the broker and prints what it found as tables: the lock table alone, the codec, the journal, a
// whole daemon over NATS next to a plain NATS server in the same run, how soon a lock is free after its holder was killed,
// and a cluster of three daemons: next to three plain NATS servers, when a node goes, idle, with very many sessions or zones, next to nine,
// and the garbage that it makes. It is a module of its own, so that what only benchmarks need is no dependency of the product.
//
//	make bench                       # what takes no minutes
//	make bench ARGS='--only all'
//	make bench ARGS='--only cluster,failover'
//	cd bench && go run . --only table,kill --json
//	cd bench && go run . --only cluster --rounds 5 --daemon /tmp/before,/tmp/after
//
// BENCH_10M=1 adds ten million locks to the sections table and held.
//
// Read report.go (what a result is; keep.go for a file of results), timing.go and load.go, then one file for each section: table.go, codec.go,
// journal.go, pairs.go (with rawnats.go), held.go (with fill.go and pauses.go), kill.go; the package rig and samples.go before
// cluster.go, throughput.go, queues.go, floor.go (with the package ladder), failover.go (with strain.go), idle.go, keepalive.go (with sessions.go and bundles.go), memory.go, zones.go, nodes.go
// and garbage.go.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"

	"github.com/opencluster/oclocks/bench/ladder"
	"github.com/opencluster/oclocks/bench/rig"
)

// section is one group of measurements.
type section struct {
	name string
	run  func(ctx context.Context) ([]table, error)
	long bool // it takes minutes, so it runs only if it is asked for
}

// everything is the name of all sections.
const everything = "all"

var sections = []section{
	{"table", measureTable, false},
	{"codec", measureCodec, false},
	{"journal", measureJournal, false},
	{"pairs", measurePairs, false},
	{"held", measureHeld, false},
	{"kill", measureKill, false},
	{"cluster", measureCluster, false},
	{"floor", measureFloor, true},
	{"failover", measureFailover, true},
	{"idle", measureIdle, false},
	{"keepalive", measureKeepAlives, true},
	{"memory", measureMemory, true},
	{"zones", measureZones, true},
	{"nodes", measureNodes, true},
	{"garbage", measureGarbage, true},
}

// flags are what several sections may ask.
var flags struct {
	rounds  int      // 0: as many as each section takes by itself
	daemons []string // binaries
	args    []string // further arguments of all daemons
	keep    bool     // the directories of the daemons, with their logs
	verbose bool
	parts   []string // of some sections; all if there are none
}

func main() {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case holderCommand:
			exit(hold(os.Args[2:]))
		case rig.PlainCommand:
			exit(rig.ServePlain(os.Args[2:]))
		case ladder.Command:
			exit(ladder.Serve(os.Args[2:]))
		}
	}
	only := flag.String("only", "", "sections to run, of "+sectionNames()+", or "+everything+" (default: those that take no minutes)")
	asJSON := flag.Bool("json", false, "print JSON")
	into := flag.String("into", "", "JSON file in which what is measured takes the place of rows of the same name")
	flag.IntVar(&flags.rounds, "rounds", 0, fmt.Sprintf("rounds of cluster (0: %d) and failover (0: %d)", clusterRounds, failoverRounds))
	daemons := flag.String("daemon", "", "binaries of the daemon to measure next to each other (default: this tree's, built)")
	daemonArgs := flag.String("daemon-args", "", "further arguments of the daemons")
	parts := flag.String("parts", "", "parts of cluster (latency, throughput, queues), floor (latency, throughput), failover (follower, leader,\nsecondary, stop-follower, stop-leader), memory (zones, sessions),\nkeepalive (default, longest lease; single, bundles, idle)\nand garbage (allocations, pauses); default all")
	flag.BoolVar(&flags.keep, "keep", false, "keep the daemons' directories and logs")
	flag.BoolVar(&flags.verbose, "v", false, "tell of each round")
	flag.Parse()
	flags.daemons, flags.args, flags.parts = words(*daemons), strings.Fields(*daemonArgs), words(*parts)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	exit(run(ctx, *only, newPrinter(os.Stdout, *asJSON, *into)))
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func run(ctx context.Context, only string, out *printer) error {
	wanted := words(only)
	for _, name := range wanted {
		if name != everything && !slices.ContainsFunc(sections, func(s section) bool { return s.name == name }) {
			return fmt.Errorf("there is no section %q: expected some of %s", name, sectionNames())
		}
	}
	out.begin(machine())
	for _, s := range sections {
		if !slices.Contains(wanted, s.name) && !slices.Contains(wanted, everything) && (len(wanted) > 0 || s.long) {
			continue
		}
		tables, err := s.run(ctx)
		if err != nil {
			return errors.Join(fmt.Errorf("%s: %w", s.name, err), out.end())
		}
		for _, t := range tables {
			if err := out.print(t); err != nil {
				return err
			}
		}
	}
	return out.end()
}

// words are separated by commas or spaces.
func words(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })
}

func sectionNames() string {
	names := make([]string, len(sections))
	for i, s := range sections {
		names[i] = s.name
	}
	return strings.Join(names, ",")
}

// machine says where the figures come from.
func machine() string {
	return fmt.Sprintf("%s %s/%s, %d processors", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.GOMAXPROCS(0))
}

// roundsOr is how many rounds a section makes that has a number of its own.
func roundsOr(own int) int {
	if flags.rounds > 0 {
		return flags.rounds
	}
	return own
}
