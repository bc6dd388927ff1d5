package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/opencluster/oclocks/broker"
	"github.com/opencluster/oclocks/conf"
	"github.com/opencluster/oclocks/internal/brokertest"
)

// patience bounds every wait of these tests; none of them waits that long unless it fails.
const patience = 2 * time.Minute

// binary is oclocks-cli as `go build` makes it.
var binary string

func TestMain(m *testing.M) { os.Exit(buildAndRun(m)) }

func buildAndRun(m *testing.M) int {
	dir, err := os.MkdirTemp("", "oclocks-cli")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "oclocks-cli")
	if out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build oclocks-cli: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// zoneWithAll is an open zone where everybody may do everything and sees everything.
var zoneWithAll = conf.Zone{Name: "default", Open: true, Role: conf.RoleAdmin, LockEvents: true}

// startBroker starts a broker and gives a way to run oclocks-cli against it.
func startBroker(t *testing.T, opts ...brokertest.Option) *tool {
	t.Helper()
	d := brokertest.Start(t, append([]brokertest.Option{brokertest.WithZones(zoneWithAll)}, opts...)...)
	return &tool{t: t, daemon: d, url: d.URL()}
}

// tool runs oclocks-cli.
type tool struct {
	t      *testing.T
	daemon *broker.Daemon
	url    string
	env    []string
}

func (c *tool) command(args ...string) *exec.Cmd {
	cmd := exec.Command(binary, args...)
	cmd.Env = append(os.Environ(), "NATS_URL="+c.url, "NATS_CREDS=", "NATS_CONTEXT=", "HOME="+c.t.TempDir())
	cmd.Env = append(cmd.Env, c.env...)
	return cmd
}

// run runs a command line to its end.
func (c *tool) run(args ...string) (stdout, stderr string, code int) {
	c.t.Helper()
	var out, errs bytes.Buffer
	cmd := c.command(args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	guard := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	defer guard.Stop()
	code = exitCode(c.t, cmd.Wait())
	return out.String(), errs.String(), code
}

func exitCode(t *testing.T, err error) int {
	t.Helper()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit) && exit.ProcessState.Exited():
		return exit.ExitCode()
	}
	t.Fatalf("oclocks-cli ended with %v", err)
	return -1
}

// ok runs a command line that has to succeed, and gives what it printed.
func (c *tool) ok(args ...string) string {
	c.t.Helper()
	out, errs, code := c.run(args...)
	if code != 0 {
		c.t.Fatalf("%s: exit code %d\n%s%s", strings.Join(args, " "), code, out, errs)
	}
	return out
}

// daemonStops stops the broker before the test ends.
func (c *tool) daemonStops() {
	c.t.Helper()
	brokertest.Stop(c.t, c.daemon)
}

// process is a command line under way.
type process struct {
	t      *testing.T
	cmd    *exec.Cmd
	out    *bufio.Reader
	stderr bytes.Buffer
}

func (c *tool) start(args ...string) *process {
	c.t.Helper()
	p := &process{t: c.t, cmd: c.command(args...)}
	r, w, err := os.Pipe()
	if err != nil {
		c.t.Fatal(err)
	}
	p.cmd.Stdout, p.cmd.Stderr, p.out = w, &p.stderr, bufio.NewReader(r)
	if err := p.cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	w.Close()
	guard := time.AfterFunc(patience, func() { _ = p.cmd.Process.Kill(); r.Close() })
	c.t.Cleanup(func() {
		guard.Stop()
		_ = p.cmd.Process.Kill()
		r.Close()
	})
	return p
}

// line waits for a line of output that begins with want, and gives it.
func (p *process) line(want string) string {
	p.t.Helper()
	for {
		got, err := p.out.ReadString('\n')
		if strings.HasPrefix(got, want) {
			return strings.TrimSuffix(got, "\n")
		}
		if err != nil {
			p.t.Fatalf("no line %q: %v\n%s", want, err, p.stderr.String())
		}
	}
}

func (p *process) signal(sig os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil {
		p.t.Fatal(err)
	}
}

// end waits for the end and gives the exit code and what is left of the output.
func (p *process) end() (code int, rest, stderr string) {
	p.t.Helper()
	text, _ := io.ReadAll(p.out)
	code = exitCode(p.t, p.cmd.Wait())
	return code, string(text), p.stderr.String()
}

// until runs a command line again and again until what it prints has want in it.
func (c *tool) until(want string, args ...string) string {
	c.t.Helper()
	for deadline := time.Now().Add(patience); ; {
		out := c.ok(args...)
		if strings.Contains(out, want) {
			return out
		}
		if time.Now().After(deadline) {
			c.t.Fatalf("%s never printed %q but\n%s", strings.Join(args, " "), want, out)
		}
	}
}
