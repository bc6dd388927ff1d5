//go:build linux

package run

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/opencluster/oclocks/conf"
)

func TestStatusIsPassedThrough(t *testing.T) {
	for _, c := range []struct {
		text string
		code int
	}{
		{"exit 0", 0}, {"exit 1", 1}, {"exit 42", 42}, {"exit 255", 255},
		{"kill -TERM $$", 143}, {"kill -KILL $$", 137}, {"kill -INT $$", 130},
	} {
		o := newScript(t, time.Hour, c.text).end()
		if o.err != nil || Code(o.Status) != c.code || o.Lost || o.Killed || o.Left {
			t.Errorf("%s: code %d, %+v, want %d", c.text, Code(o.Status), o, c.code)
		}
	}
}

func TestCommandsThatCannotBeRun(t *testing.T) {
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain")
	broken := filepath.Join(dir, "broken")
	if err := errors.Join(os.WriteFile(plain, nil, 0o600), os.WriteFile(broken, []byte("\x00no program"), 0o700)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		command string
		code    int
	}{
		{"no-such-command-anywhere", CodeNotFound}, {filepath.Join(dir, "missing"), CodeNotFound},
		{plain, CodeNotExecutable}, {dir, CodeNotExecutable},
	} {
		if path, err := Find(c.command); err == nil || StartCode(err) != c.code {
			t.Errorf("%s: found %q, %v with code %d, want %d", c.command, path, err, StartCode(err), c.code)
		}
	}
	o := newCommand(t, time.Hour, broken).end()
	if o.err == nil || StartCode(o.err) != CodeNotExecutable {
		t.Errorf("a file that is no program: %+v", o)
	}
}

func TestSignalsGoToTheWholeGroup(t *testing.T) {
	// The grandchild says what it got, so it is not enough to signal the command alone.
	s := newScript(t, time.Hour, join(
		`trap : USR1; sh -c 'trap "echo grandchild; exit" USR1; echo ready; while :; do sleep 1000 & wait; done' &`,
		`wait; wait; echo command; while :; do sleep 1000 & wait; done`))
	s.line("ready")
	s.signal(syscall.SIGUSR1)
	s.line("grandchild")
	s.line("command")
	s.signal(syscall.SIGTERM)
	if o := s.end(); Code(o.Status) != 143 || o.Lost {
		t.Errorf("ended with %+v", o)
	}
	s.silent()
}

func TestLossSendsTermAtOnceAndKillInTime(t *testing.T) {
	s := newScript(t, time.Second, join(
		`trap "echo term" TERM; trap "echo alive" USR1; echo ready`, `while :; do sleep 1000 & wait; done`))
	s.line("ready")
	close(s.lost)
	s.line("term") // without a single tick of the clock

	s.left.Store(1) // one nanosecond is left
	s.tick()
	s.tick() // was taken, so the one before has had its consequences
	s.signal(syscall.SIGUSR1)
	s.line("alive")

	s.left.Store(0)
	o := s.end()
	if !o.Lost || !o.Killed || o.Left || o.Alive || !o.Status.Signaled() || o.Status.Signal() != syscall.SIGKILL {
		t.Errorf("ended with %+v, want killed", o)
	}
	s.silent()
}

func TestLossWithNoTimeLeftKills(t *testing.T) {
	s := newScript(t, -time.Minute, `trap "" TERM; echo ready; while :; do sleep 1000 & wait; done`)
	s.line("ready")
	close(s.lost)
	if o := s.end(); !o.Killed || !o.Lost {
		t.Errorf("ended with %+v", o)
	}
}

func TestLossWaitsForGrandchildren(t *testing.T) {
	// The command goes at once and leaves somebody behind who does not hear SIGTERM.
	s := newScript(t, time.Second, `(trap "" TERM; echo ready; while :; do sleep 1000 & wait; done) & wait`)
	s.line("ready")
	close(s.lost)
	for range 3 {
		s.tick()
	}
	select {
	case o := <-s.ended:
		t.Fatalf("Run returned with %+v while the grandchild lived", o)
	default:
	}
	s.left.Store(0)
	if o := s.end(); !o.Lost || !o.Killed || o.Left {
		t.Errorf("ended with %+v", o)
	}
	s.silent()
}

