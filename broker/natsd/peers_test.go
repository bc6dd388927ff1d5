package natsd

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/opencluster/oclocks/conf"
)

// gone waits until s is told that a server is gone, and says how long that took.
func gone(t *testing.T, s *Server, name string, end func()) time.Duration {
	t.Helper()
	told := make(chan struct{}, 1)
	stop := s.WatchRoutes(func(connected []string) {
		if !slices.Contains(connected, name) {
			signal(told)
		}
	})
	defer stop()
	began := time.Now()
	end()
	select {
	case <-told:
		return time.Since(began)
	case <-time.After(patience):
		t.Fatalf("%s still sees %s", s.cfg.ServerName, name)
		return 0
	}
}

// childEnv names the data directory of a server that the test's program runs instead of the tests; the next variable is
// the address that it joins.
const childEnv, childJoin = "OCLOCKS_TEST_NATSD", "OCLOCKS_TEST_JOIN"

// child is what such a process does until it is killed.
func child(dir string) error {
	id, err1 := conf.NodeID(dir)
	auth, err2 := conf.OpenAuth(dir)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	identity, err := conf.OpenIdentity(dir, id)
	if err != nil {
		return err
	}
	_, err = Start(context.Background(), Config{ServerName: id, Listen: "127.0.0.1:0", Auth: auth, Logger: quiet(),
		Cluster: &Cluster{Name: "test", Listen: "127.0.0.1:0", Identity: identity, Join: []string{os.Getenv(childJoin)}}})
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, os.Stdin) // until the test is over, whatever becomes of it
	return err
}

// The hint alone is enough to notice a process that was killed: in this test nothing looks at the routes without one.
func TestAKilledServerIsNoticedAtOnce(t *testing.T) {
	dir := t.TempDir()
	auth, err1 := conf.OpenAuth(dir)
	id, err2 := conf.NodeID(dir)
	identity, err3 := conf.CreateIdentity(dir, "test", id)
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, auth: auth, authority: identity.Authority()}
	cfg := w.config(newID(t))
	cfg.Cluster.poll = time.Hour
	s := w.start(cfg)

	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+dir, childJoin+"="+s.route())
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	sees(t, s, id)
	took := gone(t, s, id, func() {
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
	})
	t.Logf("noticed after %s", took)
	if err := cmd.Wait(); err == nil {
		t.Error("it was not killed")
	}
}

// line is between two servers and can be cut without a word.
type line struct {
	addr string

	mu  sync.Mutex
	cut bool
}

func newLine(t *testing.T, to string) *line {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	ln := &line{addr: l.Addr().String()}
	pump := func(from, to net.Conn) {
		defer from.Close()
		defer to.Close()
		buf := make([]byte, 64<<10)
		for {
			n, err := from.Read(buf)
			if err != nil {
				return
			}
			if ln.isCut() {
				continue
			}
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
	}
	go func() {
		for {
			a, err := l.Accept()
			if err != nil {
				return
			}
			b, err := net.Dial("tcp", to)
			if err != nil {
				a.Close()
				return
			}
			go pump(a, b)
			go pump(b, a)
		}
	}()
	return ln
}

func (l *line) isCut() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cut
}

func (l *line) set(cut bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = cut
}

func TestACutIsNoticedByBothSidesAndMended(t *testing.T) {
	w := newWorld(t)
	a := w.start(w.config(newID(t)))
	l := newLine(t, a.route())
	b := w.start(w.config(newID(t), l.addr))
	sees(t, a, b.cfg.ServerName)
	sees(t, b, a.cfg.ServerName)
	took := gone(t, a, b.cfg.ServerName, func() { l.set(true) })
	sees(t, b)
	t.Logf("noticed after %s", took)
	if took < routePing/2 { // the question that is not answered may be on its way already
		t.Errorf("noticed after %s", took)
	}
	l.set(false)
	sees(t, a, b.cfg.ServerName)
	sees(t, b, a.cfg.ServerName)
}

