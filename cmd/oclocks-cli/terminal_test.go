//go:build linux

package main

import (
	"strings"
	"testing"

	"github.com/opencluster/oclocks/internal/cli/ptytest"
)

func TestTopOnATerminal(t *testing.T) {
	c := startBroker(t)
	c.ok("acquire", "-q", "orders/1")
	s := ptytest.Start(t, c.command("top", "--every", "50ms"), patience)
	before := s.Modes()
	s.Shows("\x1b[?1049h")
	s.Shows("0 locks have a queue")
	s.Shows("orders/1")
	c.ok("acquire", "-q", "orders/2")
	s.Shows("orders/2")
	c.start("lock", "orders/2", "--holder", "the one who waits", "--", "true")
	s.Shows("1 lock has a queue, 1 waiting")
	s.Shows("the one who waits")
	s.Resize(30, 5)
	s.Shows("zone default…") // cut to the new width

	c.daemonStops()
	s.Shows("as of ")
	s.Type("q")
	s.Shows("\x1b[?1049l")
	if code := exitCode(t, s.Cmd.Wait()); code != 0 {
		t.Errorf("ended with %d", code)
	}
	if after := s.Modes(); after != before {
		t.Errorf("the terminal is left with other modes:\n%+v\n%+v", before, after)
	}
}

func TestClusterOnATerminal(t *testing.T) {
	c := startBroker(t)
	s := ptytest.Start(t, c.command("cluster", "--watch", "--every", "100ms"), patience)
	s.Shows("\x1b[?1049h")
	s.Shows("leads, 1 node up, min_quorum 1")
	s.Shows("buckets are as they should be.")
	c.daemonStops()
	s.Shows("as of ")
	s.Type("q")
	s.Shows("\x1b[?1049l")
	if code := exitCode(t, s.Cmd.Wait()); code != 0 {
		t.Errorf("ended with %d", code)
	}
}

func TestLockOnATerminal(t *testing.T) {
	c := startBroker(t)
	s := ptytest.Start(t, c.command("lock", "a", "--", "sh", "-c", `echo ready; read x; echo "got <$x>"; echo again; read y`), patience)
	s.Shows("ready")
	s.Type("some text\n")
	s.Shows("got <some text>")
	s.Shows("again")
	s.Type("\x03")
	if code := exitCode(t, s.Cmd.Wait()); code != 130 {
		t.Errorf("ended with %d", code)
	}
	if out := c.ok("query", "a"); !strings.Contains(out, "free") {
		t.Errorf("not released: %s", out)
	}
}

func TestLockWithoutACommandOnATerminal(t *testing.T) {
	c := startBroker(t)
	s := ptytest.Start(t, c.command("lock", "a"), patience)
	s.Shows("token")
	s.Type("\x03")
	if code := exitCode(t, s.Cmd.Wait()); code != 0 {
		t.Errorf("ended with %d", code)
	}
}
