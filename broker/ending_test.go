package broker_test

import (
	"errors"
	"fmt"
	"runtime"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/opencluster/oclocks/broker"
	"github.com/opencluster/oclocks/conf"
	"github.com/opencluster/oclocks/internal/brokertest"
	"github.com/opencluster/oclocks/subjects"
)

// The zone's connection breaks while this node is asked no more about its buckets: whatever came first, nothing is left to which the server
// sends requests.
func TestNoSubscriptionOutlivesItsTurn(t *testing.T) {
	const buckets = 32
	d := brokertest.Start(t, func(s *conf.Settings) { s.Buckets = buckets })
	nc := connect(t, url(d))
	heard := func(number int) bool {
		_, err := nc.Request(fmt.Sprintf("locks.b.%d.check.anyone", number), []byte(`{`), patience)
		if err != nil && !errors.Is(err, nats.ErrNoResponders) {
			t.Fatalf("bucket %d: %v", number, err)
		}
		return err == nil
	}
	for round := range 20 {
		d.Listen(conf.DefaultZone, true)
		eventually(t, "all are listened to", func() bool { return heard(0) && heard(buckets-1) })
		d.BreakWhile(t, conf.DefaultZone, round, func() { d.Listen(conf.DefaultZone, false) })
		for number := range buckets {
			eventually(t, fmt.Sprintf("nobody listens for bucket %d", number), func() bool { return !heard(number) })
		}
	}
}

// A node that stops is told that it was removed, and would end again what it has ended: that is over as well, or it would never stop.
func TestSubscriptionsEndTwice(t *testing.T) {
	d := brokertest.Start(t)
	d.Unlisten(conf.DefaultZone)
	<-d.Unlistened(conf.DefaultZone)
	d.Unlisten(conf.DefaultZone)
	<-d.Unlistened(conf.DefaultZone)
	d.Retire(t.Context(), conf.DefaultZone)
	d.Withdraw()
	<-d.Unlistened(conf.DefaultZone)
}

// However many subscriptions end at a time, there are few goroutines for it.
func TestSubscriptionsEndAFewAtATime(t *testing.T) {
	const buckets = 1024
	d := brokertest.Start(t, func(s *conf.Settings) { s.Buckets = buckets })
	before := runtime.NumGoroutine()
	d.Listen(conf.DefaultZone, false)
	if more := runtime.NumGoroutine() - before; more > 64 {
		t.Errorf("%d goroutines more for %d subscriptions", more, buckets)
	}
	nc := connect(t, url(d))
	eventually(t, "the last is ended", func() bool {
		_, err := nc.Request(fmt.Sprintf("locks.b.%d.check.anyone", buckets-1), []byte(`{`), patience)
		return errors.Is(err, nats.ErrNoResponders)
	})
}

// While the connection of a node into a zone is away, requests of its server's clients go to other nodes; when it is back they come here.
func TestRequestsGoElsewhereWhileTheConnectionIsAway(t *testing.T) {
	c, conns := linkedNodes(t)
	taken := func() (elsewhere float64) { // of requests that the first node could answer
		number := subjects.BucketOf(nameAt(t, conns[0], c.Daemons[0].Node()), uint32(len(c.Daemons[0].Shared().Views)))
		before := acquires(t, c.Daemons[1]) + acquires(t, c.Daemons[2])
		for i, n := 0, 0; n < 40; i++ {
			if name := fmt.Sprint("away/", i); subjects.BucketOf(name, uint32(len(c.Daemons[0].Shared().Views))) == number {
				ask(t, conns[0], "locks.acquire.anyone", fmt.Sprintf(`{"name":%q}`, name))
				n++
			}
		}
		return acquires(t, c.Daemons[1]) + acquires(t, c.Daemons[2]) - before
	}
	none := func() error {
		if n := taken(); n != 0 {
			return fmt.Errorf("%v requests came to other nodes", n)
		}
		return nil
	}
	steady(t, none)
	c.Daemons[0].Lost(conf.DefaultZone)
	if n := taken(); n == 0 {
		t.Error("no request came to another node")
	}
	c.Daemons[0].Back(conf.DefaultZone)
	steady(t, none)
}

func acquires(t testing.TB, d *broker.Daemon) float64 {
	t.Helper()
	return scrape(t, d)[fmt.Sprintf(`oclocks_requests_total{op="acquire",zone=%q}`, conf.DefaultZone)]
}

// A shard does not stand behind the server's accounts being changed, which may take long: it stands for all zones.
func TestATurnDoesNotWaitForAMapping(t *testing.T) {
	d := brokertest.Start(t)
	release := d.HoldMapping(conf.DefaultZone)
	came := make(chan struct{})
	go func() {
		defer close(came)
		d.Back(conf.DefaultZone)
	}()
	d.Listen(conf.DefaultZone, false) // returns
	d.Listen(conf.DefaultZone, true)
	select {
	case <-came:
		t.Error("the mapping was not held")
	default:
	}
	release()
	<-came
}
