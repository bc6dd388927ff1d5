// Command bench measures the broker and prints what it found as tables: the lock table alone, the codec, the journal, a
// whole daemon over NATS next to a plain NATS server in the same run, and how soon a lock is free after its holder was
// killed. It is a module of its own, so that what only benchmarks need is no dependency of the product.
//
//	make bench                       # all of it
//	cd bench && go run . --only table,kill --json
//
// BENCH_10M=1 adds ten million locks to the first table.
//
// Read report.go (what a result is), timing.go and load.go, then one file for each section: table.go, codec.go,
// journal.go, pairs.go (with rawnats.go), held.go, kill.go.
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
)

// section is one group of measurements.
type section struct {
	name string
	run  func(ctx context.Context) ([]table, error)
}

var sections = []section{
	{"table", measureTable},
	{"codec", measureCodec},
	{"journal", measureJournal},
	{"pairs", measurePairs},
	{"held", measureHeld},
	{"kill", measureKill},
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == holderCommand {
		exit(hold(os.Args[2:]))
	}
	only := flag.String("only", "", "sections to run, of "+sectionNames())
	asJSON := flag.Bool("json", false, "print JSON")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	exit(run(ctx, *only, *asJSON))
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func run(ctx context.Context, only string, asJSON bool) error {
	wanted := strings.FieldsFunc(only, func(r rune) bool { return r == ',' || r == ' ' })
	for _, name := range wanted {
		if !slices.ContainsFunc(sections, func(s section) bool { return s.name == name }) {
			return fmt.Errorf("there is no section %q: expected some of %s", name, sectionNames())
		}
	}
	out := newPrinter(os.Stdout, asJSON)
	out.begin(machine())
	for _, s := range sections {
		if len(wanted) > 0 && !slices.Contains(wanted, s.name) {
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
