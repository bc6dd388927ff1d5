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
	var ledger string
	var jepsen bool
	flag.DurationVar(&cfg.Length, "time", 10*time.Minute, "how long faults go on")
	flag.Uint64Var(&cfg.Seed, "seed", 0, "of the schedule; 0 chooses one")
	flag.StringVar(&cfg.Schedule, "schedule", "", "file of a schedule to run again")
	flag.StringVar(&cfg.Bin, "bin", "", "directory with the commands; built if not given")
	flag.StringVar(&cfg.Dir, "dir", filepath.Join(os.TempDir(), "oclocks-chaos"), "where a run keeps its data, which stays if a promise was broken")
	flag.BoolVar(&cfg.Keep, "keep", false, "the data stays always")
	flag.Float64Var(&cfg.Pace, "pace", 1, "of the clients: 2 is half as fast")
	flag.StringVar(&ledger, "ledger", "", "file that gets a line with the figures of each run")
	flag.BoolVar(&jepsen, "jepsen", false, "Jepsen's lock test of etcd 3.4.3, with and without fencing, each for half of -time")
	flag.Parse()
	if flag.NArg() > 0 || cfg.Length <= 0 || cfg.Pace <= 0 {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if jepsen {
		return runJepsen(ctx, cfg, ledger)
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
		if ledger != "" {
			err = errors.Join(err, entry.Append(ledger))
		}
	}
	return err
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

func runJepsen(ctx context.Context, cfg chaos.Config, ledger string) error {
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
		if entry != nil && ledger != "" {
			err = errors.Join(err, entry.Append(ledger))
		}
		if err != nil {
			return err
		}
	}
	return nil
}
