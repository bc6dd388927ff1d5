package client_test

import (
	"cmp"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/opencluster/oclocks/client"
	"github.com/opencluster/oclocks/internal/brokertest"
	"github.com/opencluster/oclocks/subjects"
)

// takeBundles has the nodes take bundles, and watches them.
func (f *fakeCluster) takeBundles() *bundlesSeen {
	seen := &bundlesSeen{t: f.t, limits: subjects.OwnBundleLimits(), last: map[string]uint64{}}
	for _, n := range f.nodes {
		sub, err := n.nc.Subscribe(subjects.BundlePattern(n.name), f.alive(func(msg *nats.Msg) { seen.take(n, msg) }))
		must(f.t, err)
		seen.subs = append(seen.subs, sub)
		must(f.t, n.nc.Flush())
	}
	return seen
}

// bundlesSeen is what came in bundles.
type bundlesSeen struct {
	t         *testing.T
	subs      []*nats.Subscription // by node
	limits    subjects.BundleLimits
	refused   atomic.Bool // as a whole, from now on
	swallowed atomic.Bool
	questions atomic.Int64
	requests  atomic.Int64
	keeps     atomic.Int64
	told      atomic.Int64 // bundles that were not taken

	mu   sync.Mutex
	last map[string]uint64 // number of the newest request, by session and node
}

// take takes a bundle apart, and answers all of it in one sheaf where that is possible.
func (b *bundlesSeen) take(n *fakeNode, msg *nats.Msg) {
	user := msg.Subject[strings.LastIndexByte(msg.Subject, '.')+1:]
	if len(msg.Data) == 0 {
		b.questions.Add(1)
		n.publish(msg.Reply, nil, b.limits)
		return
	}
	if b.refused.Load() || b.swallowed.Load() {
		b.told.Add(1)
	}
	if b.refused.Load() {
		n.reply(msg.Reply, &subjects.Refusal{Code: 413, Reason: subjects.ReasonTooLarge, Message: "too many for me"})
		return
	}
	if b.swallowed.Load() {
		return
	}
	all, refusal := subjects.OpenBundle(msg.Reply, msg.Data)
	if refusal != nil {
		b.t.Errorf("a bundle that cannot be read: %v", refusal)
		return
	}
	for count := 0; ; count++ {
		reply, token, body, more := all.Next(nil)
		if !more {
			if count < 2 || count > b.limits.Requests || len(msg.Data) > b.limits.Bytes {
				b.t.Errorf("a bundle of %d requests and %d bytes", count, len(msg.Data))
			}
			return
		}
		b.requests.Add(1)
		op, _ := subjects.ParseOp(string(token))
		var req subjects.Request
		if refusal := req.Decode(op, body); refusal != nil {
			b.t.Errorf("%s in a bundle: %v", body, refusal)
		}
		subject := subjects.HotSubject(subjects.BucketOf(req.Name, fakeBuckets), op, user)
		if op == subjects.OpKeep {
			b.keeps.Add(1)
			subject = subjects.KeepNodeSubject(n.name, user)
		} else {
			b.inOrder(n, &req)
		}
		n.receive(&nats.Msg{Subject: subject, Reply: reply, Data: body})
	}
}

// inOrder checks that the requests of a session come in the order of their numbers.
func (b *bundlesSeen) inOrder(n *fakeNode, req *subjects.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	key := n.name + " " + req.Session
	if req.Number <= b.last[key] {
		b.t.Errorf("request %d comes after %d", req.Number, b.last[key])
	}
	b.last[key] = req.Number
}

// crowd has workers lock and unlock, each a name of its own, until that is enough.
func crowd(t *testing.T, c *client.Client, enough func() bool) {
	t.Helper()
	var group sync.WaitGroup
	deadline := time.Now().Add(patience)
	for w := range 32 {
		group.Go(func() {
			m := c.Mutex(fmt.Sprint("crowd/", w))
			for first := true; first || !enough(); first = false {
				claim, err := m.Lock(within(t))
				if err == nil {
					err = claim.Release(within(t))
				}
				if err != nil || time.Now().After(deadline) {
					t.Errorf("worker %d: %v", w, err)
					return
				}
			}
		})
	}
	group.Wait()
}

// Requests that leave together for one node are one message, over the home connection and over lanes, in their order.
func TestBundles(t *testing.T) {
	for what, busy := range map[string]int{"over lanes": 1, "home": 1 << 30} {
		t.Run(what, func(t *testing.T) {
			f := startFakeCluster(t)
			seen := f.takeBundles()
			c := f.connect(f.nodes[0], client.WithBusyLanes(busy))
			if busy == 1 {
				lanesOf(t, c, f.namesAt("name"), "n1", "n2")
			}
			if claim := lockOf(t, c.Mutex("alone")); claim.Release(within(t)) != nil || seen.questions.Load() > 0 {
				t.Error("one worker asks for bundles")
			}
			crowd(t, c, func() bool { return seen.requests.Load() > 1000 })
		})
	}
}

