package client_test

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/opencluster/oclocks/client"
	"github.com/opencluster/oclocks/internal/brokertest"
	"github.com/opencluster/oclocks/subjects"
)

// The primary of held and wanted locks dies; the clients are connected to other nodes. Whether somebody tells of it or not,
// holds stay held, who waits is granted in turn, and what the dead node has swallowed is answered. How long that takes is told
// here and measured by `make bench ARGS='--only failover'`.
func TestPrimaryDies(t *testing.T) {
	for _, quiet := range []bool{false, true} {
		t.Run(fmt.Sprintf("quiet=%v", quiet), func(t *testing.T) {
			f := startFakeCluster(t)
			f.quiet = quiet
			victim := f.nodes[0]
			a, b := f.connect(f.nodes[1]), f.connect(f.nodes[2])
			name, busy := f.nameAt(victim, "wanted"), f.nameAt(victim, "busy")
			held := lockOf(t, a.Mutex(name))
			static := lockOf(t, a.Mutex(f.nameAt(victim, "static"), client.WithStatic(), client.WithTTL(fakeLease)))
			got := make(chan error, 1)
			go func() {
				_, err := b.Mutex(name).Lock(within(t))
				got <- err
			}()
			waitFor(t, "the client to wait", waiting(t, b, name, 1))
			gap := longestPause(t, b, busy, func() { f.kill(victim) }, f.delay+fakeLease/2)
			t.Logf("take-over after %v, longest pause %v", f.delay, gap)
			for _, claim := range []*client.Claim{held, static} {
				if s := claim.State(); s != client.Held && s != client.Suspect {
					t.Errorf("%s is %v: %v", claim.Name(), s, claim.Err())
				}
			}
			must(t, held.Renew(within(t)))
			must(t, held.Release(within(t)))
			must(t, <-got)
			must(t, static.Release(within(t)))
		})
	}
}

// longestPause locks and unlocks a name all the time, and tells the longest time that one pair took. In the midst something
// happens.
func longestPause(t *testing.T, c *client.Client, name string, happens func(), d time.Duration) (longest time.Duration) {
	t.Helper()
	m := c.Mutex(name)
	happened := make(chan struct{})
	time.AfterFunc(20*time.Millisecond, func() {
		defer close(happened)
		happens()
	})
	defer func() { <-happened }()
	for end := time.Now().Add(d); time.Now().Before(end); {
		began := time.Now()
		lockOf(t, m)
		must(t, m.Unlock(within(t)))
		longest = max(longest, time.Since(began))
	}
	return longest
}

// Many clients at work on few locks while a node dies: nobody fails, nobody holds a lock together with somebody else, the
// tokens rise.
func TestWorkGoesOnThroughADeath(t *testing.T) {
	f := startFakeCluster(t)
	names := []string{f.nameAt(f.nodes[0], "x"), f.nameAt(f.nodes[1], "y"), f.nameAt(f.nodes[2], "z")}
	type guarded struct {
		inside atomic.Int32
		newest atomic.Uint64
	}
	locks := make([]guarded, len(names))
	const enough = 800 // locks, so that a part of them is taken before, while, and after the others take over
	var workers sync.WaitGroup
	var done atomic.Int64
	for w := range 12 {
		c := f.connect(f.nodes[w%3], client.WithLease(fakeLease))
		workers.Go(func() {
			for i := w; done.Load() < enough; i++ {
				lock := &locks[i%len(names)]
				claim, err := c.Mutex(names[i%len(names)]).Lock(within(t))
				if err != nil {
					t.Error(err)
					return
				}
				if lock.inside.Add(1) != 1 {
					t.Errorf("%s has two holders", claim.Name())
				}
				if before := lock.newest.Swap(claim.Token()); before >= claim.Token() {
					t.Errorf("%s: token %d after %d", claim.Name(), claim.Token(), before)
				}
				lock.inside.Add(-1)
				if err := claim.Release(within(t)); err != nil {
					t.Error(err)
				}
				done.Add(1)
			}
		})
	}
	waitFor(t, "some work to be done", func() bool { return done.Load() >= enough/4 || t.Failed() })
	f.kill(f.nodes[0])
	workers.Wait()
}

// The node dies that the client is connected to: it goes to another one at once, and the session comes back there with the
// same identity; what it holds and waits for is as it was. What is with other nodes hardly notices.
func TestConnectedNodeDies(t *testing.T) {
	f := startFakeCluster(t)
	c, other := f.connect(f.nodes[0]), f.connect(f.nodes[1])
	before, err := c.Session(within(t))
	must(t, err)
	here, there := lockOf(t, c.Mutex(f.nameAt(f.nodes[0], "here"))), lockOf(t, c.Mutex(f.nameAt(f.nodes[1], "there")))
	name := f.nameAt(f.nodes[2], "wanted")
	theirs := lockOf(t, other.Mutex(name))
	got := make(chan error, 1)
	go func() {
		_, err := c.Mutex(name).Lock(within(t))
		got <- err
	}()
	waitFor(t, "the client to wait", waiting(t, other, name, 1))
	ticket := queued(t, other, name).Ticket
	gap := longestPause(t, c, f.nameAt(f.nodes[1], "busy"), func() { f.kill(f.nodes[0]) }, f.delay+500*time.Millisecond)
	t.Logf("longest pause %v", gap)
	after, err := c.Session(within(t))
	must(t, err)
	if after.ID != before.ID || after.Incarnation <= before.Incarnation {
		t.Errorf("the session is %s (%d), it was %s (%d)", after.ID, after.Incarnation, before.ID, before.Incarnation)
	}
	if now := queued(t, other, name).Ticket; now != ticket {
		t.Errorf("the waiter has ticket %d, it had %d", now, ticket)
	}
	must(t, theirs.Release(within(t)))
	must(t, <-got)
	for _, claim := range []*client.Claim{here, there} {
		must(t, claim.Renew(within(t)))
		if claim.State() != client.Held {
			t.Errorf("%s is %v: %v", claim.Name(), claim.State(), claim.Err())
		}
	}
}

