package main

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/opencluster/oclocks/internal/sim"
)

var (
	seed    = flag.Uint64("seed", 0, "run this seed alone, and tell its story if it fails")
	without = flag.String("without", "", "with -seed: kinds of fault to leave out, separated by commas")
	skip    = flag.String("skip", "", "with -seed: faults to leave out, by index, separated by commas")
	nodes   = flag.Int("nodes", 0, "with -seed: at most so many nodes")
	clients = flag.Int("clients", 0, "with -seed: at most so many clients of each sort")
	theme   = flag.String("theme", "", "the faults of this theme (theme.go), whatever the seed draws")
	trouble = flag.Duration("trouble", 0, "with -seed: trouble for so long")

	start  = flag.Uint64("start", 0, "first seed of a campaign; 0: one that no run has had")
	seeds  = flag.Uint64("seeds", 0, "how many seeds; 0: as long as -time")
	limit  = flag.Duration("time", time.Minute, "no seed is begun after this time")
	jobs   = flag.Int("jobs", runtime.NumCPU(), "seeds at a time")
	shrink = flag.Duration("shrink", 30*time.Second, "how long a failing seed is made smaller; 0: it is not")
	story  = flag.Int("story", 200, "lines of the story of a failing seed")
	ledger = flag.String("ledger", "", "file to which the figures are added, as a line of JSON")
	commit = flag.String("commit", "", "what was run, for the ledger")
	sum    = flag.String("sum", "", "add up the ledgers of this file")
	cpu    = flag.String("cpuprofile", "", "file for a profile of the time of a campaign")
	heap   = flag.String("memprofile", "", "file for a profile of what a campaign has allocated")
)

func main() {
	flag.Parse()
	debug.SetGCPercent(1600) // a run keeps little and throws much away
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	switch {
	case flag.NArg() > 0:
		return fmt.Errorf("unexpected argument %q", flag.Arg(0))
	case *sum != "":
		return total(*sum)
	case *seed != 0:
		return replay()
	}
	return campaign()
}

// replay runs one recipe.
func replay() error {
	r := sim.Recipe{Seed: *seed, Nodes: *nodes, Clients: *clients, Time: *trouble, Theme: *theme}
	if *without != "" {
		r.Without = strings.Split(*without, ",")
	}
	for text := range strings.SplitSeq(*skip, ",") {
		if text == "" {
			continue
		}
		index, err := strconv.Atoi(text)
		if err != nil {
			return fmt.Errorf("-skip: %w", err)
		}
		r.Skip = append(r.Skip, index)
	}
	result := r.Run(0)
	if len(result.Wrong) == 0 {
		fmt.Printf("seed %d keeps all promises, fingerprint %016x\nmix: %s\n", *seed, result.Fingerprint, result.Mix)
		return nil
	}
	if set := given("shrink"); !set {
		*shrink = 0
	}
	fmt.Print(sim.Explain(r, *shrink, *story))
	return fmt.Errorf("seed %d: a promise was not kept", *seed)
}

// given says whether a flag was on the command line.
func given(name string) (set bool) {
	flag.Visit(func(f *flag.Flag) { set = set || f.Name == name })
	return set
}

func campaign() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // the seeds that were begun are run to their end; another signal ends them, too
	first := *start
	if first == 0 {
		first = uint64(time.Now().UnixNano())
	}
	c := sim.Campaign{Start: first, Seeds: *seeds, Time: *limit, Jobs: *jobs, Theme: *theme, Shrink: *shrink, Story: *story, Out: os.Stdout}
	if *seeds > 0 && !given("time") {
		c.Time = 0
	}
	end, err := profile()
	if err != nil {
		return err
	}
	figures := c.Run(ctx)
	if err := end(); err != nil {
		return err
	}
	figures.Commit = *commit
	show(&figures)
	if *ledger != "" {
		if err := figures.Append(*ledger); err != nil {
			return err
		}
	}
	if n := len(figures.Failed); n > 0 {
		return fmt.Errorf("%d of %d seeds did not keep a promise", n, figures.Seeds)
	}
	return nil
}

func total(path string) error {
	figures, campaigns, err := sim.ReadLedgers(path)
	if err != nil {
		return err
	}
	fmt.Printf("%d campaigns\n", campaigns)
	show(&figures)
	return nil
}

// show prints the figures.
func show(l *sim.Ledger) {
	fmt.Println(l)
	fmt.Printf("%d messages, %d answers, %d commands of the control plane, %d views, %d recoveries, %d reigns; %d kinds of fault:\n",
		l.Messages, l.Answers, l.Changes, l.Views, l.Recoveries, l.Reigns, len(l.Faults))
	for _, kind := range slices.Sorted(maps.Keys(l.Faults)) {
		fmt.Printf("%10d %s\n", l.Faults[kind], kind)
	}
	if l.Print != "" {
		fmt.Println("fingerprint", l.Print)
	}
	for _, f := range l.Failed {
		fmt.Printf("seed %d: %s\n", f.Seed, f.Wrong)
	}
}
