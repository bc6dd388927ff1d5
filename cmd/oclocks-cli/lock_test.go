package main

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestLockPassesTheExitCodeThrough(t *testing.T) {
	c := startBroker(t)
	for _, x := range []struct {
		command []string
		code    int
	}{
		{[]string{"true"}, 0}, {[]string{"sh", "-c", "exit 42"}, 42}, {[]string{"sh", "-c", "kill -TERM $$"}, 143},
		{[]string{"no-such-command-anywhere"}, 127}, {[]string{"/dev/null"}, 126}, {[]string{"sh", "-c", "exit 75"}, 75},
	} {
		if _, errs, code := c.run(append([]string{"lock", "a", "--"}, x.command...)...); code != x.code {
			t.Errorf("%v: exit code %d, want %d\n%s", x.command, code, x.code, errs)
		}
	}
	if out := c.ok("query", "a"); !strings.Contains(out, "free") {
		t.Errorf("not released: %s", out)
	}
}

func TestLockHandsOverNameTokenAndKey(t *testing.T) {
	c := startBroker(t)
	out := c.ok("lock", "a b", "--", "sh", "-c", binary+` query --json "$OCLOCKS_NAME"; echo "$OCLOCKS_TOKEN"; `+
		binary+` check "$OCLOCKS_NAME" >/dev/null && echo current; `+
		binary+` release "$OCLOCKS_NAME" && `+binary+` check "$OCLOCKS_NAME" --token "$OCLOCKS_TOKEN" -q || echo over`)
	lines := strings.Split(out, "\n")
	var record struct{ Holders []struct{ Token uint64 } }
	if err := json.Unmarshal([]byte(lines[0]), &record); err != nil || len(record.Holders) != 1 {
		t.Fatalf("%v in %s", err, out)
	}
	if lines[1] != strconv.FormatUint(record.Holders[0].Token, 10) || !strings.Contains(out, "current\nreleased") || !strings.Contains(out, "over") {
		t.Errorf("printed\n%s", out)
	}
}

func TestLockNotAcquired(t *testing.T) {
	c := startBroker(t)
	holder := c.start("lock", "a", "--holder", "web-1", "--", "sh", "-c", "echo ready; while :; do sleep 1000 & wait; done")
	holder.line("ready")
	marker := filepath.Join(t.TempDir(), "ran")
	for _, x := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"-n"}, 75, "a is held by web-1 for"},
		{[]string{"-w", "0"}, 75, "to wait for it, use: -w 10s"},
		{[]string{"-w", "0.05"}, 75, "not acquired within 50ms: a is held by web-1"},
		{[]string{"-w", "50ms", "-E", "3"}, 3, "see who is before you with: oclocks-cli query a"},
		{[]string{"-n", "-s"}, 75, "is held by web-1"},
		{[]string{"-n", "-q"}, 75, ""},
		{[]string{"-n", "--json"}, 75, `{"error":{"code":409,"reason":"held"`},
		{[]string{"-n", "--slots", "3"}, 75, "is held by web-1"},
	} {
		args := append(append([]string{"lock"}, x.args...), "a", "--", "touch", marker)
		if _, errs, code := c.run(args...); code != x.code || !strings.Contains(errs, x.says) || x.says == "" && errs != "" {
			t.Errorf("%v: exit code %d, want %d, and it said\n%s", x.args, code, x.code, errs)
		}
	}
	if _, err := os.Stat(marker); err == nil {
		t.Error("the command ran without the lock")
	}
	holder.signal(syscall.SIGTERM)
	if code, _, _ := holder.end(); code != 143 {
		t.Errorf("the holder ended with %d", code)
	}
}

func TestLockWaitsItsTurn(t *testing.T) {
	c := startBroker(t)
	first := c.start("lock", "a")
	first.line("key")
	second := c.start("lock", "-w", "30s", "a", "--", "echo", "mine")
	c.until("1 waiting", "query", "a")
	first.signal(syscall.SIGINT)
	if code, _, errs := first.end(); code != 0 {
		t.Errorf("the holder ended with %d\n%s", code, errs)
	}
	second.line("mine")
	if code, _, _ := second.end(); code != 0 {
		t.Errorf("the second ended with %d", code)
	}
}

func TestASignalEndsTheWait(t *testing.T) {
	c := startBroker(t)
	holder := c.start("lock", "a")
	holder.line("key")
	waiter := c.start("lock", "a", "--", "echo", "never")
	c.until("1 waiting", "query", "a")
	waiter.signal(syscall.SIGTERM)
	if code, out, errs := waiter.end(); code != 143 || out != "" || errs != "" {
		t.Errorf("ended with %d, %q, %q", code, out, errs)
	}
	if out := c.ok("query", "a"); !strings.Contains(out, "0 waiting") {
		t.Errorf("the waiter is still there: %s", out)
	}
}

func TestLockShared(t *testing.T) {
	c := startBroker(t)
	a, b := c.start("lock", "-s", "a"), c.start("lock", "-s", "a")
	for _, p := range []*process{a, b} {
		if mode := p.line("mode"); !strings.HasSuffix(mode, "  shared") {
			t.Error(mode)
		}
	}
	if out := c.ok("query", "a"); !strings.Contains(out, "shared, 2 holders") {
		t.Errorf("query: %s", out)
	}
}

func TestLockSemaphore(t *testing.T) {
	c := startBroker(t)
	a := c.start("lock", "--slots", "3", "--take", "2", "a")
	if mode := a.line("mode"); !strings.HasSuffix(mode, "  semaphore, 2 slots") {
		t.Error(mode)
	}
	if _, _, code := c.run("lock", "-n", "--slots", "3", "--take", "2", "a", "--", "true"); code != 75 {
		t.Errorf("two more of three slots: %d", code)
	}
	c.ok("lock", "-n", "--slots", "3", "a", "--", "true")
}