// A node may take less at a time than others.
func TestBundlesWithinLimits(t *testing.T) {
	for _, limits := range []subjects.BundleLimits{{Requests: 3, Bytes: 1 << 20}, {Requests: 100, Bytes: 500}} {
		f := startFakeCluster(t)
		seen := f.takeBundles()
		seen.limits = limits
		c := f.connect(f.nodes[0])
		crowd(t, c, func() bool { return seen.requests.Load() > 500 })
	}
}

// Where the server lets no bundle through, there are none any more.
func TestBundlesAreDenied(t *testing.T) {
	f := startFakeCluster(t)
	seen := f.takeBundles()
	c := f.connect(f.nodes[0], client.WithOneConnection())
	crowd(t, c, func() bool { return seen.requests.Load() > 500 })
	if c.Denied(subjects.HotSubject(1, subjects.OpAcquire, "anyone")) || !c.Denied(subjects.BundleSubject("n0", "anyone")) {
		t.Error("a bucket's own subject is taken for that of bundles, or the other way round")
	}
	must(t, c.Conn().Flush())
	f.mu.Lock() // what was published before has come
	before := seen.requests.Load() + seen.questions.Load()
	f.mu.Unlock()
	var pairs atomic.Int64
	crowd(t, c, func() bool { return pairs.Add(1) > 1000 })
	if now := seen.requests.Load() + seen.questions.Load(); now != before {
		t.Errorf("%d requests came in bundles afterwards", now-before)
	}
}

// Brokers of an older version do not know bundles: they are asked, and never sent one.
func TestNoBundlesForOlderBrokers(t *testing.T) {
	f := startFakeCluster(t)
	nc, err := nats.Connect(f.nodes[0].srv.ClientURL())
	must(t, err)
	t.Cleanup(nc.Close)
	var questions, bundles atomic.Int64
	_, err = nc.QueueSubscribe("locks.b.*.acquire.*", "spy", func(msg *nats.Msg) {
		switch {
		case !strings.HasPrefix(msg.Subject, "locks.b.~"):
		case len(msg.Data) == 0:
			questions.Add(1)
		default:
			bundles.Add(1)
		}
	})
	must(t, err)
	must(t, nc.Flush())
	c := f.connect(f.nodes[0], client.WithBusyLanes(1))
	lanesOf(t, c, f.namesAt("name"), "n1", "n2")
	var pairs atomic.Int64
	crowd(t, c, func() bool { return pairs.Add(1) > 2000 && questions.Load() > 0 })
	if bundles.Load() > 0 {
		t.Errorf("%d bundles were sent to somebody who has not said that he takes them", bundles.Load())
	}
}

// Where nobody listens for bundles any more, or buckets move, or a node dies, all that was in bundles is asked again.
func TestBundlesLeadAstray(t *testing.T) {
	pairs := map[string]int64{"swallowed": 32} // each takes as long as a client waits before it asks again
	for what, happens := range map[string]func(f *fakeCluster, seen *bundlesSeen){
		"refused":   func(_ *fakeCluster, seen *bundlesSeen) { seen.refused.Store(true) },
		"swallowed": func(_ *fakeCluster, seen *bundlesSeen) { seen.swallowed.Store(true) },
		"nobody": func(_ *fakeCluster, seen *bundlesSeen) {
			for _, sub := range seen.subs {
				must(seen.t, sub.Unsubscribe())
			}
		},
		"hand-over": func(f *fakeCluster, _ *bundlesSeen) {
			for b := range fakeBuckets {
				f.handOver(b, f.nodes[(b+1)%len(f.nodes)])
			}
		},
		"end of a lane's node": func(f *fakeCluster, _ *bundlesSeen) { f.kill(f.nodes[1]) },
		"end of the own node":  func(f *fakeCluster, _ *bundlesSeen) { f.kill(f.nodes[0]) },
	} {
		t.Run(what, func(t *testing.T) {
			f := startFakeCluster(t)
			seen := f.takeBundles()
			c := f.connect(f.nodes[0], client.WithBusyLanes(1))
			lanesOf(t, c, f.namesAt("name"), "n1", "n2")
			crowd(t, c, func() bool { return seen.requests.Load() > 500 })
			done := make(chan struct{})
			go func() {
				defer close(done)
				happens(f, seen)
			}()
			var made atomic.Int64
			crowd(t, c, func() bool {
				select {
				case <-done:
					return made.Add(1) > cmp.Or(pairs[what], 1000)
				default:
					return false
				}
			})
		})
	}
}

// Bundles of a client and sheaves of a real broker fit together.
func TestBundlesWithADaemon(t *testing.T) {
	c := connect(t, brokertest.Start(t))
	var pairs atomic.Int64
	crowd(t, c, func() bool { return pairs.Add(1) > 5000 })
	if !c.TakesBundles() {
		t.Error("the daemon was not asked for bundles, or does not take them")
	}
}
