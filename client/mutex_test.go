package client_test

import (
	"context"
	"errors"
	"testing"

	"github.com/opencluster/oclocks/client"
	"github.com/opencluster/oclocks/internal/brokertest"
	"github.com/opencluster/oclocks/subjects"
)

func TestMutexLocksAndUnlocks(t *testing.T) {
	d := brokertest.Start(t)
	c := connect(t, d, client.WithName("tester"))
	m := c.Mutex("orders/4711")
	claim := lockOf(t, m)
	if claim.State() != client.Held || claim.Err() != nil || claim.Token() == 0 || claim.Name() != "orders/4711" {
		t.Fatalf("claim: %v, %v, token %d, name %q", claim.State(), claim.Err(), claim.Token(), claim.Name())
	}
	record, err := c.Query(within(t), "orders/4711")
	must(t, err)
	if len(record.Holders) != 1 || record.Holders[0].Token != claim.Token() || record.Holders[0].Holder != "tester" {
		t.Fatalf("the broker has %+v", record.Holders)
	}
	must(t, m.Unlock(within(t)))
	if claim.State() != client.Released || !errors.Is(claim.Err(), client.ErrReleased) {
		t.Fatalf("after Unlock: %v, %v", claim.State(), claim.Err())
	}
	if err := m.Unlock(within(t)); !errors.Is(err, client.ErrNotLocked) {
		t.Fatalf("a second Unlock: %v, want ErrNotLocked", err)
	}
	second := lockOf(t, m)
	if second.Token() <= claim.Token() {
		t.Fatalf("the token went from %d to %d", claim.Token(), second.Token())
	}
}

func TestTryLockTellsWhoHolds(t *testing.T) {
	d := brokertest.Start(t)
	holder, other := connect(t, d, client.WithName("holder")), connect(t, d)
	lockOf(t, holder.Mutex("a"))
	claim, err := other.Mutex("a").TryLock(within(t))
	var held *client.HeldError
	if claim != nil || !errors.As(err, &held) {
		t.Fatalf("TryLock: %v, %v; want a HeldError", claim, err)
	}
	var refusal *subjects.Refusal
	if held.Holder != "holder" || held.Since.IsZero() || held.Queue != 0 || !errors.Is(err, client.ErrHeld) ||
		!errors.As(err, &refusal) || refusal.Code != 409 {
		t.Fatalf("TryLock: %+v", held)
	}
}

func TestLockWaitsForTheOther(t *testing.T) {
	d := brokertest.Start(t)
	a, b := connect(t, d), connect(t, d)
	ma, mb := a.Mutex("x"), b.Mutex("x")
	lockOf(t, ma)
	got := make(chan error, 1)
	go func() {
		_, err := mb.Lock(within(t))
		got <- err
	}()
	waitFor(t, "somebody to wait", func() bool {
		record, err := a.Query(within(t), "x")
		must(t, err)
		return record.Waiting == 1
	})
	must(t, ma.Unlock(within(t)))
	must(t, <-got)
}

func TestLockLeavesTheQueueWithItsContext(t *testing.T) {
	d := brokertest.Start(t)
	a, b := connect(t, d), connect(t, d)
	ma, mb := a.Mutex("x"), b.Mutex("x")
	lockOf(t, ma)
	ctx, cancel := context.WithCancel(within(t))
	got := make(chan error, 1)
	go func() {
		_, err := mb.Lock(ctx)
		got <- err
	}()
	waiting := func(n int) func() bool {
		return func() bool {
			record, err := a.Query(within(t), "x")
			must(t, err)
			return record.Waiting == n
		}
	}
	waitFor(t, "somebody to wait", waiting(1))
	cancel()
	if err := <-got; !errors.Is(err, context.Canceled) {
		t.Fatalf("Lock: %v", err)
	}
	waitFor(t, "nobody to wait", waiting(0))
	must(t, ma.Unlock(within(t)))
	lockOf(t, mb)
}