func TestARestartedServerIsToldAsGoneFirst(t *testing.T) {
	w := newWorld(t)
	a := w.start(w.config(newID(t)))
	id := newID(t)
	b := w.start(w.config(id, a.route()))
	sees(t, a, id)
	var mu sync.Mutex
	var told [][]string
	stop := a.WatchRoutes(func(connected []string) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, connected)
	})
	defer stop()
	w.stop(b)
	again := w.start(w.config(id, a.route()))
	sees(t, again, a.cfg.ServerName)
	sees(t, a, id)
	mu.Lock()
	defer mu.Unlock()
	if len(told) != 3 || len(told[0]) != 1 || len(told[1]) != 0 || len(told[2]) != 1 {
		t.Errorf("told: %v", told)
	}
}

func TestANodeThatRunsAlreadyIsRefused(t *testing.T) {
	w := newWorld(t)
	id, other := newID(t), newID(t)
	a := w.start(w.config(id))
	b := w.start(w.config(other, a.route()))
	sees(t, a, other)
	sees(t, b, id)
	for name, address := range map[string]string{"it reaches the other one": a.route(), "it reaches a third": b.route()} {
		copied := w.start(w.config(id, address))
		if err := copied.Join(within(t)); !errors.Is(err, ErrDuplicate) || !strings.Contains(err.Error(), id) {
			t.Errorf("%s: got %v", name, err)
		}
		w.stop(copied)
	}
	// Nobody else has noticed anything.
	sees(t, a, other)
	sees(t, b, id)
	if err := b.Join(within(t)); err != nil {
		t.Errorf("the third: %v", err)
	}
}

// names resolves as the test says.
type names struct {
	mu  sync.Mutex
	ips map[string][]string
}

func (n *names) LookupHost(_ context.Context, host string) ([]string, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if ips, ok := n.ips[host]; ok {
		return ips, nil
	}
	return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
}

func (n *names) set(host string, ips ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ips[host] = ips
}

// One name has the addresses of all: of somebody who is not there, of the server itself, and of another one. The DNS does
// not know it at first.
func TestANameWithManyAddresses(t *testing.T) {
	w := newWorld(t, conf.Zone{Name: "orders"}, conf.Zone{Name: "play", Open: true})
	cfg := w.config(newID(t))
	cfg.Cluster.Listen = "127.0.0.2:0"
	a := w.start(cfg)
	port := strconv.Itoa(a.RouteAddr().Port)
	dns := &names{ips: map[string][]string{}}
	cfg = w.config(newID(t), "locks.example:"+port)
	cfg.Cluster.Listen, cfg.Cluster.Resolver = "127.0.0.3:"+port, dns
	b := w.start(cfg)

	// Who is connected when the addresses change stays so.
	named, anyone := login(t, b, issue(t, w.auth, "orders", "u", conf.RoleUser), nil), login(t, b, user{}, nil)
	own, err := b.ConnectZone("orders")
	if err != nil {
		t.Fatal(err)
	}
	if b.OwnAddressListed() {
		t.Error("its own address is listed, before the name means anything")
	}
	dns.set("locks.example", "127.0.0.9", "127.0.0.3", "127.0.0.2")
	if err := b.Join(within(t)); err != nil {
		t.Fatal(err)
	}
	sees(t, a, b.cfg.ServerName)
	if !b.OwnAddressListed() {
		t.Error("its own address was not recognised")
	}
	named.allowed("PING\r\n"[:0])
	anyone.allowed("SUB _INBOX.anyone.x 1\r\n")
	if !own.IsConnected() || own.Stats().Reconnects != 0 {
		t.Error("the broker's own connection was lost")
	}
}

