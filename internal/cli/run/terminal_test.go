//go:build linux

package run

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/opencluster/oclocks/internal/cli/ptytest"
)

// These tests have a terminal: the test binary runs itself as the leader of a session with a pseudo terminal and plays a
// role there. It reports on descriptor 3, so that what the terminal shows is the command's alone.

// actor plays a role and gives its exit code.
func actor(role string) int {
	report := os.NewFile(3, "report")
	if role == "shell" {
		return actShell(report)
	}
	tty, foreground := OpenTerminal(os.Stdin)
	if tty == nil {
		fmt.Fprintln(report, "no terminal")
		return 1
	}
	defer tty.Close()
	if role == "late" {
		foreground = false
	}
	lost := make(chan struct{})
	distrust := os.Getenv("RUN_TEST_DISTRUST") != ""
	res, err := Run(&Job{
		Path: "/bin/sh", Args: []string{"sh", "-c", os.Getenv("RUN_TEST_SCRIPT")}, Env: os.Environ(),
		Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}, TTY: tty, Foreground: foreground, Lost: lost,
		Trusted: func() bool {
			if distrust {
				close(lost)
			}
			return !distrust
		},
		KillIn: func() time.Duration { return 0 },
	})
	if err != nil {
		fmt.Fprintln(report, err)
		return 1
	}
	fmt.Fprintf(report, "code %d lost %v mine %v\n", Code(res.Status), res.Lost, owner(tty) == unix.Getpgrp())
	return 0
}

// actShell is a shell with job control in three lines: it runs the actor as a foreground job, says that it was stopped,
// and continues it in the foreground.
func actShell(report *os.File) int {
	signal.Ignore(syscall.SIGTTOU)
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		fmt.Fprintln(report, err)
		return 1
	}
	job, err := os.StartProcess(os.Args[0], os.Args, &os.ProcAttr{
		Env: append([]string{"RUN_TEST_ROLE=runner"}, os.Environ()...), Files: []*os.File{os.Stdin, os.Stdout, os.Stderr, report},
		Sys: &syscall.SysProcAttr{Foreground: true, Ctty: int(tty.Fd())},
	})
	if err != nil {
		fmt.Fprintln(report, err)
		return 1
	}
	for {
		var status syscall.WaitStatus
		if _, err := syscall.Wait4(job.Pid, &status, syscall.WUNTRACED, nil); err != nil && err != syscall.EINTR {
			fmt.Fprintln(report, err)
			return 1
		}
		if !status.Stopped() {
			return status.ExitStatus()
		}
		fmt.Fprintf(report, "stopped, the terminal is the job's: %v\n", owner(tty) == job.Pid)
		group(job.Pid).signal(syscall.SIGCONT)
	}
}

// stage is an actor with its terminal.
type stage struct {
	*ptytest.Stage
	t       *testing.T
	reports *bufio.Reader
}

func newStage(t *testing.T, role, script string, env ...string) *stage {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), append(env, "RUN_TEST_ROLE="+role, "RUN_TEST_SCRIPT="+script)...)
	cmd.ExtraFiles = []*os.File{w}
	s := &stage{Stage: ptytest.Start(t, cmd, patience), t: t, reports: bufio.NewReader(r)}
	w.Close()
	return s
}

func (s *stage) reported(want string) {
	s.t.Helper()
	if got, err := s.reports.ReadString('\n'); strings.TrimSpace(got) != want {
		s.t.Fatalf("reported %q, %v, want %q", got, err, want)
	}
}

func TestCommandHasTheTerminal(t *testing.T) {
	s := newStage(t, "runner", `echo ready; read x; echo "got <$x>"; exit 5`)
	s.Shows("ready")
	s.Type("some text\n")
	s.Shows("got <some text>")
	s.reported("code 5 lost false mine true")
}

func TestCommandGetsTheTerminalWhenItWantsIt(t *testing.T) {
	s := newStage(t, "late", `echo ready; read x; echo "got <$x>"; exit 6`)
	s.Shows("ready")
	s.Type("some text\n")
	s.Shows("got <some text>")
	s.reported("code 6 lost false mine true")
}

func TestCtrlCEndsTheCommandAlone(t *testing.T) {
	s := newStage(t, "runner", `echo ready; read x; exit 9`)
	s.Shows("ready")
	s.Type("\x03")
	s.reported("code 130 lost false mine true")
}

func TestCtrlZStopsBothAndTheCommandGoesOn(t *testing.T) {
	s := newStage(t, "shell", `echo ready; read x; echo "got <$x>"; exit 7`)
	s.Shows("ready")
	s.Type("\x1a")
	s.reported("stopped, the terminal is the job's: true")
	s.Type("some text\n")
	s.Shows("got <some text>")
	s.reported("code 7 lost false mine true")
}

func TestCtrlZOutlastsTheLease(t *testing.T) {
	s := newStage(t, "shell", `echo ready; read x; echo "got <$x>"; exit 7`, "RUN_TEST_DISTRUST=1")
	s.Shows("ready")
	s.Type("\x1a")
	s.reported("stopped, the terminal is the job's: true")
	s.reported("code 137 lost true mine true")
}

func TestCtrlZWithoutAShell(t *testing.T) {
	// Nobody could continue us, so nothing stops.
	s := newStage(t, "runner", `echo ready; read x; echo "got <$x>"; exit 8`)
	s.Shows("ready")
	s.Type("\x1a")
	s.Type("some text\n")
	s.Shows("got <some text>")
	s.reported("code 8 lost false mine true")
}
