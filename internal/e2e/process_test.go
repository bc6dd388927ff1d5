package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience bounds every wait for something that must come.
const patience = 20 * time.Second

// binDir has the commands, built once for all tests.
var binDir = sync.OnceValues(func() (string, error) {
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
	if dir, err := binDir(); err == nil {
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

// process is a child that prints one JSON object a line.
type process struct {
	t     testing.TB
	cmd   *exec.Cmd
	lines chan map[string]any
	ended chan struct{}
}

// start runs a command and reads the JSON lines that it prints to out (its stdout or stderr).
func start(t testing.TB, cmd *exec.Cmd, pipe func(*exec.Cmd) (io.ReadCloser, error)) *process {
	t.Helper()
	out, err := pipe(cmd)
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, cmd: cmd, lines: make(chan map[string]any, 1024), ended: make(chan struct{})}
	go func() {
		defer close(p.ended)
		defer close(p.lines)
		for in := bufio.NewScanner(out); in.Scan(); {
			var line map[string]any
			if json.Unmarshal(in.Bytes(), &line) == nil {
				p.lines <- line
			}
		}
	}()
	t.Cleanup(func() {
		p.signal(syscall.SIGCONT)
		p.kill()
	})
	return p
}

// line waits for a line in which key has the value.
func (p *process) line(key, value string) map[string]any {
	p.t.Helper()
	timeout := time.After(patience)
	for {
		select {
		case line, ok := <-p.lines:
			if !ok {
				p.t.Fatalf("%s ended before it said %s=%s", filepath.Base(p.cmd.Path), key, value)
			}
			if line[key] == value {
				return line
			}
		case <-timeout:
			p.t.Fatalf("%s never said %s=%s", filepath.Base(p.cmd.Path), key, value)
		}
	}
}

func (p *process) signal(s syscall.Signal) {
	if p.cmd.ProcessState == nil {
		p.cmd.Process.Signal(s) // it may have ended by itself
	}
}

// kill is kill -9, and waits until the process is gone.
func (p *process) kill() {
	p.signal(syscall.SIGKILL)
	p.wait()
}

func (p *process) wait() {
	for range p.lines { // so that the reader can end
	}
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
