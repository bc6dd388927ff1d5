package client_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/opencluster/oclocks/broker"
	"github.com/opencluster/oclocks/client"
	"github.com/opencluster/oclocks/conf"
	"github.com/opencluster/oclocks/internal/brokertest"
	"github.com/opencluster/oclocks/subjects"
)

func TestRawOperations(t *testing.T) {
	d := brokertest.Start(t)
	c := connect(t, d)
	ctx := within(t)
	g, err := c.Acquire(ctx, &subjects.Request{Name: "raw", Holder: "me", TTL: time.Minute, Has: subjects.HasTTL})
	must(t, err)
	if g.Token == 0 || g.Key == 0 || g.TTL != time.Minute {
		t.Fatalf("grant %+v", g)
	}
	hour := time.Hour
	renewed, err := c.Renew(ctx, "raw", g.Key, &hour, []byte(`{"a":1}`))
	must(t, err)
	if renewed.TTL != time.Hour {
		t.Errorf("renewed for %v", renewed.TTL)
	}
	checked, err := c.Check(ctx, "raw", g.Token)
	must(t, err)
	if !checked.Current || checked.Newest != g.Token {
		t.Errorf("check %+v", checked)
	}
	record, err := c.Query(ctx, "raw")
	must(t, err)
	if !record.Held || record.Holders[0].Holder != "me" || string(record.Holders[0].Data) != `{"a":1}` {
		t.Errorf("record %+v", record)
	}
	if _, err := c.Acquire(ctx, &subjects.Request{Name: "raw"}); !errors.Is(err, client.ErrHeld) {
		t.Errorf("a second acquire: %v", err)
	}
	wait := &subjects.Request{Name: "raw", Wait: 20 * time.Millisecond, Has: subjects.HasWait}
	var refusal *subjects.Refusal
	if _, err := c.Acquire(ctx, wait); !errors.Is(err, client.ErrTimeout) || !errors.As(err, &refusal) || refusal.Queue != 1 {
		t.Errorf("a wait that is over: %v", err)
	}
	if _, err := c.Release(ctx, "raw", g.Key+1, ""); !errors.Is(err, client.ErrDenied) {
		t.Errorf("release with a wrong key: %v", err)
	}
	released, err := c.Release(ctx, "raw", g.Key, "done")
	must(t, err)
	if released.Token != g.Token {
		t.Errorf("released %+v", released)
	}
	if _, err := c.Release(ctx, "raw", g.Key, ""); !errors.Is(err, client.ErrNotHeld) {
		t.Errorf("a second release: %v", err)
	}
}

// An acquire of a tool that is given up while it waits leaves the queue.
func TestRawAcquireIsCancelledWithItsContext(t *testing.T) {
	d := brokertest.Start(t)
	c, other := connect(t, d), connect(t, d)
	lockOf(t, other.Mutex("x"))
	ctx, cancel := context.WithCancel(within(t))
	got := make(chan error, 1)
	go func() {
		_, err := c.Acquire(ctx, &subjects.Request{Name: "x", Wait: time.Hour, Has: subjects.HasWait})
		got <- err
	}()
	waitFor(t, "it to wait", waiting(t, other, "x", 1))
	cancel()
	if err := <-got; !errors.Is(err, context.Canceled) {
		t.Errorf("Acquire: %v", err)
	}
	waitFor(t, "it to leave", waiting(t, other, "x", 0))
}

