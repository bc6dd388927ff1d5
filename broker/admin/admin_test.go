package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
	"go.uber.org/goleak"

	"github.com/opencluster/oclocks/broker/control"
	"github.com/opencluster/oclocks/broker/natsd"
	"github.com/opencluster/oclocks/bucket/chain"
	"github.com/opencluster/oclocks/conf"
	"github.com/opencluster/oclocks/conf/shared"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// brain is a control plane of one node without an arbiter: commands are applied at once.
type brain struct {
	mu     sync.Mutex
	fsm    *shared.FSM
	broken error
}

func (b *brain) Change(_ context.Context, c shared.Command) (shared.Result, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.broken != nil {
		return shared.Result{}, b.broken
	}
	res, err := b.fsm.Apply(b.fsm.State().Change+1, c.Encode())
	if err != nil {
		return shared.Result{}, err
	}
	return res.(shared.Result), nil
}

func (b *brain) Read(context.Context) (*shared.State, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.fsm.State(), b.broken
}

func (b *brain) Cluster(context.Context) ([]control.Status, error) {
	return []control.Status{{Number: 1, Name: "one", Copies: json.RawMessage(`[{}]`)}}, nil
}

// stage is a data directory with a server that answers tools.
type stage struct {
	t      *testing.T
	data   string
	auth   *conf.Auth
	nats   *natsd.Server
	brain  *brain
	server *Server
	log    *logText
}