func TestLossOfAStoppedCommand(t *testing.T) {
	s := newScript(t, time.Hour, `trap "echo term; exit 3" TERM; echo ready; kill -STOP $$; while :; do sleep 1000 & wait; done`)
	s.line("ready")
	close(s.lost)
	s.line("term") // it was continued to hear of it
	if o := s.end(); !o.Lost || o.Killed || Code(o.Status) != 3 {
		t.Errorf("ended with %+v", o)
	}
}

func TestLossBeforeTheStart(t *testing.T) {
	lost := make(chan struct{})
	close(lost)
	if _, err := Run(&Job{Path: "/bin/false", Args: []string{"false"}, Lost: lost}); !errors.Is(err, ErrLostBefore) {
		t.Errorf("got %v", err)
	}
}

func TestWhoIsLeftBehindIsTold(t *testing.T) {
	s := newScript(t, time.Hour, `sleep 1000 >/dev/null 2>&1 & echo $$`)
	pid, err := strconv.Atoi(<-s.lines)
	if err != nil {
		t.Fatal(err)
	}
	if o := s.end(); !o.Left || Code(o.Status) != 0 {
		t.Errorf("somebody was left behind and the result is %+v", o)
	}
	group(pid).signal(syscall.SIGKILL)
}

func TestEnvironment(t *testing.T) {
	s := newScript(t, time.Hour, `echo "$OCLOCKS_NAME $OCLOCKS_TOKEN $OCLOCKS_KEY ${OCLOCKS_NAME64-none}"`)
	s.line("a name 7 0000000000000009 none")
	s.end()

	stale := []string{"A=b", "OCLOCKS_NAME=old", "OCLOCKS_NAME64=old", "OCLOCKS_TOKEN=1", "OCLOCKS_KEY=2"}
	for _, c := range []struct {
		name string
		want string
	}{
		{"orders/4711", "A=b OCLOCKS_NAME=orders/4711 OCLOCKS_TOKEN=5 OCLOCKS_KEY=00000000000000ff"},
		{"\xff", "A=b OCLOCKS_NAME=\xff OCLOCKS_NAME64=/w== OCLOCKS_TOKEN=5 OCLOCKS_KEY=00000000000000ff"},
		{"a\x00b", "A=b OCLOCKS_NAME64=YQBi OCLOCKS_TOKEN=5 OCLOCKS_KEY=00000000000000ff"},
	} {
		if got := strings.Join(Environ(slices.Clone(stale), c.name, 5, 255), " "); got != c.want {
			t.Errorf("%q: %q, want %q", c.name, got, c.want)
		}
	}
}

// A daemon that is started below a lock must not take the fencing token for something that it is told.
func TestEnvironmentTellsADaemonNothing(t *testing.T) {
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	conf.AddFlags(flags)
	lock := Environ(nil, "a name", 7, 9)
	bare, err := conf.Load(flags, nil)
	if err != nil {
		t.Fatal(err)
	}
	if s, err := conf.Load(flags, lock); err != nil || !reflect.DeepEqual(s, bare) {
		t.Errorf("with %q: %+v, %v", lock, s, err)
	}
}

func TestGraceEndsInsideTheLease(t *testing.T) {
	for _, lease := range []time.Duration{100 * time.Millisecond, time.Second, 10 * time.Second, time.Minute, 24 * time.Hour} {
		trust := lease * 3 / 4
		if kill := trust + Grace(lease); kill > lease*7/8 || Grace(lease) <= 0 || Grace(lease) > maxGrace {
			t.Errorf("lease %v: SIGKILL after %v", lease, kill)
		}
	}
	if Grace(0) != noLeaseGrace {
		t.Errorf("no lease: %v", Grace(0))
	}
}