func TestNobodyIsReached(t *testing.T) {
	w := newWorld(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	free := l.Addr().String()
	l.Close()
	reachesNobody(t, w.start(w.config(newID(t), free)), free+": nobody listens there")
}

// Addresses that are told later are tried, and again after a restart without being told.
func TestKnownAddressesAreKept(t *testing.T) {
	w := newWorld(t)
	a := w.start(w.config(newID(t)))
	cfg := w.config(newID(t))
	cfg.Cluster.Data = t.TempDir()
	b := w.start(cfg)
	if err := b.SetRoutes(map[string][]string{a.cfg.ServerName: {"nowhere"}}); err == nil {
		t.Error("an address without a port is taken")
	}
	known := map[string][]string{a.cfg.ServerName: {a.route()}, b.cfg.ServerName: {b.route()}}
	if err := b.SetRoutes(known); err != nil {
		t.Fatal(err)
	}
	sees(t, a, b.cfg.ServerName)
	w.stop(b)
	sees(t, a)
	b = w.start(cfg)
	sees(t, b, a.cfg.ServerName)
	if err := os.WriteFile(filepath.Join(cfg.Cluster.Data, "routes.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.stop(b)
	b = w.start(cfg) // the file is damaged, and it is the others that know this one
	if err := b.SetRoutes(known); err != nil {
		t.Fatal(err)
	}
	sees(t, b, a.cfg.ServerName)
}

// A zone may come to one server before it comes to the other, and be the open one, which makes nats-server look at everything.
func TestAZoneThatComesLater(t *testing.T) {
	w := newWorld(t, conf.Zone{Name: "orders"})
	a := w.start(w.config(newID(t)))
	b := w.start(w.config(newID(t), a.route()))
	sees(t, a, b.cfg.ServerName)
	zones := []conf.Zone{{Name: "orders"}, {Name: "late", Open: true}}
	if err := a.ApplyZones(within(t), zones); err != nil {
		t.Fatal(err)
	}
	onA, err := a.ConnectZone("late")
	if err == nil {
		_, err = onA.Subscribe("x", func(m *nats.Msg) { m.Respond([]byte("late")) }) // who asks notices
	}
	if err == nil {
		err = onA.Flush()
	}
	if err != nil {
		t.Fatal(err)
	}
	// What A said to B has arrived when something later has.
	nodesA, err1 := a.ConnectNodes()
	nodesB, err2 := b.ConnectNodes()
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	if _, err := nodesA.Subscribe("ping", func(m *nats.Msg) { m.Respond(nil) }); err != nil {
		t.Fatal(err)
	}
	request(t, nodesB, "ping")
	for range 2 { // the same zones again change nothing
		if err := b.ApplyZones(within(t), zones); err != nil {
			t.Fatal(err)
		}
	}
	onB, err := b.ConnectZone("late")
	if err != nil {
		t.Fatal(err)
	}
	if got := string(request(t, onB, "x")); got != "late" {
		t.Errorf("got %q", got)
	}
	login(t, b, user{}, nil)
	for _, s := range []*Server{a, b} { // nothing was lost meanwhile
		if nodes := s.Routes(); len(nodes) != 1 {
			t.Errorf("connected with %v", nodes)
		}
	}
	request(t, nodesB, "ping")
}

// An address may lead back to the server itself without being one that it knows of.
func TestAServerThatReachesItself(t *testing.T) {
	w := newWorld(t)
	a := w.start(w.config(newID(t)))
	l := newLine(t, a.route())
	if err := a.SetRoutes(map[string][]string{newID(t): {l.addr}}); err != nil {
		t.Fatal(err)
	}
	for !a.OwnAddressListed() {
		a.routes.mu.Lock()
		changed, self := a.routes.changed, a.routes.self
		a.routes.mu.Unlock()
		if self {
			break
		}
		select {
		case <-changed:
		case <-time.After(patience):
			t.Fatal("it does not notice")
		}
	}
	reachesNobody(t, a, "own")
	if connected := a.Routes(); len(connected) != 0 {
		t.Errorf("connected with %v", connected)
	}
}