func TestLockDataAndNamesThatAreNoText(t *testing.T) {
	c := startBroker(t)
	out := c.ok("lock", "--name64", "AP8=", "--data", `{"job":7}`, "--static", "--ttl", "20s", "--", "sh", "-c",
		`echo "${OCLOCKS_NAME-none} $OCLOCKS_NAME64"; `+binary+` list`)
	for _, want := range []string{"none AP8=\n", `"\x00\xff"`, "held"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	c.ok("lock", "\xfe", "--", "true") // bytes from the shell are as good
}

func TestForcedLockEndsTheCommand(t *testing.T) {
	c := startBroker(t)
	p := c.start("lock", "a", "--", "sh", "-c", `trap 'echo term; exit 0' TERM; echo "token $OCLOCKS_TOKEN"; while :; do sleep 1000 & wait; done`)
	token := strings.TrimPrefix(p.line("token "), "token ")
	c.ok("force", "a", "--token", token, "--reason", "a test")
	p.line("term")
	code, _, errs := p.end()
	if code != 76 || !strings.Contains(errs, "an admin took it away") || !strings.Contains(errs, "the command was ended") {
		t.Errorf("ended with %d\n%s", code, errs)
	}
	// The holder has confirmed, so nobody waits for its lease.
	c.ok("lock", "-w", "8s", "a", "--", "true")
}

func TestForcedLockWithoutACommand(t *testing.T) {
	c := startBroker(t)
	p := c.start("lock", "a")
	token := strings.TrimSpace(strings.TrimPrefix(p.line("token"), "token"))
	c.ok("force", "a", "--token", token, "--reason", "a test", "--now")
	if code, _, _ := p.end(); code != 76 {
		t.Errorf("ended with %d", code)
	}
}

// TestTheCommandIsGoneBeforeTheLockIsHandedOn cuts the holder off from its broker: the command, which does not hear
// SIGTERM, has to be gone before the next one in the queue has the lock.
func TestTheCommandIsGoneBeforeTheLockIsHandedOn(t *testing.T) {
	c := startBroker(t)
	valve := newValve(t, c.url)
	alive := filepath.Join(t.TempDir(), "alive")
	if err := unix.Mkfifo(alive, 0o600); err != nil {
		t.Fatal(err)
	}
	cut := *c
	cut.url = valve.url
	holder := cut.start("lock", "--lease", "6s", "a", "--", "sh", "-c",
		`exec 9>"$0"; trap 'echo term' TERM; echo ready; while :; do sleep 1000 & wait; done`, alive)
	gone := make(chan time.Time, 1)
	go func() {
		// Everybody who lives under the lock has this open.
		if f, err := os.Open(alive); err == nil {
			var b [1]byte
			_, _ = f.Read(b[:])
			f.Close()
		}
		gone <- time.Now()
	}()
	holder.line("ready")
	next := c.start("lock", "a", "--", "echo", "mine")
	c.until("1 waiting", "query", "a")
	valve.shut()

	holder.line("term")
	next.line("mine")
	handedOn := time.Now()
	select {
	case at := <-gone:
		t.Logf("the command was gone %v before the lock was handed on", handedOn.Sub(at))
		if !at.Before(handedOn) {
			t.Error("the command was still there when the lock was handed on")
		}
	case <-time.After(patience):
		t.Fatal("the command lives on")
	}
	if code, _, errs := holder.end(); code != 76 || !strings.Contains(errs, "the command was killed") {
		t.Errorf("the holder ended with %d\n%s", code, errs)
	}
}

func TestTheCommandDiesWithTheCLI(t *testing.T) {
	c := startBroker(t)
	alive := filepath.Join(t.TempDir(), "alive")
	if err := unix.Mkfifo(alive, 0o600); err != nil {
		t.Fatal(err)
	}
	p := c.start("lock", "--grace", "0s", "a", "--", "sh", "-c", `exec 9>"$0"; echo ready; exec sleep 1000`, alive)
	f, err := os.Open(alive)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	p.line("ready")
	p.signal(syscall.SIGKILL)
	if err := f.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	var b [1]byte
	if n, err := f.Read(b[:]); n != 0 || os.IsTimeout(err) {
		t.Error("the command lives on")
	}
	_ = p.cmd.Wait() // it was killed
	c.ok("lock", "-w", "8s", "a", "--", "true")
}

func TestWhatIsLeftRunningIsTold(t *testing.T) {
	c := startBroker(t)
	_, errs, code := c.run("lock", "a", "--", "sh", "-c", `sleep 1 >/dev/null 2>&1 &`)
	if code != 0 || !strings.Contains(errs, "go on without the lock") {
		t.Errorf("exit code %d\n%s", code, errs)
	}
}

// valve passes connections on to a broker until it is shut: then bytes stay where they are, as when a cable is cut.
type valve struct {
	url    string
	closed chan struct{}
}

func newValve(t *testing.T, url string) *valve {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	v := &valve{url: "nats://" + l.Addr().String(), closed: make(chan struct{})}
	target := strings.TrimPrefix(url, "nats://")
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", target)
			if err != nil {
				in.Close()
				continue
			}
			t.Cleanup(func() { in.Close(); out.Close() })
			go v.pass(in, out)
			go v.pass(out, in)
		}
	}()
	t.Cleanup(func() { l.Close() })
	return v
}

func (v *valve) pass(from, to net.Conn) {
	b := make([]byte, 4096)
	for {
		n, err := from.Read(b)
		select {
		case <-v.closed:
			return
		default:
		}
		if err != nil {
			to.Close()
			return
		}
		if _, err := to.Write(b[:n]); err != nil {
			return
		}
	}
}

func (v *valve) shut() { close(v.closed) }