// All buckets move while the client holds and waits: it is told by nobody, and finds everything.
func TestBucketsMove(t *testing.T) {
	t.Parallel()
	f := startFakeCluster(t)
	f.quiet = true
	const lease = fakeLease // half of it is there for a slow machine to answer a keep-alive
	c, other := f.connect(f.nodes[0], client.WithLease(lease)), f.connect(f.nodes[1])
	var claims []*client.Claim
	for i := range 40 {
		claims = append(claims, lockOf(t, c.Mutex(fmt.Sprintf("held-%d", i))))
	}
	got := make(chan error, 1)
	go func() {
		_, err := other.Mutex("held-0").Lock(within(t))
		got <- err
	}()
	waitFor(t, "the client to wait", waiting(t, c, "held-0", 1))
	began := time.Now()
	for round := 1; time.Since(began) < lease*7/8; round++ {
		for b := range fakeBuckets {
			f.handOver(b, f.nodes[(b+round)%3])
			must(t, claims[1+b].Renew(within(t)))
		}
	}
	for _, claim := range claims {
		if s := claim.State(); s != client.Held && s != client.Suspect {
			t.Fatalf("%s is %v: %v", claim.Name(), s, claim.Err())
		}
	}
	must(t, claims[0].Release(within(t)))
	must(t, <-got)
}

// A server that says nothing any more, though its connection stands, is left within about two seconds; locks stay held.
func TestSilentServerIsLeft(t *testing.T) {
	t.Parallel()
	f := startFakeCluster(t)
	p := brokertest.NewProxy(t, f.nodes[0].srv.ClientURL())
	c := connectURL(t, p.URL(), client.WithLease(8*time.Second))
	claim := lockOf(t, c.Mutex(f.nameAt(f.nodes[1], "x")))
	waitFor(t, "the client to know the others", func() bool { return len(c.Conn().Servers()) == 4 })
	p.Stall(true)
	began := time.Now()
	must(t, claim.Renew(within(t)))
	t.Logf("after %v", time.Since(began))
	if claim.State() != client.Held {
		t.Errorf("the lock is %v", claim.State())
	}
}

// The nearest server is first, and those that do not answer are last.
func TestNearest(t *testing.T) {
	t.Parallel()
	f := startFakeCluster(t)
	c := f.connect(f.nodes[0])
	f.kill(f.nodes[2])
	var servers []client.ServerDistance
	waitFor(t, "the dead server to be noticed", func() bool {
		var err error
		servers, err = c.Nearest(within(t))
		must(t, err)
		return servers[2].RTT == client.Unreachable && servers[1].RTT != client.Unreachable // which all are on a machine that stands still
	})
	if servers[2].Node != "n2" || servers[2].URL != "" || servers[0].RTT < 0 || servers[0].RTT > servers[1].RTT {
		t.Errorf("%+v", servers)
	}
	for _, s := range servers {
		if s.Connected != (s.Node == "n0") {
			t.Errorf("%s: connected %v", s.Node, s.Connected)
		}
	}
}

// WithNearest connects to a server that answers, though others are named first, and goes on to the nearest.
func TestWithNearest(t *testing.T) {
	t.Parallel()
	f := startFakeCluster(t)
	f.kill(f.nodes[0])
	urls := f.nodes[0].srv.ClientURL() + "," + f.nodes[1].srv.ClientURL()
	c := connectURL(t, urls, client.WithNearest())
	if at := c.Conn().ConnectedUrl(); at != f.nodes[1].srv.ClientURL() {
		t.Errorf("connected to %s", at)
	}
	f.kill(f.nodes[1])
	waitFor(t, "the connection to the last server", func() bool {
		return c.Conn().Status() == nats.CONNECTED && c.Conn().ConnectedUrl() == f.nodes[2].srv.ClientURL()
	})
}

// Who listens is told of servers that go, and that others may have been missed after a reconnect.
func TestOnServers(t *testing.T) {
	t.Parallel()
	f := startFakeCluster(t)
	c := f.connect(f.nodes[1])
	var mu sync.Mutex
	var heard []string
	stop := c.OnServers(func(e subjects.ServerEvent) {
		mu.Lock()
		defer mu.Unlock()
		heard = append(heard, e.Type+" "+e.Node)
	})
	has := func(want string) func() bool {
		return func() bool {
			mu.Lock()
			defer mu.Unlock()
			return slices.Contains(heard, want)
		}
	}
	must(t, c.Conn().Flush()) // it is listened to
	f.kill(f.nodes[0])
	waitFor(t, "the word of the server's end", has("server.down n0"))
	must(t, c.Conn().ForceReconnect())
	waitFor(t, "the word of the reconnect", has(client.Reconnected+" "))
	stop()
	mu.Lock()
	n := len(heard)
	mu.Unlock()
	e := subjects.ServerEvent{Subject: subjects.ServerEventSubject("up", "n9"), Type: "server.up", Node: "n9"}
	must(t, f.nodes[1].nc.Publish(e.Subject, e.AppendJSON(nil)))
	must(t, f.nodes[1].nc.Flush())
	if _, err := c.Info(within(t)); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(heard) != n {
		t.Errorf("told after stop: %v", heard[n:])
	}
}
