// Command cmd does its worst to a cluster of real daemons (make chaos), and runs Jepsen's lock test of etcd (make jepsen). See
// package chaos.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/opencluster/oclocks/internal/chaos"
	"github.com/opencluster/oclocks/internal/e2e/daemons"
)

// Exit codes: 0, 1 for what could not be done, 2 for a command line, 3 for a violation, 4 where there are no namespaces.
const (
	exitFailed    = 1
	exitViolation = 3
	exitNowhere   = 4
)

func main() {
	if code, child := chaos.Child(); child {
		os.Exit(code)
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		code := exitFailed
		var exit *exec.ExitError
		switch {
		case errors.As(err, &exit):
			code = exit.ExitCode()
		case errors.Is(err, chaos.ErrViolation):
			code = exitViolation
		case errors.Is(err, daemons.ErrNoNamespaces):
			code = exitNowhere
		}
		os.Exit(code)
	}
}

func run() error {
	cfg := chaos.Config{Out: os.Stdout}
	var book, sum string
	var jepsen bool
	flag.DurationVar(&cfg.Length, "time", 10*time.Minute, "how long faults go on")
	flag.Uint64Var(&cfg.Seed, "seed", 0, "of the schedule; 0 chooses one")
	flag.StringVar(&cfg.Schedule, "schedule", "", "file of a schedule to run again")
	flag.StringVar(&cfg.Bin, "bin", "", "directory with the commands; built if not given")
	flag.StringVar(&cfg.Dir, "dir", filepath.Join(os.TempDir(), "oclocks-chaos"), "where a run keeps its data, which stays if a promise was broken")
	flag.BoolVar(&cfg.Keep, "keep", false, "the data stays always")
	flag.Float64Var(&cfg.Pace, "pace", 1, "of the clients: 2 is half as fast")
	flag.StringVar(&book, "ledger", "", "file that gets a line with the figures of each run")
	flag.StringVar(&sum, "sum", "", "add up the ledger in this file, and do nothing else")
	flag.StringVar(&commit, "commit", "", "what is run, for the ledger")
	flag.BoolVar(&jepsen, "jepsen", false, "Jepsen's lock test of etcd 3.4.3, with and without fencing, each for half of -time")
	flag.Parse()
	if flag.NArg() > 0 || cfg.Length <= 0 || cfg.Pace <= 0 {
		flag.Usage()
		os.Exit(2)
	}
	if sum != "" {
		text, err := chaos.Sum(sum)
		fmt.Println(text)
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if jepsen {
		return runJepsen(ctx, cfg, book)
	}
	if !daemons.InHub() {
		return again(ctx)
	}
	if cfg.Seed == 0 {
		cfg.Seed = uint64(rand.Uint32()) //nolint:gosec // a test's choice
	}
	entry, err := chaos.Run(ctx, cfg)
	if entry != nil {
		fmt.Println(entry)
	}
	return errors.Join(err, note(entry, book))
}

// commit is what is run.
var commit string

// note adds an entry to the ledger, if there is one.
func note(entry *chaos.Entry, book string) error {
	if entry == nil || book == "" {
		return nil
	}
	entry.Commit = commit
	return entry.Append(book)
}

// again runs this program in a network of its own.
func again(ctx context.Context) error {
	exe, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	cmd := exec.CommandContext(ctx, exe, os.Args[1:]...) //nolint:gosec // this program
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	if err := daemons.IntoHub(cmd); err != nil {
		return err
	}
	err = cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return fmt.Errorf("%w: %w", daemons.ErrNoNamespaces, err) // a container without the right to
	}
	return err
}

func runJepsen(ctx context.Context, cfg chaos.Config, book string) error {
	dir, err := os.MkdirTemp("", "oclocks-jepsen")
	if err != nil {
		return fmt.Errorf("make a directory: %w", err)
	}
	defer os.RemoveAll(dir)
	if cfg.Bin == "" {
		cfg.Bin = filepath.Join(dir, "bin")
		if err := daemons.Build(cfg.Bin); err != nil {
			return err
		}
	}
	for _, fenced := range []bool{true, false} {
		entry, err := chaos.JepsenEntry(ctx, chaos.JepsenConfig{
			Fenced: fenced, Length: cfg.Length / 2, TTL: 2 * time.Second, Pauses: 5 * time.Second, Workers: 5, Bin: cfg.Bin,
			Dir: filepath.Join(dir, fmt.Sprint("fenced-", fenced)), Out: os.Stdout,
		})
		if err := errors.Join(err, note(entry, book)); err != nil {
			return err
		}
	}
	return nil
}
