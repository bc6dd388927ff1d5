package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/opencluster/oclocks/client"
	"github.com/opencluster/oclocks/internal/e2e/daemons"
)

// The lock test of Jepsen's analysis of etcd 3.4.3 (jepsen.io/analyses/etcd-3.4.3): processes take a lock with a TTL of 2 s, read a shared
// set, add an element, write the set back and release the lock, while processes are paused every 5 s. What is acknowledged and
// not in the set in the end is a lost update. Here the holder of the lock is paused, each time in the middle, for longer than the TTL:
// no lock service can keep it from writing when it wakes up, except by a token that the set's store checks.

// JepsenConfig says what is to be run.
type JepsenConfig struct {
	Fenced  bool          // the store refuses tokens that are lower than the highest that it has seen
	Length  time.Duration // how long the processes work
	TTL     time.Duration // lease of the sessions: 2 s there
	Pauses  time.Duration // between two pauses: 5 s there
	Workers int           // 5 there
	Bin     string        // directory with the commands
	Dir     string        // for the daemons' data, which stays
	Out     io.Writer
}

// JepsenFigures is what came of it.
type JepsenFigures struct {
	Fenced       bool    `json:"fenced"`
	Seconds      float64 `json:"seconds"`
	TTL          string  `json:"ttl"`
	Pause        string  `json:"pause"` // how long a holder was paused
	Workers      int     `json:"workers"`
	Pauses       int     `json:"pauses"`       // of a process that held the lock and had read, but not written
	Acknowledged int     `json:"acknowledged"` // updates
	Refused      int     `json:"refused"`      // by the store, for their token
	Lost         int     `json:"lost"`         // acknowledged updates that are not in the set
}

// String is one line for people.
func (f *JepsenFigures) String() string {
	how := "without a fencing token"
	if f.Fenced {
		how = "with the fencing token checked by the store"
	}
	percent := 100 * float64(f.Lost) / float64(max(f.Acknowledged, 1))
	return fmt.Sprintf("jepsen lock test %s: %.0f s, %d processes, ttl %s, %d pauses of a holder for %s: %d of %d acknowledged updates lost (%.1f %%), %d refused",
		how, f.Seconds, f.Workers, f.TTL, f.Pauses, f.Pause, f.Lost, f.Acknowledged, percent, f.Refused)
}

// Jepsen runs the test against three daemons on loopback. ErrViolation if an update is lost with fencing.
func Jepsen(ctx context.Context, cfg JepsenConfig) (*JepsenFigures, error) {
	cluster, err := startThree(cfg)
	if err != nil {
		return nil, err
	}
	defer cluster.kill()
	pause := cfg.TTL + cfg.TTL/2
	store, err := newStore(cfg.Fenced, cfg.Pauses, pause)
	if err != nil {
		return nil, err
	}
	defer store.close()
	began := time.Now()
	if err := store.hire(cfg, cluster.urls()); err != nil {
		return nil, err
	}
	sleep(ctx, cfg.Length)
	if err := store.dismiss(); err != nil {
		return nil, err
	}
	f := store.figures()
	f.Seconds, f.TTL, f.Pause, f.Workers = time.Since(began).Seconds(), cfg.TTL.String(), pause.String(), cfg.Workers
	fmt.Fprintln(cfg.Out, f)
	switch {
	case ctx.Err() != nil:
		return f, ctx.Err()
	case f.Pauses == 0 || f.Acknowledged == 0:
		return f, fmt.Errorf("that proves nothing: %s", f)
	case cfg.Fenced && f.Lost > 0:
		return f, fmt.Errorf("%w: %s", ErrViolation, f)
	}
	return f, nil
}

// three is a cluster on loopback.
type three struct {
	nodes     []*daemons.Node
	processes []*daemons.Process
}

func startThree(cfg JepsenConfig) (*three, error) {
	nodes, err := daemons.OnLoopback(cfg.Dir, 0, 3)
	if err != nil {
		return nil, err
	}
	if err := daemons.Enroll(nodes); err != nil {
		return nil, err
	}
	c := &three{nodes: nodes}
	for _, n := range nodes {
		p, err := daemons.Start(n.Command(filepath.Join(cfg.Bin, "oclocks-daemon"), nodes, nil), (*exec.Cmd).StderrPipe,
			daemons.Output{File: n.Dir + ".log", Keep: 100})
		if err != nil {
			c.kill()
			return nil, err
		}
		if c.processes = append(c.processes, p); daemons.Serving(p, patience) == "" {
			c.kill()
			return nil, fmt.Errorf("%s does not serve", n.Name)
		}
	}
	return c, nil
}

func (c *three) kill() {
	for _, p := range c.processes {
		p.Kill()
	}
}

func (c *three) urls() (list []string) {
	for _, n := range c.nodes {
		list = append(list, "nats://"+n.Listen)
	}
	return list
}

// jepsenWorker is the role of a process that adds elements.
type jepsenWorker struct {
	Number int           `json:"number"`
	Store  string        `json:"store"` // host:port
	URLs   string        `json:"urls"`
	TTL    time.Duration `json:"ttl"`
}

// spawn starts the process.
func (w *jepsenWorker) spawn(dir string) (*daemons.Process, error) {
	text, err := json.Marshal(role{Jepsen: w})
	if err != nil {
		return nil, fmt.Errorf("start a process: %w", err)
	}
	exe, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("start a process: %w", err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), childVariable+"="+string(text))
	return daemons.Start(cmd, (*exec.Cmd).StderrPipe, daemons.Output{File: filepath.Join(dir, "worker"+strconv.Itoa(w.Number)+".log"), Keep: 10})
}

// work adds elements until the store says that it is over.
func (w *jepsenWorker) work() error {
	ctx := context.Background()
	store, err := dialStore(w.Store)
	if err != nil {
		return err
	}
	defer store.close()
	c, err := client.Connect(ctx, w.URLs, client.WithLease(w.TTL))
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	m := c.Mutex("jepsen")
	for n := 1; ; n++ {
		claim, err := m.Lock(ctx)
		if err != nil {
			return fmt.Errorf("lock: %w", err)
		}
		over, err := w.add(store, claim.Token(), w.Number*1_000_000+n)
		if err != nil {
			return err
		}
		if err := m.Unlock(ctx); err != nil && !errors.Is(err, client.ErrLost) {
			return fmt.Errorf("unlock: %w", err)
		}
		if over {
			return c.Close(ctx)
		}
	}
}

// add reads the set, adds an element and writes the set, as somebody would who believes in the lock.
func (w *jepsenWorker) add(store *storeConn, token uint64, element int) (over bool, err error) {
	read, err := store.ask(&storeRequest{Worker: w.Number, Token: token})
	if err != nil || read.Over {
		return true, err
	}
	if read.Refused {
		return false, nil // somebody with a higher token was there
	}
	<-time.After(5 * time.Millisecond) // thinks: what a real update takes
	wrote, err := store.ask(&storeRequest{Worker: w.Number, Token: token, Write: true, Element: element, Set: append(read.Set, element)})
	if err != nil {
		return true, err
	}
	return wrote.Over, nil
}

// pauseOf stops a process for a while.
func pauseOf(p *daemons.Process, d time.Duration) {
	p.Signal(syscall.SIGSTOP)
	time.AfterFunc(d, func() { p.Signal(syscall.SIGCONT) })
}
