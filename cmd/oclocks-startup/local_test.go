package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/opencluster/oclocks/client"
	"github.com/opencluster/oclocks/subjects"
)

// patience bounds every wait for something that must come.
const patience = 2 * time.Minute

// freePorts is a port after which those of some nodes are free.
func freePorts(t *testing.T) int {
	t.Helper()
	free := func(port int) bool {
		l, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", port))
		return err == nil && l.Close() == nil
	}
	for port := 15000; port < 30000; port += 10 {
		all := true
		for i := 1; i <= 3; i++ {
			all = all && free(port+i) && free(port+100+i)
		}
		if all {
			return port
		}
	}
	t.Fatal("no free ports")
	return 0
}

// localCluster is `oclocks-startup local` as a process.
type localCluster struct {
	t    *testing.T
	cmd  *exec.Cmd
	pids map[string]int
	urls []string
	told chan string // lines of the standard error
}

// tells waits for a line that begins so.
func (c *localCluster) tells(text string) {
	c.t.Helper()
	for line := range c.told {
		if strings.HasPrefix(line, text) {
			return
		}
	}
	c.t.Fatalf("%q was never told", text)
}

func startLocal(t *testing.T, args ...string) *localCluster {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := &localCluster{t: t, cmd: exec.Command(exe, append([]string{"local"}, args...)...), pids: map[string]int{}}
	c.cmd.Env = append(os.Environ(), toolEnv+"=1")
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	log, err := c.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	guard := time.AfterFunc(patience, func() { _ = c.cmd.Process.Kill() }) // the nodes go with it
	t.Cleanup(func() {
		guard.Stop()
		_ = c.cmd.Process.Kill() // it may have ended
		_ = c.cmd.Wait()
	})
	c.told = make(chan string, 1000)
	go func() {
		defer close(c.told)
		for lines := bufio.NewScanner(log); lines.Scan(); {
			c.told <- lines.Text()
		}
	}()
	for lines := bufio.NewScanner(out); lines.Scan(); {
		var node struct {
			Name, URL string
			PID       int
		}
		if json.Unmarshal(lines.Bytes(), &node) == nil {
			c.pids[node.Name] = node.PID
			c.urls = append(c.urls, node.URL)
		}
		if strings.HasPrefix(lines.Text(), "The logs are") {
			go func() { _, _ = io.Copy(io.Discard, out) }() // there is no more
			return c
		}
	}
	for line := range c.told {
		t.Log(line)
	}
	t.Fatal("it ended before all nodes served")
	return nil
}

func (c *localCluster) client(ctx context.Context) *client.Client {
	c.t.Helper()
	cl, err := client.Connect(ctx, strings.Join(c.urls, ","))
	if err != nil {
		c.t.Fatal(err)
	}
	return cl
}

// held says whether a lock is held, when somebody can tell.
func held(ctx context.Context, t *testing.T, c *client.Client, name string) bool {
	t.Helper()
	r, err := c.Query(ctx, name)
	if err != nil {
		t.Fatal(err)
	}
	return r.Held
}

// TestALocalClusterOfDaemons: three real daemons; one is killed, all are stopped and come back, and the locks stay.
func TestALocalClusterOfDaemons(t *testing.T) {
	bin := filepath.Join(t.TempDir(), daemonName)
	if out, err := exec.Command("go", "build", "-o", bin, "../oclocks-daemon").CombinedOutput(); err != nil {
		t.Fatalf("build the daemon: %v\n%s", err, out)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	args := []string{"--daemon", bin, "--dir", t.TempDir(), "--port", fmt.Sprint(freePorts(t))}
	c := startLocal(t, args...)
	if len(c.pids) != 3 {
		t.Fatalf("got %v", c.pids)
	}
	cl := c.client(ctx)
	names := make([]string, 40) // in buckets of all nodes
	for i := range names {
		names[i] = fmt.Sprint("orders/", i)
		if _, err := cl.Acquire(ctx, &subjects.Request{Name: names[i], Kind: subjects.Static, TTL: time.Hour, Has: subjects.HasTTL}); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Kill(c.pids["node2"], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	c.tells("node2 (pid ")
	for _, name := range names {
		if !held(ctx, t, cl, name) {
			t.Errorf("%s is lost with a node", name)
		}
	}
	if err := cl.Close(ctx); err != nil {
		t.Error(err)
	}
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Wait(); err != nil {
		t.Errorf("the stop: %v", err)
	}

	c = startLocal(t, args...)
	cl = c.client(ctx)
	defer cl.Close(ctx)
	if len(c.pids) != 3 {
		t.Errorf("got %v", c.pids)
	}
	for _, name := range names {
		if !held(ctx, t, cl, name) {
			t.Errorf("%s is lost with a restart", name)
		}
	}
}