func TestSessionsByHand(t *testing.T) {
	d := brokertest.Start(t)
	c := connect(t, d)
	ctx := within(t)
	opened, err := c.OpenSession(ctx, &subjects.Request{TTL: 5 * time.Second, Has: subjects.HasTTL, Holder: "by hand"})
	must(t, err)
	g, err := c.Acquire(ctx, &subjects.Request{Name: "x", Session: opened.Session, Number: 1})
	must(t, err)
	if g.Lease != 5*time.Second {
		t.Errorf("lease %v", g.Lease)
	}
	kept, err := c.KeepSession(ctx, opened.Session, 1)
	must(t, err)
	if kept.Count != 1 || kept.Hash != subjects.TokenHash(g.Token) {
		t.Errorf("kept %+v", kept)
	}
	queue := &subjects.Request{Name: "x", Session: opened.Session, Number: 2, Wait: time.Hour, Has: subjects.HasWait}
	ticket, err := c.Enqueue(ctx, queue)
	must(t, err)
	if ticket.Place != 1 || ticket.Ticket <= g.Ticket {
		t.Errorf("ticket %+v", ticket)
	}
	cancelled, err := c.Cancel(ctx, "x", opened.Session, "2")
	must(t, err)
	if cancelled.Was != "waiting" {
		t.Errorf("cancelled %+v", cancelled)
	}
	closed, err := c.CloseSession(ctx, opened.Session)
	must(t, err)
	if closed.Released != 1 {
		t.Errorf("closed %+v", closed)
	}
	if _, err := c.KeepSession(ctx, opened.Session, 2); !errors.Is(err, client.ErrSession) {
		t.Errorf("keep-alive of a closed session: %v", err)
	}
}

func TestListGivesEverything(t *testing.T) {
	d := brokertest.Start(t)
	c := connect(t, d)
	want := map[string]bool{}
	for i := range 25 {
		name := fmt.Sprintf("list/%02d", i)
		lockOf(t, c.Mutex(name))
		want[name] = true
	}
	lockOf(t, c.Mutex("other"))
	for record, err := range c.ListAll(within(t), &subjects.Request{Prefix: "list/", Limit: 4}) {
		must(t, err)
		if !want[record.Name] {
			t.Errorf("listed %q, or twice", record.Name)
		}
		delete(want, record.Name)
	}
	if len(want) > 0 {
		t.Errorf("not listed: %v", want)
	}
	for _, err := range c.ListAll(within(t), &subjects.Request{Limit: 4, After: "nonsense"}) {
		if !errors.Is(err, client.ErrBadRequest) {
			t.Errorf("a page mark that is none: %v", err)
		}
	}
}

func TestBrokerIsDescribed(t *testing.T) {
	d := brokertest.Start(t)
	c := connect(t, d)
	ctx := within(t)
	info, err := c.Info(ctx)
	must(t, err)
	if info.Protocol != 1 || info.User != c.User() || info.User != subjects.Anyone || info.Node != d.Node() {
		t.Errorf("info %+v, user %q", info, c.User())
	}
	servers, err := c.Servers(ctx, "")
	must(t, err)
	if len(servers.Servers) != 1 || servers.Servers[0].Node != d.Node() {
		t.Errorf("servers %+v", servers)
	}
	pong, err := c.Ping(ctx, d.Node())
	must(t, err)
	if pong.Node != d.Node() || pong.RTT <= 0 {
		t.Errorf("pong %+v", pong)
	}
	if _, err := c.Ping(ctx, "nobody"); !errors.Is(err, client.ErrBadRequest) {
		t.Errorf("ping of nobody: %v", err)
	}
}

// zones is a daemon with users; login gives the options with which one of them connects.
func zones(t *testing.T) *broker.Daemon {
	return brokertest.Start(t, brokertest.WithZones(conf.Zone{Name: "red", LockEvents: true}, conf.Zone{Name: "blue"}))
}

func login(t *testing.T, d *broker.Daemon, zone string, role conf.Role) (opt client.Option, file, user string) {
	t.Helper()
	creds, user, err := d.Auth().IssueUser(zone, string(role), role, 0)
	must(t, err)
	file = filepath.Join(t.TempDir(), "user.creds")
	must(t, os.WriteFile(file, creds, 0o600))
	return client.WithCredentials(file), file, user
}

