package client_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/opencluster/oclocks/client"
	"github.com/opencluster/oclocks/internal/boottime"
	"github.com/opencluster/oclocks/internal/brokertest"
	"github.com/opencluster/oclocks/subjects"
)

// through connects a client through a proxy that is cut at the end, so that closing the client needs no broker.
func through(t testing.TB, p *brokertest.Proxy, opts ...client.Option) *client.Client {
	t.Helper()
	c, err := client.Connect(within(t), p.URL(), append([]client.Option{client.WithLogger(brokertest.Logger(t))}, opts...)...)
	must(t, err)
	t.Cleanup(func() {
		p.Stall(false)
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := c.Close(ctx); err != nil {
			t.Errorf("close the client: %v", err)
		}
	})
	return c
}

// ended waits for the end of a claim.
func ended(t testing.TB, claim *client.Claim) {
	t.Helper()
	select {
	case <-claim.Done():
	case <-time.After(patience):
		t.Fatalf("the claim does not end: %v", claim.State())
	}
}

func lostWhy(t testing.TB, claim *client.Claim) string {
	t.Helper()
	ended(t, claim)
	var refusal *subjects.Refusal
	if err := claim.Err(); !errors.Is(err, client.ErrLost) || !errors.As(err, &refusal) {
		t.Fatalf("the claim ended with %v, want a loss with a refusal", err)
	}
	return refusal.Why
}

// A connection that stands still: the holder's trust ends at 3/4 of the lease, before the broker hands the lock on, and the
// intervals in which two clients believe in the lock do not overlap.
func TestTrustEndsBeforeTheLockIsHandedOn(t *testing.T) {
	const lease = 2 * time.Second
	d := brokertest.Start(t)
	p := brokertest.NewProxy(t, d.URL())
	holder := through(t, p, client.WithLease(lease))
	other := connect(t, d)
	claim := lockOf(t, holder.Mutex("x"))
	next := make(chan error, 1)
	var granted int64
	go func() {
		_, err := other.Mutex("x").Lock(within(t))
		granted = boottime.Now()
		next <- err
	}()
	waitFor(t, "somebody to wait", waiting(t, other, "x", 1))
	stalled := boottime.Now()
	p.Stall(true)
	waitFor(t, "the claim to be suspect", func() bool { return claim.State() != client.Held })
	looked := boottime.Now()
	left := claim.Deadline()
	if err := claim.Err(); (err != nil || left <= 0) && claim.State() != client.Lost { // on a machine that stood still meanwhile
		t.Errorf("suspect: %v, trusted for %v; want no error and some time", err, left)
	}
	ctx, cancel := claim.Context(context.Background())
	defer cancel()
	if why := lostWhy(t, claim); why != subjects.WhyExpired {
		t.Errorf("lost because %q", why)
	}
	// The holder trusts until then and no longer, whenever it comes to know.
	last := looked + int64(left)
	if took := time.Duration(last - stalled); left > 0 && took > lease {
		t.Errorf("it is trusted until %v after the connection stood still; the lease is %v", took, lease)
	}
	<-ctx.Done()
	if !errors.Is(context.Cause(ctx), client.ErrLost) || claim.State() != client.Lost || claim.Deadline() != 0 {
		t.Errorf("after the loss: cause %v, %v, %v", context.Cause(ctx), claim.State(), claim.Deadline())
	}
	must(t, <-next)
	if left > 0 && granted <= last {
		t.Errorf("the next one was granted the lock %v before the holder trusted it no longer", time.Duration(last-granted))
	}
}

// A lost lock wants its Unlock; until then nobody else in the process gets it through the same Mutex.
func TestLostLockMustBeUnlocked(t *testing.T) {
	d := brokertest.Start(t)
	c, admin := connect(t, d), connect(t, d)
	m := c.Mutex("x")
	claim := lockOf(t, m)
	_, err := admin.Force(within(t), "x", claim.Token(), "test", true)
	must(t, err)
	if why := lostWhy(t, claim); why != subjects.WhyForced {
		t.Errorf("lost because %q", why)
	}
	if _, err := m.TryLock(within(t)); !errors.Is(err, client.ErrHeld) {
		t.Fatalf("TryLock before the Unlock: %v", err)
	}
	again := make(chan error, 1)
	go func() {
		_, err := m.Lock(within(t))
		again <- err
	}()
	if err := m.Unlock(within(t)); !errors.Is(err, client.ErrLost) {
		t.Fatalf("Unlock of a lost lock: %v, want ErrLost", err)
	}
	must(t, <-again)
	must(t, m.Unlock(within(t)))
}

// Force without now: the holder is told at once, and the lock is handed on when it confirms.
func TestForcedHolderConfirms(t *testing.T) {
	d := brokertest.Start(t)
	c, other := connect(t, d), connect(t, d)
	claim := lockOf(t, c.Mutex("x"))
	forced, err := other.Force(within(t), "x", claim.Token(), "test", false)
	must(t, err)
	if forced.Ended || forced.Ends <= 0 {
		t.Errorf("forced: %+v", forced)
	}
	if why := lostWhy(t, claim); why != subjects.WhyForced {
		t.Errorf("lost because %q", why)
	}
	if _, err := other.Mutex("x").TryLock(within(t)); !errors.Is(err, client.ErrHeld) {
		t.Fatalf("before the holder has confirmed: %v, want ErrHeld", err)
	}
	if err := claim.Release(within(t)); !errors.Is(err, client.ErrLost) {
		t.Fatalf("Release: %v, want ErrLost", err)
	}
	if _, err := other.Mutex("x").TryLock(within(t)); err != nil {
		t.Fatalf("after the holder has confirmed: %v", err)
	}
}

