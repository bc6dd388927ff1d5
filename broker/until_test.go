package broker_test

import (
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/opencluster/oclocks/subjects"
)

// eventually waits until a condition holds.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	late := time.After(2 * patience)
	for !holds() {
		select {
		case <-again.C:
		case <-late:
			t.Fatalf("it never came: %s", what)
		}
	}
}

// steady looks at a cluster until nothing is wrong with it. Where a machine stands still for longer than a lease, nodes are away for a
// moment and buckets get other primaries.
func steady(t testing.TB, look func() error) {
	t.Helper()
	for late := time.Now().Add(2 * patience); ; <-time.After(10 * time.Millisecond) {
		err := look()
		if err == nil {
			return
		}
		if time.Now().After(late) {
			t.Fatal(err)
		}
		t.Log(err)
	}
}

// settled waits until the buckets are spread over the nodes, all of which know that, and every copy is in sync.
func settled(t testing.TB, nc *nats.Conn, nodes int) {
	t.Helper()
	eventually(t, "buckets spread over all nodes, and as many copies as there should be", func() bool {
		var c subjects.Cluster
		if err := c.DecodeJSON(ask(t, nc, "locks.cluster", "").msg.Data); err != nil {
			return false // nobody could be asked
		}
		return c.Mode == "normal" && len(c.Nodes) == nodes && !slices.ContainsFunc(c.Nodes, func(n subjects.ClusterNode) bool {
			return n.Change != c.Change || n.Primaries < int(c.Total)/nodes || n.Copies != int(c.Total)
		})
	})
}

// acquire asks until the bucket can be asked: it may just be handed over. NATS delivers at most once, and may lose what passes a route that
// comes about or ends, so who hears nothing asks again; a body that has a request id is granted once all the same.
func acquire(t testing.TB, nc *nats.Conn, body string) (grant answer) {
	t.Helper()
	eventually(t, "a grant of "+body, func() bool {
		msg, err := nc.Request("locks.acquire.anyone", []byte(body), patience/2)
		if err != nil {
			t.Logf("acquire %s: %v", body, err)
			return false
		}
		grant = read(t, msg)
		return grant.fields["granted"] == true
	})
	return grant
}

// toldOnce waits for an event, and a while for the same one again. What comes besides is of nodes that were away for a moment.
func toldOnce(t *testing.T, events *nats.Subscription, while time.Duration, want map[string]string) {
	t.Helper()
	wait := patience
	for before := false; ; {
		msg, err := events.NextMsg(wait)
		if err != nil && wait == patience {
			t.Fatalf("%v is not told: %v", want, err)
		} else if err != nil {
			return
		}
		e, same := read(t, msg), true
		for field, value := range want { // order: all of them count
			same = same && e.fields[field] == value
		}
		switch {
		case same && before:
			t.Errorf("told again: %s", msg.Data)
		case same:
			wait = while
		default:
			t.Logf("told besides: %s", msg.Data)
		}
		before = same
	}
}

// must gives a value of a call that has to succeed, to the test that fails if it does not.
func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}
