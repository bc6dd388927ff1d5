package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/opencluster/oclocks/internal/mutant"
)

var errMissed = errors.New("not found")

func main() {
	if err := run(os.Stdout, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "hunt:", err)
		os.Exit(1)
	}
}

func run(out io.Writer, args []string) error {
	flags := flag.NewFlagSet("hunt", flag.ContinueOnError)
	which := flags.String("mutants", "", "names, with commas between; empty: all")
	s := search{}
	flags.IntVar(&s.seeds, "seeds", 2000, "the most seeds for each")
	flags.Uint64Var(&s.start, "start", 1, "the first seed")
	flags.IntVar(&s.jobs, "jobs", 2, "seeds at a time")
	flags.DurationVar(&s.most, "most", 30*time.Minute, "the longest search for one")
	flags.StringVar(&s.theme, "theme", "", "the faults of all seeds; empty: as each draws")
	commit := flags.String("commit", "", "what is run, for the page")
	page := flags.String("page", "", "file whose table gets what was found; what was not run stays; empty: none")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if !mutant.Built {
		return errors.New("this build has no mutants: build it with -tags mutants")
	}
	list, err := choose(*which)
	if err != nil {
		return err
	}
	var missed []string
	for _, m := range list {
		f := s.find(m)
		fmt.Fprintf(out, "%-28s %s\n", m, f.line())
		if !f.found() {
			missed = append(missed, m.String())
		}
		if *page != "" { // at once: a search may take hours
			if err := update(*page, s.of(*commit), f); err != nil {
				return err
			}
		}
	}
	if len(missed) > 0 {
		return fmt.Errorf("%w: %s", errMissed, strings.Join(missed, ", "))
	}
	return nil
}

// choose reads the list of names.
func choose(names string) ([]mutant.Mutant, error) {
	if names == "" {
		return mutant.All(), nil
	}
	var list []mutant.Mutant
	for name := range strings.SplitSeq(names, ",") {
		m, ok := mutant.Find(strings.TrimSpace(name))
		if !ok {
			return nil, fmt.Errorf("there is no mutant %q", name)
		}
		list = append(list, m)
	}
	return list, nil
}
