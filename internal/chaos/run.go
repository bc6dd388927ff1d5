package chaos

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/opencluster/oclocks/internal/boottime"
	"github.com/opencluster/oclocks/internal/check"
	"github.com/opencluster/oclocks/internal/e2e/daemons"
)

// Config says what is to be run.
type Config struct {
	Seed     uint64
	Length   time.Duration // of the faults; coming together after each round is not counted
	Schedule string        // file of a schedule that is to be run again; "": one is made of Seed and Length
	Bin      string        // directory with the commands; "": they are built
	Dir      string        // the run makes a directory in it, which stays if there is a violation
	Keep     bool          // it stays always
	Pace     float64       // of the clients: 1, or more to be slower
	Out      io.Writer     // for people
}

// ErrViolation is what Run gives if a promise was not kept. What there is to know was printed and is in the run's directory.
var ErrViolation = errors.New("a promise was not kept")

// maxLease is the cluster's, in every run: short, so that a recovery is.
const maxLease = 6 * time.Second

// run is one run.
type run struct {
	Config
	schedule *Schedule
	dir, bin string
	network  *daemons.Network
	proxies  *proxies
	history  *history
	own      *recorder // what the run itself tells: who died, what may be lost
	ownTape  *tape
	log      *os.File
	began    int64 // boot time

	stopLooking func()

	opening sync.Mutex // held while a fault begins, so that what is true then stays true
	tapes   sync.Mutex // guards history

	mu                 sync.Mutex
	nodes              []*node // those that belong to the cluster
	all                []*node // that there ever were
	workers            []*worker
	active             map[*Step]bool
	faults             map[Kind]int // that really happened
	planned            map[Kind]int
	problems           []string // other than the checker's violations
	doubted            map[string]bool
	drained, leftovers []*node // to be undrained, and to be forgotten
	doubled            int     // times that the buckets were
	splits             splits
	counted            counted
	zones              []zone
}

// Run runs a schedule against a cluster of its own. The process must be in the hub of a network of its own (daemons.IntoHub).
func Run(ctx context.Context, cfg Config) (*Entry, error) {
	schedule := newSchedule(cfg.Seed, cfg.Length)
	if cfg.Schedule != "" {
		var err error
		if schedule, err = readSchedule(cfg.Schedule); err != nil {
			return nil, err
		}
	}
	r := &run{Config: cfg, schedule: schedule, proxies: newProxies(), active: make(map[*Step]bool), faults: make(map[Kind]int),
		planned: make(map[Kind]int), doubted: make(map[string]bool), began: boottime.Now(),
		history: newHistory(check.Options{MaxLease: maxLease})}
	if err := r.prepare(); err != nil {
		return nil, err
	}
	defer r.log.Close()
	defer r.proxies.close()
	defer r.killAll()
	if err := r.open(ctx); err != nil {
		return nil, fmt.Errorf("%w (see %s)", err, r.dir)
	}
	err := r.rounds(ctx)
	if endErr := r.end(err == nil && ctx.Err() == nil); err == nil {
		err = endErr
	}
	entry := r.entry()
	if err == nil && ctx.Err() == nil {
		err = entry.Ways.proved()
	}
	if err != nil || ctx.Err() != nil || cfg.Keep {
		r.say("kept: %s", r.dir)
		if err != nil {
			r.say("the same schedule again: make chaos SCHEDULE=%s", filepath.Join(r.dir, "schedule.json"))
		}
		return entry, errors.Join(err, ctx.Err())
	}
	r.killAll()
	return entry, r.remove()
}

// prepare makes the run's directory.
func (r *run) prepare() (err error) {
	if err := os.MkdirAll(r.Dir, 0o755); err != nil { //nolint:gosec // for people to read
		return fmt.Errorf("make a directory for the run: %w", err)
	}
	if r.dir, err = os.MkdirTemp(r.Dir, fmt.Sprintf("%s-%d-", time.Now().Format("0102-150405"), r.schedule.Seed)); err != nil {
		return fmt.Errorf("make a directory for the run: %w", err)
	}
	if r.dir, err = filepath.Abs(r.dir); err != nil {
		return fmt.Errorf("make a directory for the run: %w", err)
	}
	for _, sub := range []string{"history", "logs", "nodes", "bin"} {
		if err := os.Mkdir(filepath.Join(r.dir, sub), 0o755); err != nil { //nolint:gosec // for people to read
			return fmt.Errorf("make a directory for the run: %w", err)
		}
	}
	if r.log, err = os.Create(filepath.Join(r.dir, "run.log")); err != nil {
		return fmt.Errorf("begin the log: %w", err)
	}
	if r.own, err = newRecorder(filepath.Join(r.dir, "history", "run.jsonl")); err != nil {
		return err
	}
	r.ownTape = r.history.begin(filepath.Join(r.dir, "history", "run.jsonl"))
	if err := r.schedule.write(filepath.Join(r.dir, "schedule.json")); err != nil {
		return err
	}
	return r.binaries()
}

