package natsd

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/opencluster/oclocks/conf"
)

// world is what the nodes of one cluster share.
type world struct {
	t         *testing.T
	auth      *conf.Auth
	authority *conf.Authority
	zones     []conf.Zone
}

func newWorld(t *testing.T, zones ...conf.Zone) *world {
	t.Helper()
	auth, err := conf.NewAuth()
	if err != nil {
		t.Fatal(err)
	}
	authority, err := conf.NewAuthority("test")
	if err != nil {
		t.Fatal(err)
	}
	return &world{t, auth, authority, zones}
}

func newID(t *testing.T) string {
	t.Helper()
	id, err := conf.NodeID("")
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// config is that of a node that is told to join these addresses.
func (w *world) config(id string, join ...string) Config {
	w.t.Helper()
	identity, err := conf.NewIdentity(w.authority, id)
	if err != nil {
		w.t.Fatal(err)
	}
	return Config{
		ServerName: id, Listen: "127.0.0.1:0", Auth: w.auth, Zones: w.zones, Logger: testLogger(w.t, id),
		Cluster: &Cluster{Name: "test", Listen: "127.0.0.1:0", Identity: identity, Join: join},
	}
}

// testLogger writes warnings into the test's output.
func testLogger(t *testing.T, id string) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn})).With("node", id[:4])
}

func (w *world) start(cfg Config) *Server {
	w.t.Helper()
	s, err := Start(w.t.Context(), cfg)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { w.stop(s) })
	return s
}

func (w *world) stop(s *Server) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := s.Stop(ctx); err != nil {
		w.t.Error(err)
	}
}

func (s *Server) route() string { return s.RouteAddr().String() }

// sees waits until exactly these servers are connected with s.
func sees(t *testing.T, s *Server, names ...string) {
	t.Helper()
	slices.Sort(names)
	seen := make(chan struct{}, 1)
	stop := s.WatchRoutes(func(connected []string) {
		if slices.Equal(connected, names) {
			signal(seen)
		}
	})
	defer stop()
	select {
	case <-seen:
	case <-time.After(patience):
		t.Fatalf("%s sees %v, want %v", s.cfg.ServerName, s.Routes(), names)
	}
}

func TestThreeServersAreOneCluster(t *testing.T) {
	w := newWorld(t, conf.Zone{Name: "orders"})
	ids := []string{newID(t), newID(t), newID(t)}
	a := w.start(w.config(ids[0]))
	b := w.start(w.config(ids[1], a.route()))
	c := w.start(w.config(ids[2], a.route())) // learns of b by gossip
	for i, s := range []*Server{a, b, c} {
		others := slices.Delete(slices.Clone(ids), i, i+1)
		sees(t, s, others...)
	}
	if err := c.Join(within(t)); err != nil {
		t.Fatal(err)
	}
	for _, connect := range []func(*Server) (*nats.Conn, error){
		func(s *Server) (*nats.Conn, error) { return s.ConnectNodes() },
		func(s *Server) (*nats.Conn, error) { return s.ConnectZone("orders") },
	} {
		nc1, err1 := connect(b)
		nc2, err2 := connect(c)
		if err := errors.Join(err1, err2); err != nil {
			t.Fatal(err)
		}
		if _, err := nc1.Subscribe("x", func(m *nats.Msg) { m.Respond([]byte("here")) }); err != nil { // who asks notices
			t.Fatal(err)
		}
		if err := nc1.Flush(); err != nil {
			t.Fatal(err)
		}
		answer := request(t, nc2, "x")
		if string(answer) != "here" {
			t.Errorf("got %q", answer)
		}
	}
}

// request asks until somebody is known who answers: interest takes a moment to reach the other servers.
func request(t *testing.T, nc *nats.Conn, subject string) []byte {
	t.Helper()
	ctx := within(t)
	for {
		m, err := nc.RequestWithContext(ctx, subject, nil)
		if err == nil {
			return m.Data
		}
		if !errors.Is(err, nats.ErrNoResponders) {
			t.Fatal(err)
		}
		select {
		case <-ctx.Done():
			t.Fatal("nobody answers")
		case <-time.After(time.Millisecond):
		}
	}
}

func TestAnotherClusterIsRefused(t *testing.T) {
	w, foreign := newWorld(t), newWorld(t)
	a := w.start(w.config(newID(t)))
	b := foreign.start(foreign.config(newID(t), a.route()))
	reachesNobody(t, b, "another cluster")
	if n := a.Routes(); len(n) != 0 {
		t.Errorf("connected with %v", n)
	}
}

// reachesNobody says that a server joins nobody, and that it says why: at once, or when there was time to find out.
func reachesNobody(t *testing.T, s *Server, why string) {
	t.Helper()
	for wait := 50 * time.Millisecond; ; wait *= 2 {
		ctx, cancel := context.WithTimeout(t.Context(), wait)
		err := s.Join(ctx)
		cancel()
		if errors.Is(err, ErrNobody) && strings.Contains(err.Error(), why) {
			return
		}
		if !errors.Is(err, ErrNobody) || wait > patience {
			t.Fatalf("got %v, want that %q", err, why)
		}
	}
}
