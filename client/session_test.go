package client_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/opencluster/oclocks/broker"
	"github.com/opencluster/oclocks/client"
	"github.com/opencluster/oclocks/conf"
	"github.com/opencluster/oclocks/internal/brokertest"
	"github.com/opencluster/oclocks/internal/e2e/daemons"
	"github.com/opencluster/oclocks/subjects"
)

// After a broken connection the session comes back with the same identity: locks are kept, waiters keep their places.
func TestSessionComesBackAfterReconnect(t *testing.T) {
	d := brokertest.Start(t)
	p := brokertest.NewProxy(t, d.URL())
	c := through(t, p)
	other := connect(t, d)
	before, err := c.Session(within(t))
	must(t, err)
	if before.ID == "" || before.Secret == "" || before.Disconnect != "event" || before.Lease <= 0 {
		t.Fatalf("session: %+v", before)
	}
	held := lockOf(t, c.Mutex("held"))
	theirs := lockOf(t, other.Mutex("wanted"))
	got := make(chan error, 1)
	go func() {
		_, err := c.Mutex("wanted").Lock(within(t))
		got <- err
	}()
	waitFor(t, "the client to wait", waiting(t, other, "wanted", 1))
	ticket := queued(t, other, "wanted").Ticket
	p.Cut()
	waitFor(t, "the session to be back", func() bool {
		now, err := c.Session(within(t))
		must(t, err)
		if now.ID != before.ID {
			t.Fatalf("another session: %s, it was %s", now.ID, before.ID)
		}
		return now.Incarnation > before.Incarnation
	})
	if s := held.State(); s != client.Held && s != client.Suspect {
		t.Errorf("the lock is %v after the reconnect: %v", s, held.Err())
	}
	must(t, held.Renew(within(t)))
	if now := queued(t, other, "wanted").Ticket; now != ticket {
		t.Errorf("the waiter has ticket %d, it had %d", now, ticket)
	}
	must(t, theirs.Release(within(t)))
	must(t, <-got)
}

func queued(t testing.TB, c *client.Client, name string) subjects.Waiter {
	t.Helper()
	record, err := c.Query(within(t), name)
	must(t, err)
	if len(record.Queue) != 1 {
		t.Fatalf("the queue of %q is %+v", name, record.Queue)
	}
	return record.Queue[0]
}

// restartable is a daemon that can be stopped and started again at the same address.
type restartable struct {
	d        *broker.Daemon
	settings []brokertest.Option
}

func startRestartable(t *testing.T, opts ...brokertest.Option) *restartable {
	t.Helper()
	ports, err := daemons.FreePorts(1)
	must(t, err)
	r := &restartable{settings: append(opts, func(s *conf.Settings) { s.Listen = fmt.Sprint("127.0.0.1:", ports[0]) })}
	r.start(t)
	t.Cleanup(func() { r.stop(t) }) // before the clients' clean-up is registered, and so after it is done
	return r
}

func (r *restartable) stop(t *testing.T) {
	t.Helper()
	brokertest.Stop(t, r.d)
}

func (r *restartable) start(t *testing.T) {
	t.Helper()
	cfg := broker.Config{Settings: brokertest.Settings(r.settings...), Logger: brokertest.Logger(t)}
	d, err := broker.Start(context.Background(), cfg)
	must(t, err)
	r.d = d
}

// A broker with a journal is restarted: what was held is held, who waited waits, what is asked meanwhile is answered after.
func TestLocksSurviveARestart(t *testing.T) {
	r := startRestartable(t, brokertest.WithData(t.TempDir()))
	a, b := connect(t, r.d), connect(t, r.d)
	held := lockOf(t, a.Mutex("held"))
	wanted := lockOf(t, a.Mutex("wanted"))
	got := make(chan error, 1)
	go func() {
		_, err := b.Mutex("wanted").Lock(within(t))
		got <- err
	}()
	waitFor(t, "the client to wait", waiting(t, a, "wanted", 1))
	r.stop(t)
	released := make(chan error, 1)
	go func() { released <- wanted.Release(within(t)) }()
	r.start(t)
	must(t, <-released)
	must(t, <-got)
	must(t, held.Renew(within(t)))
	if held.State() != client.Held {
		t.Errorf("the lock is %v after the restart", held.State())
	}
}

