package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/opencluster/oclocks/internal/e2e/daemons"
)

// patience bounds every wait for something that must come.
const patience = time.Minute

// binDir has the commands, built once for all tests.
var binDir = sync.OnceValues(func() (string, error) {
	if dir := os.Getenv(daemons.BinVariable); dir != "" {
		return dir, nil
	}
	dir, err := os.MkdirTemp("", "oclocks-e2e")
	if err != nil {
		return "", err
	}
	return dir, daemons.Build(dir)
})

func TestMain(m *testing.M) {
	if role := os.Getenv(childEnv); role != "" {
		os.Exit(childMain(role))
	}
	code := m.Run()
	if dir, err := binDir(); err == nil && os.Getenv(daemons.BinVariable) == "" {
		os.RemoveAll(dir)
	}
	os.Exit(code)
}

// command is the path of one of our commands.
func command(t testing.TB, name string) string {
	t.Helper()
	dir, err := binDir()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, name)
}

// process is a child of a test, which fails with it.
type process struct {
	t testing.TB
	*daemons.Process
}

// logsEnv is a directory into which everything that the children print is written, for whoever looks for a fault.
const logsEnv = "OCLOCKS_E2E_LOGS"

// started counts children, for the names of their logs.
var started atomic.Int64

// start runs a command and reads the JSON lines that it prints to out (its stdout or stderr).
func start(t testing.TB, cmd *exec.Cmd, pipe daemons.Pipe) *process {
	t.Helper()
	var output daemons.Output
	if dir := os.Getenv(logsEnv); dir != "" {
		output.File = filepath.Join(dir, fmt.Sprintf("%s-%d.log", strings.ReplaceAll(t.Name(), "/", "_"), started.Add(1)))
	}
	child, err := daemons.Start(cmd, pipe, output)
	if err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, Process: child}
	t.Cleanup(func() {
		p.signal(syscall.SIGCONT)
		p.kill()
	})
	return p
}

// line waits for a line in which key has the value, after the one that the last call gave.
func (p *process) line(key, value string) map[string]any {
	p.t.Helper()
	line := p.find(func(line map[string]any) bool { return line[key] == value })
	if line == nil {
		p.t.Fatalf("%s never said %s=%s", filepath.Base(p.Cmd.Path), key, value)
	}
	return line
}

// find waits for a line, nil if it never comes.
func (p *process) find(ok func(line map[string]any) bool) map[string]any { return p.Find(patience, ok) }

// has says whether it has printed such a line so far.
func (p *process) has(ok func(line map[string]any) bool) bool { return p.Has(ok) }

// signal sends a signal; the process may have ended by itself.
func (p *process) signal(s syscall.Signal) { p.Signal(s) }

// alive says whether nobody has ended it, and it has not ended by itself as far as is known.
func (p *process) alive() bool { return p.Cmd.ProcessState == nil }

// kill is kill -9, and waits until the process is gone.
func (p *process) kill() { p.Kill() }

func (p *process) wait() { p.Wait() }

// daemon starts oclocks-daemon and returns when it serves.
func daemon(t testing.TB, args ...string) (p *process, url string) {
	t.Helper()
	args = append([]string{"--listen", "127.0.0.1:0", "--http", "off", "--log-format", "json"}, args...)
	p = start(t, exec.Command(command(t, "oclocks-daemon"), args...), (*exec.Cmd).StderrPipe)
	return p, p.line("msg", "serving")["url"].(string)
}
