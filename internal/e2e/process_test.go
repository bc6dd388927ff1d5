package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience bounds every wait for something that must come.
const patience = 20 * time.Second

// binEnv is a directory that has the commands already.
const binEnv = "OCLOCKS_E2E_BIN"

// binDir has the commands, built once for all tests.
var binDir = sync.OnceValues(func() (string, error) {
	if dir := os.Getenv(binEnv); dir != "" {
		return dir, nil
	}
	dir, err := os.MkdirTemp("", "oclocks-e2e")
	if err != nil {
		return "", err
	}
	build := exec.Command("go", "build", "-o", dir+string(filepath.Separator), "../../cmd/...")
	if out, err := build.CombinedOutput(); err != nil {
		return dir, fmt.Errorf("build the commands: %w\n%s", err, out)
	}
	return dir, nil
})

func TestMain(m *testing.M) {
	if role := os.Getenv(childEnv); role != "" {
		os.Exit(childMain(role))
	}
	code := m.Run()
	if dir, err := binDir(); err == nil && os.Getenv(binEnv) == "" {
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

// process is a child that prints one JSON object a line. What it printed is kept.
type process struct {
	t     testing.TB
	cmd   *exec.Cmd
	ended chan struct{}

	mu    sync.Mutex
	lines []map[string]any
	seen  int           // of lines, by line
	more  chan struct{} // closed when there is another line, or no more will come
	over  bool
}

// logsEnv is a directory into which everything that the children print is written, for whoever looks for a fault.
const logsEnv = "OCLOCKS_E2E_LOGS"

// start runs a command and reads the JSON lines that it prints to out (its stdout or stderr).
func start(t testing.TB, cmd *exec.Cmd, pipe func(*exec.Cmd) (io.ReadCloser, error)) *process {
	t.Helper()
	out, err := pipe(cmd)
	if err != nil {
		t.Fatal(err)
	}
	dieWithParent(cmd)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, cmd: cmd, ended: make(chan struct{}), more: make(chan struct{})}
	go p.read(out, fmt.Sprintf("%s-%d.log", strings.ReplaceAll(t.Name(), "/", "_"), cmd.Process.Pid))
	t.Cleanup(func() {
		p.signal(syscall.SIGCONT)
		p.kill()
	})
	return p
}

func (p *process) read(out io.Reader, name string) {
	defer close(p.ended)
	if dir := os.Getenv(logsEnv); dir != "" {
		if f, err := os.Create(filepath.Join(dir, name)); err == nil {
			defer f.Close()
			out = io.TeeReader(out, f)
		}
	}
	for in := bufio.NewScanner(out); in.Scan(); {
		var line map[string]any
		if json.Unmarshal(in.Bytes(), &line) == nil {
			p.said(func() { p.lines = append(p.lines, line) })
		}
	}
	p.said(func() { p.over = true })
}

func (p *process) said(what func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	what()
	close(p.more)
	p.more = make(chan struct{})
}

// line waits for a line in which key has the value, after the one that the last call gave.
func (p *process) line(key, value string) map[string]any {
	p.t.Helper()
	line := p.find(func(line map[string]any) bool { return line[key] == value })
	if line == nil {
		p.t.Fatalf("%s never said %s=%s", filepath.Base(p.cmd.Path), key, value)
	}
	return line
}

// find waits for a line, nil if it never comes.
func (p *process) find(ok func(line map[string]any) bool) map[string]any {
	timeout := time.After(patience)
	for {
		p.mu.Lock()
		for p.seen < len(p.lines) {
			line := p.lines[p.seen]
			if p.seen++; ok(line) {
				p.mu.Unlock()
				return line
			}
		}
		more, over := p.more, p.over
		p.mu.Unlock()
		if over {
			return nil
		}
		select {
		case <-more:
		case <-timeout:
			return nil
		}
	}
}

// has says whether it has printed such a line so far.
func (p *process) has(ok func(line map[string]any) bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.ContainsFunc(p.lines, ok)
}

func (p *process) signal(s syscall.Signal) {
	if p.cmd.ProcessState == nil {
		p.cmd.Process.Signal(s) // it may have ended by itself
	}
}

// alive says whether nobody has ended it, and it has not ended by itself as far as is known.
func (p *process) alive() bool { return p.cmd.ProcessState == nil }

// kill is kill -9, and waits until the process is gone.
func (p *process) kill() {
	p.signal(syscall.SIGKILL)
	p.wait()
}

func (p *process) wait() {
	<-p.ended
	if p.cmd.ProcessState == nil {
		p.cmd.Wait() // how it ended is asked of ProcessState
	}
}

// daemon starts oclocks-daemon and returns when it serves.
func daemon(t testing.TB, args ...string) (p *process, url string) {
	t.Helper()
	args = append([]string{"--listen", "127.0.0.1:0", "--http", "off", "--log-format", "json"}, args...)
	p = start(t, exec.Command(command(t, "oclocks-daemon"), args...), (*exec.Cmd).StderrPipe)
	return p, p.line("msg", "serving")["url"].(string)
}
