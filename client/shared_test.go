package client_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/opencluster/oclocks/client"
	"github.com/opencluster/oclocks/internal/brokertest"
	"github.com/opencluster/oclocks/subjects"
)

func TestReadersAndWriters(t *testing.T) {
	d := brokertest.Start(t)
	c := connect(t, d)
	rw := c.RWMutex("x")
	for range 3 {
		if _, err := rw.RLock(within(t)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := rw.TryLock(within(t)); !errors.Is(err, client.ErrHeld) {
		t.Fatalf("TryLock among readers: %v", err)
	}
	writer := make(chan error, 1)
	go func() {
		_, err := rw.Lock(within(t))
		writer <- err
	}()
	waitFor(t, "the writer to wait", waiting(t, c, "x", 1))
	if _, err := rw.TryRLock(within(t)); !errors.Is(err, client.ErrHeld) {
		t.Fatalf("TryRLock behind a waiting writer: %v", err)
	}
	for range 3 {
		must(t, rw.RUnlock(within(t)))
	}
	must(t, <-writer)
	if err := rw.RUnlock(within(t)); !errors.Is(err, client.ErrNotLocked) {
		t.Fatalf("RUnlock without RLock: %v", err)
	}
	must(t, rw.Unlock(within(t)))
}

func TestSoftWriterLetsReadersPass(t *testing.T) {
	d := brokertest.Start(t)
	c := connect(t, d)
	rw := c.RWMutex("x", client.WithDrain(subjects.Soft, 0))
	first, err := rw.RLock(within(t))
	must(t, err)
	writer := make(chan error, 1)
	go func() {
		_, err := rw.Lock(within(t))
		writer <- err
	}()
	waitFor(t, "the writer to wait", waiting(t, c, "x", 1))
	second, err := rw.TryRLock(within(t))
	must(t, err)
	must(t, first.Release(within(t)))
	must(t, second.Release(within(t)))
	must(t, <-writer)
	must(t, rw.Unlock(within(t)))
}

// Of several readers' locks the lost one goes first, so that no reader loses a good one to another's RUnlock.
func TestRUnlockTakesTheLostOneFirst(t *testing.T) {
	d := brokertest.Start(t)
	c, admin := connect(t, d), connect(t, d)
	rw := c.RWMutex("x")
	good, err := rw.RLock(within(t))
	must(t, err)
	bad, err := rw.RLock(within(t))
	must(t, err)
	_, err = admin.Force(within(t), "x", bad.Token(), "test", true)
	must(t, err)
	lostWhy(t, bad)
	if err := rw.RUnlock(within(t)); !errors.Is(err, client.ErrLost) {
		t.Fatalf("RUnlock: %v, want ErrLost", err)
	}
	if good.State() != client.Held {
		t.Fatalf("the good one is %v", good.State())
	}
	must(t, rw.RUnlock(within(t)))
}

func TestSemaphoreCountsSlots(t *testing.T) {
	d := brokertest.Start(t)
	c := connect(t, d)
	s := c.Semaphore("pool", 3)
	two, err := s.Acquire(within(t), 2)
	must(t, err)
	if _, err := s.TryAcquire(within(t), 2); !errors.Is(err, client.ErrHeld) {
		t.Fatalf("two more of three: %v", err)
	}
	one, err := s.TryAcquire(within(t), 1)
	must(t, err)
	must(t, two.Release(within(t)))
	must(t, one.Release(within(t)))
	all, err := s.Acquire(within(t), 3)
	must(t, err)
	must(t, all.Release(within(t)))
	for _, n := range []int{0, 4, -1} {
		if _, err := s.Acquire(within(t), n); !errors.Is(err, client.ErrBadRequest) {
			t.Errorf("%d slots: %v, want ErrBadRequest", n, err)
		}
	}
	if _, err := c.Semaphore("pool", 0).Acquire(within(t), 1); !errors.Is(err, client.ErrBadRequest) {
		t.Errorf("a semaphore without slots: %v", err)
	}
}

// Goroutines of one client and of another exclude each other; the tokens rise with every grant.
func TestGoroutinesExcludeEachOther(t *testing.T) {
	d := brokertest.Start(t)
	clients := []*client.Client{connect(t, d), connect(t, d)}
	mutexes := []*client.Mutex{clients[0].Mutex("x"), clients[0].Mutex("x"), clients[1].Mutex("x")}
	var inside, last atomic.Int64
	var running sync.WaitGroup
	for i := range 9 {
		running.Go(func() {
			m := mutexes[i%len(mutexes)]
			for range 20 {
				claim, err := m.Lock(within(t))
				if err != nil {
					t.Error(err)
					return
				}
				if n := inside.Add(1); n != 1 {
					t.Errorf("%d hold the lock", n)
				}
				if before := last.Swap(int64(claim.Token())); before >= int64(claim.Token()) {
					t.Errorf("token %d after %d", claim.Token(), before)
				}
				inside.Add(-1)
				if err := claim.Release(within(t)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	running.Wait()
}

// Contexts that end at any moment leave nothing behind at the broker.
func TestGivingUpLeavesNothingBehind(t *testing.T) {
	d := brokertest.Start(t)
	c, other := connect(t, d), connect(t, d)
	var running sync.WaitGroup
	for i := range 8 {
		running.Go(func() {
			m := c.Mutex("x")
			for n := range 25 {
				ctx, cancel := context.WithTimeout(within(t), time.Duration(i*n)*20*time.Microsecond)
				claim, err := m.Lock(ctx)
				switch {
				case err == nil:
					if err := claim.Release(within(t)); err != nil {
						t.Error(err)
					}
				case !errors.Is(err, context.DeadlineExceeded):
					t.Error(err)
				}
				cancel()
			}
		})
	}
	running.Wait()
	lockOf(t, other.Mutex("x"))
}