// A static lock is renewed at half of its time limit, for as long as its claim is held.
func TestStaticLockIsRenewed(t *testing.T) {
	const ttl = 8 * time.Second // half of it is there for a slow machine
	d := brokertest.Start(t)
	c := connect(t, d)
	m := c.Mutex("x", client.WithStatic(), client.WithTTL(ttl), client.WithData(map[string]int{"job": 7}))
	claim := lockOf(t, m)
	began := boottime.Now()
	waitFor(t, "more than a time limit to pass", func() bool {
		if s := claim.State(); s != client.Held && s != client.Suspect {
			t.Fatalf("%v after %v: %v", s, time.Duration(boottime.Now()-began), claim.Err())
		}
		return boottime.Now()-began > int64(ttl+ttl/20)
	})
	record, err := c.Query(within(t), "x")
	must(t, err)
	if len(record.Holders) != 1 || record.Holders[0].Kind != subjects.Static || string(record.Holders[0].Data) != `{"job":7}` {
		t.Errorf("the broker has %+v", record.Holders)
	}
	must(t, m.Unlock(within(t)))
}

// The time limit of a connection lock is a limit: nobody renews it.
func TestTimeLimitEndsConnectionLock(t *testing.T) {
	d := brokertest.Start(t)
	c := connect(t, d)
	claim := lockOf(t, c.Mutex("x", client.WithTTL(200*time.Millisecond)))
	if why := lostWhy(t, claim); why != subjects.WhyExpired {
		t.Errorf("lost because %q", why)
	}
}

func TestClaimIsRenewedAndExtended(t *testing.T) {
	d := brokertest.Start(t)
	c := connect(t, d)
	claim := lockOf(t, c.Mutex("x", client.WithStatic(), client.WithTTL(time.Minute)))
	must(t, claim.Renew(within(t)))
	must(t, claim.Extend(within(t), time.Hour))
	if g := claim.Grant(); g.TTL != time.Hour {
		t.Errorf("time limit %v after Extend", g.TTL)
	}
	if left := claim.Deadline(); left < 44*time.Minute || left > 45*time.Minute {
		t.Errorf("trusted for %v, want 3/4 of an hour", left)
	}
	must(t, claim.SetData(within(t), "new"))
	record, err := c.Query(within(t), "x")
	must(t, err)
	if string(record.Holders[0].Data) != `"new"` {
		t.Errorf("data: %s", record.Holders[0].Data)
	}
	must(t, claim.ReleaseWith(within(t), "done"))
	if err := claim.Renew(within(t)); !errors.Is(err, client.ErrReleased) {
		t.Errorf("Renew after Release: %v", err)
	}
	if err := claim.Release(within(t)); !errors.Is(err, client.ErrReleased) {
		t.Errorf("a second Release: %v", err)
	}
}

// With a grace of nothing a broken connection gives the lock up at once, on both sides.
func TestNoGraceEndsWithTheConnection(t *testing.T) {
	d := brokertest.Start(t)
	p := brokertest.NewProxy(t, d.URL())
	c := through(t, p)
	other := connect(t, d)
	short := lockOf(t, c.Mutex("short", client.WithGrace(0)))
	long := lockOf(t, c.Mutex("long"))
	p.Cut()
	if why := lostWhy(t, short); why != subjects.WhyDisconnected {
		t.Errorf("lost because %q", why)
	}
	lockOf(t, other.Mutex("short"))
	if long.State() == client.Lost {
		t.Errorf("the lock with the default grace is lost: %v", long.Err())
	}
	waitFor(t, "the client to be back", func() bool { return c.Conn().IsConnected() })
	must(t, long.Renew(within(t)))
}

func TestUnlockWorksAfterTheContextOfLock(t *testing.T) {
	d := brokertest.Start(t)
	c, other := connect(t, d), connect(t, d)
	ctx, cancel := context.WithCancel(context.Background())
	m := c.Mutex("x")
	_, err := m.Lock(ctx)
	must(t, err)
	cancel()
	// Even with a context that is over, the release goes on in the background.
	if err := m.Unlock(ctx); err != nil && !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	lockOf(t, other.Mutex("x"))
}

func TestContextOfEndedClaim(t *testing.T) {
	d := brokertest.Start(t)
	c := connect(t, d)
	claim := lockOf(t, c.Mutex("x"))
	ctx, cancel := claim.Context(within(t))
	cancel()
	if !errors.Is(context.Cause(ctx), context.Canceled) {
		t.Errorf("cause after cancel: %v", context.Cause(ctx))
	}
	early, cancelEarly := claim.Context(within(t))
	defer cancelEarly()
	must(t, claim.Release(within(t)))
	late, cancelLate := claim.Context(within(t))
	defer cancelLate()
	for _, ctx := range []context.Context{early, late} {
		if !errors.Is(context.Cause(ctx), client.ErrReleased) {
			t.Errorf("cause after the release: %v", context.Cause(ctx))
		}
	}
}

// waiting says whether so many wait for a lock.
func waiting(t testing.TB, c *client.Client, name string, n int) func() bool {
	return func() bool {
		record, err := c.Query(within(t), name)
		must(t, err)
		return record.Waiting == n
	}
}
