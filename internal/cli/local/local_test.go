package local

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"go.yaml.in/yaml/v3"

	"github.com/opencluster/oclocks/conf"
)

const (
	patience = time.Minute
	// fakeEnv makes this test's binary act as a daemon; its value says how it misbehaves, "-" for not at all.
	fakeEnv = "OCLOCKS_TEST_FAKE_DAEMON"
	// runnerEnv makes it run a cluster, in the directory that it names, at the ports after the one behind a comma.
	runnerEnv = "OCLOCKS_TEST_RUNNER"
)

func TestMain(m *testing.M) {
	switch {
	case os.Getenv(fakeEnv) != "" && len(os.Args) == 3 && os.Args[1] == "--config":
		os.Exit(fakeDaemon(os.Args[2], os.Getenv(fakeEnv)))
	case os.Getenv(runnerEnv) != "":
		os.Exit(runner(os.Getenv(runnerEnv)))
	}
	goleak.VerifyTestMain(m)
}

// fakeDaemon listens and tells that it serves, as a daemon does, until SIGTERM.
func fakeDaemon(config, how string) int {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	text, err := os.ReadFile(config)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	var s struct {
		Data, Listen, Node string
		ClusterListen      string `yaml:"cluster_listen"`
	}
	if err := yaml.Unmarshal(text, &s); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if how == s.Node+" fails" {
		fmt.Fprintln(os.Stderr, "the journal is damaged")
		return 3
	}
	for _, a := range []string{s.Listen, s.ClusterListen} {
		if _, err := net.Listen("tcp", a); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	if err := conf.SaveRunning(s.Data, conf.Running{PID: os.Getpid(), Serving: true, URL: "nats://" + s.Listen}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	// What a real one makes when it is founded or has joined.
	if err := os.WriteFile(filepath.Join(s.Data, "control.db"), nil, 0o600); err != nil {
		return 1
	}
	<-stop
	if how == "stubborn" {
		<-stop
	}
	fmt.Fprintln(os.Stderr, "stopped in order")
	return 0
}

func runner(where string) int {
	dir, ports, _ := strings.Cut(where, ",")
	var port int
	if _, err := fmt.Sscan(ports, &port); err != nil {
		return 1
	}
	daemon, err := os.Executable()
	if err != nil {
		return 1
	}
	if err := Run(context.Background(), Options{Dir: dir, Nodes: 2, Port: port, Daemon: daemon, Out: os.Stdout, Log: os.Stderr}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// freePort is a port after which those of some nodes are free.
func freePort(t *testing.T) int {
	t.Helper()
	for port := 12000 + os.Getpid()%500*20; port < 30000; port += 10 {
		free := true
		for i := 1; i <= 9 && free; i++ { // those that come after the four nodes of a test are for another port of the same
			for _, p := range []int{port + i, port + routeDistance + i, port + httpDistance + i} {
				l, err := net.Listen("tcp", address(p))
				if err != nil {
					free = false
					break
				}
				l.Close()
			}
		}
		if free {
			return port
		}
	}
	t.Fatal("no free ports")
	return 0
}

// show runs a cluster of fake daemons.
type show struct {
	t       *testing.T
	o       Options
	signals chan os.Signal
	lines   chan string
	over    chan error
	log     syncedBuffer
	once    sync.Once
}

type syncedBuffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (b *syncedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *syncedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func run(t *testing.T, how string, o Options) *show {
	t.Helper()
	t.Setenv(fakeEnv, how)
	daemon, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s := &show{t: t, o: o, signals: make(chan os.Signal, 4), lines: make(chan string, 1000), over: make(chan error, 1)}
	if s.o.Daemon == "" {
		s.o.Daemon = daemon
	}
	r, w := io.Pipe()
	s.o.Out, s.o.Log, s.o.Signals = w, &s.log, s.signals
	go func() {
		for in := bufio.NewScanner(r); in.Scan(); {
			s.lines <- in.Text()
		}
		close(s.lines)
	}()
	go func() {
		err := Run(context.Background(), s.o)
		w.Close()
		s.over <- err
	}()
	t.Cleanup(func() { s.stop() })
	return s
}

// stop is one signal; it gives what Run gave.
func (s *show) stop() (err error) {
	s.once.Do(func() {
		s.signals <- syscall.SIGTERM
		err = s.end()
	})
	return err
}

func (s *show) end() error {
	s.t.Helper()
	select {
	case err := <-s.over:
		return err
	case <-time.After(patience):
		s.t.Error("it does not end")
		return nil
	}
}

// served reads the lines of n nodes, and what to try.
func (s *show) served(n int) (pids map[string]int) {
	s.t.Helper()
	pids = map[string]int{}
	for line := range s.lines {
		var node struct {
			Node, Name, URL string
			PID             int
		}
		if err := json.Unmarshal([]byte(line), &node); err == nil {
			if conf.CheckNodeID(node.Node) != nil || !strings.HasPrefix(node.URL, "nats://127.0.0.1:") {
				s.t.Errorf("got %s", line)
			}
			pids[node.Name] = node.PID
		}
		if strings.HasPrefix(line, "The logs are") {
			break
		}
	}
	if len(pids) != n {
		s.t.Fatalf("got the lines of %v, want %d nodes; the log says %s", pids, n, s.log.String())
	}
	return pids
}

func (s *show) logs(text string) {
	s.t.Helper()
	if !eventually(func() bool { return strings.Contains(s.log.String(), text) }) {
		s.t.Fatalf("%q is not told; the log says %s", text, s.log.String())
	}
}

// eventually looks until yes, or patience is over.
func eventually(yes func() bool) bool {
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for end := time.Now().Add(patience); !yes(); <-look.C {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}

func gone(pid int) bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

func TestAClusterComesAndGoesAndComesBack(t *testing.T) {
	dir, port := t.TempDir(), freePort(t)
	s := run(t, "-", Options{Dir: dir, Nodes: 2, Port: port})
	first := s.served(2)
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	for name, pid := range first {
		if !gone(pid) {
			t.Errorf("%s is still there", name)
		}
		if log, err := os.ReadFile(filepath.Join(dir, name+".log")); err != nil || !strings.Contains(string(log), "stopped in order") {
			t.Errorf("%s was not stopped in order: %s, %v", name, log, err)
		}
	}
	ids := func() (all []string) {
		for _, name := range []string{"node1", "node2"} {
			id, err := conf.NodeID(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, id)
		}
		return all
	}
	before := fmt.Sprint(ids())

	other := freePort(t)
	s = run(t, "-", Options{Dir: dir, Port: other + 5}) // without a number: as many as there are
	s.served(2)
	if got := fmt.Sprint(ids()); got != before {
		t.Errorf("other nodes: %s, before %s", got, before)
	}
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	if err := Run(t.Context(), Options{Dir: dir, Nodes: 1, Port: port}); !errors.Is(err, ErrNodes) {
		t.Errorf("fewer nodes: %v", err)
	}
	s = run(t, "-", Options{Dir: dir, Nodes: 3, Port: port})
	s.served(3)
}

// TestTheDirectoriesBelongTogether: each node has the keys of the cluster and a certificate of its own.
func TestTheDirectoriesBelongTogether(t *testing.T) {
	o := Options{Dir: t.TempDir(), Nodes: 3, Port: freePort(t)}
	nodes := layout(&o)
	before, err := prepare(nodes)
	if err != nil || before {
		t.Fatal(before, err)
	}
	first, err := conf.OpenIdentity(nodes[0].data, nodes[0].id)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range nodes[1:] {
		identity, err := conf.OpenIdentity(n.data, n.id)
		if err != nil {
			t.Fatal(err)
		}
		if !identity.Authority().Certificate().Equal(first.Authority().Certificate()) {
			t.Errorf("%s has another authority", n.name)
		}
		routes, err := conf.SavedRoutes(n.data)
		if err != nil || len(routes) != 2 || routes[n.id] != nil || routes[nodes[0].id][0] != nodes[0].route {
			t.Errorf("%s knows %v, %v", n.name, routes, err)
		}
	}
	text, err := os.ReadFile(nodes[0].config)
	if err != nil || strings.Contains(string(text), "join") {
		t.Errorf("the first node is not to join: %s, %v", text, err)
	}
}

func TestOnlyOneRunsADirectory(t *testing.T) {
	dir, port := t.TempDir(), freePort(t)
	s := run(t, "-", Options{Dir: dir, Nodes: 1, Port: port})
	s.served(1)
	if err := Run(t.Context(), Options{Dir: dir, Nodes: 1, Port: port}); !errors.Is(err, ErrInUse) {
		t.Errorf("the same directory: %v", err)
	}
	err := Run(t.Context(), Options{Dir: t.TempDir(), Nodes: 1, Port: port})
	if !errors.Is(err, ErrPort) || !strings.Contains(err.Error(), address(port+1)) {
		t.Errorf("the same port: %v", err)
	}
}

func TestANodeThatEnds(t *testing.T) {
	s := run(t, "-", Options{Dir: t.TempDir(), Nodes: 2, Port: freePort(t)})
	pids := s.served(2)
	if err := syscall.Kill(pids["node2"], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	s.logs("node2 (pid " + fmt.Sprint(pids["node2"]) + ") ended: signal: killed")
	if gone(pids["node1"]) {
		t.Error("the other node went with it")
	}
	if err := syscall.Kill(pids["node1"], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := s.end(); !errors.Is(err, ErrEnded) {
		t.Errorf("all nodes have ended: %v", err)
	}
	s.once.Do(func() {})
}

func TestRestart(t *testing.T) {
	s := run(t, "-", Options{Dir: t.TempDir(), Nodes: 1, Port: freePort(t), Restart: true})
	pids := s.served(1)
	if err := syscall.Kill(pids["node1"], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	s.logs("node1 is started again")
	if err := s.stop(); err != nil {
		t.Error(err)
	}
}

func TestANodeThatDoesNotStart(t *testing.T) {
	s := run(t, "node2 fails", Options{Dir: t.TempDir(), Nodes: 2, Port: freePort(t)})
	err := s.end()
	s.once.Do(func() {})
	if !errors.Is(err, ErrEnded) || !strings.Contains(err.Error(), "the journal is damaged") || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("got %v", err)
	}
	if err := Run(t.Context(), Options{Dir: t.TempDir(), Nodes: 1, Port: freePort(t), Daemon: "/nowhere"}); err == nil {
		t.Error("a daemon that is not there")
	}
}

func TestASecondSignalKills(t *testing.T) {
	s := run(t, "stubborn", Options{Dir: t.TempDir(), Nodes: 1, Port: freePort(t), Stop: time.Hour, same: time.Nanosecond})
	pids := s.served(1)
	s.signals <- syscall.SIGINT
	s.logs("once more kills them")
	s.signals <- syscall.SIGINT
	if err := s.end(); err != nil || !gone(pids["node1"]) {
		t.Errorf("got %v, gone %t", err, gone(pids["node1"]))
	}
	s.once.Do(func() {})
}

func TestASignalThatComesByTwoWaysIsOne(t *testing.T) {
	s := run(t, "stubborn", Options{Dir: t.TempDir(), Nodes: 1, Port: freePort(t), Stop: time.Hour, same: time.Hour})
	pid := s.served(1)["node1"]
	s.signals <- syscall.SIGINT
	s.logs("once more kills them")
	for range 3 { // once the last is taken, those before it have had their consequences
		s.signals <- syscall.SIGINT
	}
	if !eventually(func() bool { return len(s.signals) == 0 }) || dead(pid) {
		t.Error("one signal that came twice kills")
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := s.end(); err != nil {
		t.Error(err)
	}
	s.once.Do(func() {})
}

func TestStopHasALimit(t *testing.T) {
	s := run(t, "stubborn", Options{Dir: t.TempDir(), Nodes: 1, Port: freePort(t), Stop: 50 * time.Millisecond})
	s.served(1)
	if err := s.stop(); err != nil || !strings.Contains(s.log.String(), "killing them") {
		t.Errorf("got %v, %s", err, s.log.String())
	}
}

// TestNodesEndWithTheRunner: a runner that is killed leaves nobody behind.
func TestNodesEndWithTheRunner(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), runnerEnv+"="+t.TempDir()+","+fmt.Sprint(freePort(t)), fakeEnv+"=-")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	var pids []int
	for len(pids) < 2 && lines.Scan() {
		var node struct{ PID int }
		if json.Unmarshal(lines.Bytes(), &node) == nil {
			pids = append(pids, node.PID)
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	if len(pids) != 2 {
		t.Fatalf("got %v", pids)
	}
	for _, pid := range pids {
		if !eventually(func() bool { return dead(pid) }) {
			t.Fatalf("%d lives on", pid)
		}
	}
}

// dead counts a zombie as dead: whoever adopted it may be slow to look.
func dead(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || strings.Contains(string(stat), ") Z ")
}

// TestTheNodesHaveTheirOwnSettings: variables for a daemon count for none of them.
func TestTheNodesHaveTheirOwnSettings(t *testing.T) {
	t.Setenv("OCLOCKS_LISTEN", "127.0.0.1:1")
	t.Setenv("OCLOCKS_LOOK", "x")
	all := strings.Join(environ(), "\n")
	if strings.Contains(all, "OCLOCKS_LISTEN=") || !strings.Contains(all, "OCLOCKS_LOOK=x") {
		t.Errorf("got %s", all)
	}
}

// TestManyNodesGetMoreTime: but all the same, and no more than a daemon takes.
func TestManyNodesGetMoreTime(t *testing.T) {
	def := conf.Default().NodeLease
	if leaseOf(3) != def || leaseOf(5) != def || leaseOf(20) != 4*def || leaseOf(MaxNodes) > conf.MaxNodeLease {
		t.Errorf("got %v, %v, %v, %v", leaseOf(3), leaseOf(5), leaseOf(20), leaseOf(MaxNodes))
	}
}

func TestOptions(t *testing.T) {
	for _, o := range []Options{{Nodes: -1, Port: 1000}, {Nodes: MaxNodes + 1, Port: 1000}, {Nodes: 1}, {Nodes: 1, Port: 65500}} {
		if err := o.validate(); err == nil {
			t.Errorf("%+v is taken", o)
		}
	}
}

func TestPathIsToldWhereItIsNeeded(t *testing.T) {
	dir := t.TempDir()
	daemon := filepath.Join(dir, "oclocks-daemon")
	if err := os.WriteFile(daemon, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", t.TempDir())
	if got, want := pathLine(daemon), "  export PATH=\""+dir+":$PATH\"\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	t.Setenv("PATH", dir)
	if got := pathLine(daemon); got != "" {
		t.Errorf("though a shell finds it: %q", got)
	}
}