// A broker without a journal is restarted: its sessions are gone. The client says so, and locks anew.
func TestLocksEndWithAForgetfulBroker(t *testing.T) {
	r := startRestartable(t)
	c := connect(t, r.d)
	m := c.Mutex("x")
	claim := lockOf(t, m)
	r.stop(t)
	r.start(t)
	lostWhy(t, claim)
	if err := m.Unlock(within(t)); !errors.Is(err, client.ErrLost) {
		t.Errorf("Unlock: %v, want ErrLost", err)
	}
	lockOf(t, m)
	must(t, m.Unlock(within(t)))
}

// Another process comes back as the session with its secret; who had it before is told.
func TestSecretTakesTheSessionOver(t *testing.T) {
	d := brokertest.Start(t)
	first := connect(t, d, client.WithLease(4*time.Second))
	session, err := first.Session(within(t))
	must(t, err)
	claim := lockOf(t, first.Mutex("x"))
	second := connect(t, d, client.WithSecret(session.Secret))
	again, err := second.Session(within(t))
	must(t, err)
	if again.ID != session.ID || again.Incarnation <= session.Incarnation {
		t.Fatalf("came back as %s (%d), want %s above %d", again.ID, again.Incarnation, session.ID, session.Incarnation)
	}
	if why := lostWhy(t, claim); why != subjects.WhySuperseded {
		t.Errorf("lost because %q", why)
	}
	record, err := second.Query(within(t), "x")
	must(t, err)
	if len(record.Holders) != 1 || record.Holders[0].Session != session.ID {
		t.Errorf("the session has lost its lock: %+v", record.Holders)
	}
	other := lockOf(t, second.Mutex("y"))
	if other.Key() == claim.Key() || other.Name() != "y" {
		t.Errorf("granted %s token %d, as the process before was", other.Name(), other.Token())
	}
	must(t, other.Release(within(t)))
}

func TestWrongSecretIsTold(t *testing.T) {
	d := brokertest.Start(t)
	c := connect(t, d, client.WithSecret("nonsense"))
	if _, err := c.Mutex("x").Lock(within(t)); !errors.Is(err, client.ErrDenied) {
		t.Fatalf("Lock: %v, want ErrDenied", err)
	}
}

func TestCloseReleasesEverything(t *testing.T) {
	d := brokertest.Start(t)
	c, other := connect(t, d), connect(t, d)
	claims := []*client.Claim{
		lockOf(t, c.Mutex("connection")), lockOf(t, c.Mutex("static", client.WithStatic(), client.WithTTL(0))),
	}
	blocker := lockOf(t, other.Mutex("blocked"))
	got := make(chan error, 2)
	for _, m := range []*client.Mutex{c.Mutex("blocked"), c.Mutex("blocked", client.WithStatic())} {
		go func() {
			_, err := m.Lock(within(t))
			got <- err
		}()
	}
	waitFor(t, "both to wait", waiting(t, other, "blocked", 2))
	must(t, c.Close(within(t)))
	for range 2 {
		if err := <-got; !errors.Is(err, client.ErrClosed) {
			t.Errorf("Lock: %v, want ErrClosed", err)
		}
	}
	for _, claim := range claims {
		ended(t, claim)
		if !errors.Is(claim.Err(), client.ErrReleased) {
			t.Errorf("the claim ended with %v", claim.Err())
		}
		if _, err := other.Mutex(claim.Name()).TryLock(within(t)); err != nil {
			t.Errorf("%s is not free: %v", claim.Name(), err)
		}
	}
	if !waiting(t, other, "blocked", 0)() {
		t.Error("a closed client waits still")
	}
	must(t, blocker.Release(within(t)))
	if _, err := c.Mutex("x").Lock(within(t)); !errors.Is(err, client.ErrClosed) {
		t.Errorf("Lock after Close: %v, want ErrClosed", err)
	}
	must(t, c.Close(within(t)))
}

// Close gives up with its context, and says so.
func TestCloseWithoutBroker(t *testing.T) {
	r := startRestartable(t)
	c, err := client.Connect(within(t), r.d.URL())
	must(t, err)
	claim := lockOf(t, c.Mutex("x"))
	r.stop(t)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if err := c.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Close: %v, want the deadline", err)
	}
	ended(t, claim)
}

// The sessions of idle clients are silent, and locks long after work as before.
func TestIdleSessionIsOpenedLazily(t *testing.T) {
	d := brokertest.Start(t)
	c, other := connect(t, d), connect(t, d)
	must(t, lockOf(t, c.Mutex("a")).Release(within(t)))
	list, err := other.List(within(t), &subjects.Request{})
	must(t, err)
	if len(list.Locks) != 0 {
		t.Errorf("left: %+v", list.Locks)
	}
}