// Users of a zone are known by their nkey, and see nothing of another zone.
func TestUsersOfZones(t *testing.T) {
	d := zones(t)
	red, file, user := login(t, d, "red", conf.RoleUser)
	blue, _, _ := login(t, d, "blue", conf.RoleUser)
	r, b := connect(t, d, red), connect(t, d, blue)
	if r.User() != user {
		t.Errorf("user %q, it is %q", r.User(), user)
	}
	lockOf(t, r.Mutex("x"))
	lockOf(t, b.Mutex("x"))
	t.Setenv("NATS_CREDS", file)
	t.Setenv("NATS_URL", d.URL())
	if byEnv := connectTo(t, ""); byEnv.User() != user {
		t.Errorf("by the environment: user %q", byEnv.User())
	}
	nc, err := nats.Connect(d.URL(), nats.UserCredentials(file))
	must(t, err)
	t.Cleanup(nc.Close)
	before := nc.NumSubscriptions()
	own := connectTo(t, "", client.WithConn(nc))
	if own.User() != user {
		t.Errorf("over a connection of our own: user %q", own.User())
	}
	must(t, lockOf(t, own.Mutex("y")).Release(within(t)))
	must(t, own.Close(within(t)))
	if nc.IsClosed() || nc.NumSubscriptions() != before {
		t.Errorf("the caller's connection: closed %v, %d subscriptions, there were %d", nc.IsClosed(), nc.NumSubscriptions(), before)
	}
}

func connectTo(t *testing.T, url string, opts ...client.Option) *client.Client {
	t.Helper()
	c, err := client.Connect(within(t), url, opts...)
	must(t, err)
	t.Cleanup(func() { must(t, c.Close(context.Background())) })
	return c
}

// What a role may not do is told at once, though the NATS server drops the message.
func TestRolesAreDenied(t *testing.T) {
	d := zones(t)
	viewer, _, _ := login(t, d, "red", conf.RoleViewer)
	user, _, _ := login(t, d, "red", conf.RoleUser)
	v, u := connect(t, d, viewer), connect(t, d, user)
	claim := lockOf(t, u.Mutex("x"))
	if _, err := v.Query(within(t), "x"); err != nil {
		t.Errorf("a viewer's query: %v", err)
	}
	if _, err := v.Mutex("x").Lock(within(t)); !errors.Is(err, client.ErrDenied) {
		t.Errorf("a viewer's Lock: %v, want ErrDenied", err)
	}
	if _, err := v.Acquire(within(t), &subjects.Request{Name: "y"}); !errors.Is(err, client.ErrDenied) {
		t.Errorf("a viewer's acquire: %v, want ErrDenied", err)
	}
	if _, err := u.Force(within(t), "x", claim.Token(), "no", true); !errors.Is(err, client.ErrDenied) {
		t.Errorf("a user's force: %v, want ErrDenied", err)
	}
}

func TestWatch(t *testing.T) {
	d := zones(t)
	user, _, _ := login(t, d, "red", conf.RoleUser)
	c := connect(t, d, user)
	w, err := c.Watch(within(t), client.WatchOptions{Lock: true, Session: true})
	must(t, err)
	defer w.Stop()
	claim := lockOf(t, c.Mutex("x"))
	must(t, claim.Release(within(t)))
	var types []string
	for e, err := range w.Events(within(t)) {
		must(t, err)
		if e.Lock == nil || e.Lock.Name != "x" || e.Lock.Token != claim.Token() {
			t.Errorf("event %+v", e)
			continue
		}
		if types = append(types, e.Lock.Type); len(types) == 2 {
			break
		}
	}
	if len(types) != 2 || types[0] != "granted" || types[1] != "released" {
		t.Errorf("events %v", types)
	}
	if n := w.Dropped(); n != 0 {
		t.Errorf("%d dropped", n)
	}
	w.Stop()
	if _, err := w.Next(within(t)); !errors.Is(err, client.ErrClosed) {
		t.Errorf("Next after Stop: %v", err)
	}
}

func TestConnectFailsSoon(t *testing.T) {
	if _, err := client.Connect(within(t), "nats://127.0.0.1:1"); !errors.Is(err, client.ErrUnavailable) {
		t.Errorf("nobody there: %v, want ErrUnavailable", err)
	}
	if _, err := client.Connect(within(t), "", client.WithContext("there-is-no-such-context")); err == nil {
		t.Error("a context that does not exist is no error")
	}
}