// logText is what a server has logged, while it goes on.
type logText struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{t: t, data: t.TempDir(), brain: &brain{fsm: shared.New()}, log: &logText{}}
	var err error
	if s.auth, err = conf.OpenAuth(s.data); err != nil {
		t.Fatal(err)
	}
	s.nats, err = natsd.Start(t.Context(), natsd.Config{ServerName: "one", Listen: "127.0.0.1:0", Auth: s.auth,
		Zones: []conf.Zone{{Name: "shop"}}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.nats.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	conn, err := s.nats.ConnectNodes()
	if err != nil {
		t.Fatal(err)
	}
	s.found()
	s.server, err = Serve(t.Context(), Config{
		Conn: conn, Control: s.brain, Data: s.data, Logger: slog.New(slog.NewTextHandler(s.log, nil)),
		Running: conf.Running{PID: 1, URL: s.nats.ClientURL(), Node: "one", Cluster: "test", Clustered: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.server.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// found founds a cluster of two nodes with one zone.
func (s *stage) found() {
	s.t.Helper()
	commands := []shared.Command{{Found: &shared.Found{Cluster: "test", Buckets: 4, Zones: []conf.Zone{{Name: "shop"}}, Keys: s.auth.Export()}}}
	for i, name := range []string{"one", "two"} {
		commands = append(commands, shared.Command{Register: &shared.Register{ID: strings.Repeat(string(rune('a'+i)), 26), Raft: uint64(10 + i), Name: name}})
	}
	for _, c := range commands {
		if r, err := s.brain.Change(s.t.Context(), c); err != nil || r.Err() != nil {
			s.t.Fatal(err, r.Err())
		}
	}
}

func (s *stage) dial() *Client {
	s.t.Helper()
	c, err := Dial(s.data, "")
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(c.Close)
	return c
}

func TestChange(t *testing.T) {
	s := newStage(t)
	c := s.dial()
	name := "primus"
	if _, err := c.Change(t.Context(), shared.Command{Node: &shared.NodeEdit{Number: 1, Name: &name}}); err != nil {
		t.Fatal(err)
	}
	state, err := c.State(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if n, err := state.Node("primus"); err != nil || n.Number != 1 || state.Cluster != "test" || state.Buckets != 4 {
		t.Errorf("got %+v, %v", state, err)
	}
	if _, err := state.Node("three"); !errors.Is(err, shared.ErrNotFound) || !strings.Contains(err.Error(), "2 (two)") {
		t.Errorf("an unknown node: %v", err)
	}
	if log := s.log.String(); !strings.Contains(log, "primus") || !strings.Contains(log, "by="+whoami()) || !strings.Contains(log, "key="+c.key) {
		t.Errorf("the log does not tell who changed what: %s", log)
	}

	if _, err := c.Change(t.Context(), shared.Command{Lock: &shared.Lock{}}); err != nil {
		t.Fatal(err)
	}
	_, err = c.Change(t.Context(), shared.Command{Set: &shared.Set{Settings: map[string]string{"max_lease": "2m"}}})
	if !errors.Is(err, shared.ErrLocked) {
		t.Errorf("a locked configuration: %v", err)
	}
	_, err = c.Change(t.Context(), shared.Command{Node: &shared.NodeEdit{Number: 9}})
	if err == nil {
		t.Error("a node that is not there was changed")
	}
}

func TestRequestsThatAreRefused(t *testing.T) {
	s := newStage(t)
	c := s.dial()
	keys, err := conf.NewZoneKeys()
	if err != nil {
		t.Fatal(err)
	}
	for name, r := range map[string]request{
		"no command":               {},
		"keys from outside":        {Command: &shared.Command{Zone: &shared.ZonePut{Zone: conf.Zone{Name: "x"}, Keys: &keys}}},
		"a long name of who asks":  {By: strings.Repeat("x", maxBy+1), Command: &shared.Command{Lock: &shared.Lock{}}},
		"an operation that is not": {},
	} {
		t.Run(name, func(t *testing.T) {
			op := opChange
			if strings.HasPrefix(name, "an operation") {
				op = "nonsense"
			}
			text, err := json.Marshal(r)
			if err != nil {
				t.Fatal(err)
			}
			a := s.server.answer(t.Context(), op, c.key, text)
			if a.Kind != "request" || a.Result != nil || !errors.Is(a.err(), ErrRequest) {
				t.Errorf("got %+v", a)
			}
		})
	}
	for _, text := range []string{``, `[]`, `{"nonsense":1}`, `{} {}`, `{"command":{"op":"lock"}}`} {
		if a := s.server.answer(t.Context(), opChange, c.key, []byte(text)); a.Kind != "request" {
			t.Errorf("%s: got %+v", text, a)
		}
	}
	if s.brain.fsm.State().Locked {
		t.Error("something was changed")
	}
	if strings.Contains(s.log.String(), keys.Account) {
		t.Error("a seed is in the log")
	}
}

func TestZonesAndUsers(t *testing.T) {
	s := newStage(t)
	c := s.dial()
	if _, err := c.Change(t.Context(), shared.Command{Zone: &shared.ZonePut{Zone: conf.Zone{Name: "billing", LockEvents: true}}}); err != nil {
		t.Fatal(err)
	}
	keys := s.brain.fsm.State().Keys["billing"]
	if err := keys.Validate(); err != nil {
		t.Fatalf("the new zone has no keys: %v", err)
	}
	// More settings, and the same keys.
	if _, err := c.Change(t.Context(), shared.Command{Zone: &shared.ZonePut{Zone: conf.Zone{Name: "billing"}}}); err != nil {
		t.Fatal(err)
	}
	if s.brain.fsm.State().Keys["billing"].Account != keys.Account {
		t.Error("a zone that is there got other keys")
	}
	put := make([]conf.User, 0, usersPage+5)
	now := time.Now()
	for i := range cap(put) {
		pair, err := nkeys.CreateUser()
		if err != nil {
			t.Fatal(err)
		}
		key, err := pair.PublicKey()
		if err != nil {
			t.Fatal(err)
		}
		put = append(put, conf.User{Key: key, Name: fmt.Sprintf("u%d", i), Zone: "billing", Role: conf.RoleUser, Issued: now.Add(time.Duration(i) * time.Second)})
	}
	if _, err := c.Change(t.Context(), shared.Command{Users: &shared.Users{Zone: "billing", Put: put}}); err != nil {
		t.Fatal(err)
	}
	got, err := c.Users(t.Context(), "billing")
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != len(put) || got[0].Key != put[0].Key || got[len(got)-1].Key != put[len(put)-1].Key {
		t.Errorf("got %d users, want %d in the order of their issue", len(got), len(put))
	}
	if _, err := c.Users(t.Context(), "nowhere"); err == nil || !strings.Contains(err.Error(), "nowhere") {
		t.Errorf("a zone that is not there: %v", err)
	}
	state, err := c.State(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(state)
	if err != nil {
		t.Fatal(err)
	}
	for _, seed := range []string{keys.Account, keys.Open, keys.Roles[conf.RoleUser]} {
		if bytes.Contains(text, []byte(seed)) || strings.Contains(s.log.String(), seed) {
			t.Error("a seed was told")
		}
	}
	if z, ok := state.Zone("billing"); !ok || z.Users != len(put) || !strings.HasPrefix(z.Account, "A") {
		t.Errorf("got zone %+v", z)
	}
}

func TestViewsStatusAlerts(t *testing.T) {
	s := newStage(t)
	c := s.dial()
	one := s.brain.fsm.State().Node(1).Member()
	change := shared.BucketView{Bucket: 2, View: chain.View{Epoch: 1, InSync: 1, Chain: []chain.Member{one}}}
	if r, err := s.brain.Change(t.Context(), shared.Command{Views: &shared.ViewChange{Views: []shared.BucketView{change}}}); err != nil || r.Err() != nil {
		t.Fatal(err, r.Err())
	}
	views, err := c.Views(t.Context())
	if err != nil || len(views) != 4 || views[2].View.Primary() != one || views[1].View.Epoch != 0 {
		t.Errorf("got %v, %v", views, err)
	}
	status, err := c.Status(t.Context())
	if err != nil || status.Node(1) == nil || status.Node(1).Copies != nil || status.Node(2) != nil {
		t.Errorf("got %+v, %v", status, err)
	}
	for i := range alertsKept + 1 {
		s.server.Alert(control.Alert{Node: 1, Text: fmt.Sprint(i)})
	}
	alerts, err := c.Alerts(t.Context())
	if err != nil || len(alerts) != alertsKept || alerts[0].Text != "1" || alerts[alertsKept-1].Text != fmt.Sprint(alertsKept) {
		t.Errorf("got %d alerts, %v", len(alerts), err)
	}
}

func TestViewsComeInPages(t *testing.T) {
	state := &shared.State{Views: make([]chain.View, 2*viewsPage+1)}
	first, last := viewsOf(state, 0), viewsOf(state, 2*viewsPage)
	if len(first.Views) != viewsPage || first.Next != viewsPage || len(last.Views) != 1 || last.Next != 0 {
		t.Errorf("got %d next %d, and %d next %d", len(first.Views), first.Next, len(last.Views), last.Next)
	}
	if beyond := viewsOf(state, 1<<20); len(beyond.Views) != 0 || beyond.Next != 0 {
		t.Errorf("got %d", len(beyond.Views))
	}
}

func TestAClusterThatCannot(t *testing.T) {
	s := newStage(t)
	c := s.dial()
	s.brain.mu.Lock()
	s.brain.broken = control.ErrUnavailable
	s.brain.mu.Unlock()
	if _, err := c.State(t.Context()); !errors.Is(err, ErrUnavailable) {
		t.Errorf("state: %v", err)
	}
	if _, err := c.Change(t.Context(), shared.Command{Lock: &shared.Lock{}}); !errors.Is(err, ErrUnavailable) {
		t.Errorf("change: %v", err)
	}
}

// TestAToolMayNothingElse: the credentials of a tool are good for its own requests and answers.
func TestAToolMayNothingElse(t *testing.T) {
	s := newStage(t)
	c, other := s.dial(), s.dial()
	nodes, err := s.nats.ConnectNodes()
	if err != nil {
		t.Fatal(err)
	}
	heard := make(chan *nats.Msg, 8)
	if _, err := nodes.ChanSubscribe("raft.1", heard); err != nil {
		t.Fatal(err)
	}
	if err := nodes.Flush(); err != nil {
		t.Fatal(err)
	}
	denied := make(chan error, 8)
	c.conn.SetErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { denied <- err })
	publish := func(subject, reply string) {
		t.Helper()
		msg := &nats.Msg{Subject: subject, Reply: reply, Data: []byte(`{"command":{"lock":{}}}`)}
		if err := errors.Join(c.conn.PublishMsg(msg), c.conn.Flush()); err != nil {
			t.Fatal(err)
		}
	}
	for _, target := range []string{"raft.1", "leader.register", subject(opChange, other.key)} {
		publish(target, "")
		select {
		case err := <-denied:
			if !errors.Is(err, nats.ErrPermissionViolation) {
				t.Errorf("%s: %v", target, err)
			}
		case <-time.After(5 * time.Second):
			t.Errorf("%s was not refused", target)
		}
	}
	// A node answers only to who asks: through it, a tool reaches nobody else either.
	for _, reply := range []string{"raft.1", conf.InboxPrefix(other.key) + ".x", ""} {
		publish(subject(opChange, c.key), reply)
	}
	if state, err := c.State(t.Context()); err != nil || state.Locked {
		t.Errorf("a request that cannot be answered was carried out: %v, %v", state, err)
	}
	select {
	case m := <-heard:
		t.Errorf("a node was told %q", m.Data)
	default:
	}
}

func TestDialTellsWhatIsWrong(t *testing.T) {
	s := newStage(t)
	empty := t.TempDir()
	if _, err := Dial(empty, ""); err == nil || !strings.Contains(err.Error(), "authentication file") {
		t.Errorf("no keys: %v", err)
	}
	if _, err := conf.OpenAuth(empty); err != nil {
		t.Fatal(err)
	}
	if _, err := Dial(empty, ""); !errors.Is(err, ErrNoDaemon) || !strings.Contains(err.Error(), empty) {
		t.Errorf("no daemon: %v", err)
	}
	if _, err := Dial(empty, s.nats.ClientURL()); !errors.Is(err, ErrNoDaemon) || !strings.Contains(err.Error(), "another cluster") {
		t.Errorf("another cluster: %v", err)
	}
	if r, err := conf.ReadRunning(s.data); err != nil || r.Serving {
		t.Errorf("got %+v, %v", r, err)
	}
	if err := s.server.Serving(); err != nil {
		t.Fatal(err)
	}
	if r, err := conf.ReadRunning(s.data); err != nil || !r.Serving {
		t.Errorf("got %+v, %v", r, err)
	}
	if err := s.server.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.server.Serving(); err != nil {
		t.Fatal(err)
	}
	if _, err := Dial(s.data, ""); !errors.Is(err, ErrNoDaemon) {
		t.Errorf("after the stop: %v", err)
	}
	c, err := Dial(s.data, s.nats.ClientURL())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.State(t.Context()); !errors.Is(err, ErrUnavailable) {
		t.Errorf("nobody behind the server: %v", err)
	}
}