// binaries takes copies of the commands: those of the repository may be built anew while the run goes on.
func (r *run) binaries() error {
	r.bin = filepath.Join(r.dir, "bin")
	if r.Bin == "" {
		return daemons.Build(r.bin)
	}
	for _, name := range []string{"oclocks-daemon", "oclocks-config", "oclocks-startup"} {
		text, err := os.ReadFile(filepath.Join(r.Bin, name))
		if err != nil {
			return fmt.Errorf("copy the commands: %w", err)
		}
		if err := os.WriteFile(filepath.Join(r.bin, name), text, 0o755); err != nil { //nolint:gosec // a command
			return fmt.Errorf("copy the commands: %w", err)
		}
	}
	return nil
}

// rounds runs the rounds of the schedule, one after the other, until something is wrong.
func (r *run) rounds(ctx context.Context) error {
	for i := range r.schedule.Rounds {
		round := &r.schedule.Rounds[i]
		if err := r.round(ctx, i+1, round); err != nil || ctx.Err() != nil {
			return err
		}
	}
	return nil
}

// round runs one round, and waits until the cluster has come together again.
func (r *run) round(ctx context.Context, number int, round *Round) error {
	r.note("round %d: %d faults", number, len(round.Steps))
	begin := time.Now()
	bounded, cancel := context.WithTimeout(ctx, round.Length)
	defer cancel()
	var steps sync.WaitGroup
	for i := range round.Steps {
		step := &round.Steps[i]
		steps.Go(func() { r.step(bounded, step, begin) })
	}
	wrong := r.watch(bounded)
	cancel()
	steps.Wait() // each takes back what it has done
	if wrong != nil || ctx.Err() != nil {
		return wrong
	}
	if err := r.heal(ctx); err != nil {
		return err
	}
	r.say("%6.0fs round %d of %d: healed after %.1fs; %s", r.since(), number, len(r.schedule.Rounds),
		time.Since(begin).Seconds()-round.Length.Seconds(), r.figures())
	return nil
}

// watch checks the history while ctx lasts, and gives the first thing that is wrong.
func (r *run) watch(ctx context.Context) error {
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for {
		if err := r.look(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// tapeKeep is how long the recording of a process that is no more is kept, for the story of a violation.
const tapeKeep = 12 * time.Minute

// look checks what has been recorded since, and gives what is wrong.
func (r *run) look() error {
	r.own.mark()
	if err := r.own.failed(); err != nil {
		return err
	}
	r.tapes.Lock()
	wrong, err := r.history.advance()
	if !r.Keep {
		r.history.forget(boottime.Now() - int64(tapeKeep))
	}
	r.tapes.Unlock()
	if err != nil {
		return err
	}
	r.mu.Lock()
	problems := r.problems
	r.mu.Unlock()
	if len(wrong)+len(problems) == 0 {
		return nil
	}
	r.story(wrong, problems)
	return ErrViolation
}

// problem notes something that is wrong and no matter of the history: it ends the run.
func (r *run) problem(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	r.note("PROBLEM: %s", text)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.problems = append(r.problems, text)
}

// since is how long the run goes on, in seconds.
func (r *run) since() float64 { return float64(boottime.Now()-r.began) / 1e9 }

// note writes a line into the run's log, with the history's time.
func (r *run) note(format string, args ...any) {
	fmt.Fprintf(r.log, "%d %8.3f %s\n", boottime.Now(), r.since(), fmt.Sprintf(format, args...))
}

// say tells people.
func (r *run) say(format string, args ...any) {
	r.note(format, args...)
	fmt.Fprintf(r.Out, format+"\n", args...)
}
