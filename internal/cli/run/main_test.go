//go:build linux

package run

import (
	"bufio"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// patience bounds every wait of these tests; none of them waits that long unless it fails.
const patience = 20 * time.Second

func TestMain(m *testing.M) {
	if role := os.Getenv("RUN_TEST_ROLE"); role != "" {
		os.Exit(actor(role))
	}
	goleak.VerifyTestMain(m)
}

// script is a running `sh` under a job: what it prints, line by line, and how it ended.
type script struct {
	t       *testing.T
	lines   chan string // closed when the last process that could print has gone
	signals chan os.Signal
	lost    chan struct{}
	ticks   chan time.Time
	left    atomic.Int64 // what KillIn says
	ended   chan outcome
}

type outcome struct {
	Result
	err error
}

// newScript starts `sh -c text`. Its ticks come only when the test sends them; killIn is what is left to live after a loss.
func newScript(t *testing.T, killIn time.Duration, text string) *script {
	t.Helper()
	return newCommand(t, killIn, "sh", "-c", text)
}

func newCommand(t *testing.T, killIn time.Duration, argv ...string) *script {
	t.Helper()
	path, err := exec.LookPath(argv[0])
	if err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	s := &script{
		t: t, lines: make(chan string, 64), signals: make(chan os.Signal), lost: make(chan struct{}),
		ticks: make(chan time.Time), ended: make(chan outcome, 1),
	}
	s.left.Store(int64(killIn))
	go func() {
		defer close(s.lines)
		defer r.Close()
		for in := bufio.NewScanner(r); in.Scan(); {
			s.lines <- in.Text()
		}
	}()
	job := &Job{
		Path: path, Args: argv, Env: Environ(os.Environ(), "a name", 7, 9), Files: []*os.File{os.Stdin, w, os.Stderr},
		Signals: s.signals, Lost: s.lost, Trusted: func() bool { return true },
		KillIn: func() time.Duration { return time.Duration(s.left.Load()) },
		Tick:   func(time.Duration) <-chan time.Time { return s.ticks },
	}
	go func() {
		res, err := Run(job)
		w.Close()
		s.ended <- outcome{res, err}
	}()
	return s
}

// line waits for one line of output.
func (s *script) line(want string) {
	s.t.Helper()
	select {
	case got, ok := <-s.lines:
		if !ok || got != want {
			s.t.Fatalf("the script printed %q, want %q (open: %v)", got, want, ok)
		}
	case <-time.After(patience):
		s.t.Fatalf("the script did not print %q", want)
	}
}

// silent waits until nobody is left who could print: every process of the script has gone.
func (s *script) silent() {
	s.t.Helper()
	for {
		select {
		case _, ok := <-s.lines:
			if !ok {
				return
			}
		case <-time.After(patience):
			s.t.Fatal("a process of the script lives on")
		}
	}
}

func (s *script) tick() {
	s.t.Helper()
	select {
	case s.ticks <- time.Time{}:
	case <-time.After(patience):
		s.t.Fatal("nobody waits for a tick")
	}
}

func (s *script) signal(sig os.Signal) {
	s.t.Helper()
	select {
	case s.signals <- sig:
	case <-time.After(patience):
		s.t.Fatalf("nobody takes the signal %v", sig)
	}
}

// end ticks on, at the true pace, until Run has returned.
func (s *script) end() outcome {
	s.t.Helper()
	pace := time.NewTicker(pollEvery)
	defer pace.Stop()
	for deadline := time.After(patience); ; {
		select {
		case <-pace.C:
			select {
			case s.ticks <- time.Time{}:
			default:
			}
		case o := <-s.ended:
			return o
		case <-deadline:
			s.t.Fatal("Run does not return")
		}
	}
}

func join(lines ...string) string { return strings.Join(lines, "\n") }
