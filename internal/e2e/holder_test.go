package e2e

import (
	"context"
	"syscall"
	"testing"
	"time"

	"github.com/opencluster/oclocks/client"
	"github.com/opencluster/oclocks/internal/boottime"
	"github.com/opencluster/oclocks/internal/brokertest"
)

const lease = 2 * time.Second

// connect is a client of the test's own.
func connect(t testing.TB, url string) *client.Client {
	t.Helper()
	c, err := client.Connect(context.Background(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { disconnect(t, c) })
	return c
}

// disconnect closes a client; doing it twice is no error.
func disconnect(t testing.TB, c *client.Client) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := c.Close(ctx); err != nil {
		t.Logf("close: %v", err)
	}
}

// next waits in the queue behind a holder and tells when it was granted, on the boot-time clock.
type next struct {
	granted chan int64
	fail    chan error
}

func waitNext(t testing.TB, c *client.Client, name string) next {
	t.Helper()
	n := next{make(chan int64, 1), make(chan error, 1)}
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
		defer cancel()
		if _, err := c.Mutex(name).Lock(ctx); err != nil {
			n.fail <- err
			return
		}
		n.granted <- boottime.Now()
	}()
	deadline := time.Now().Add(patience)
	for {
		rec, err := c.Query(context.Background(), name)
		if err != nil {
			t.Fatal(err)
		}
		if rec.Waiting == 1 {
			return n
		}
		if time.Now().After(deadline) {
			t.Fatal("the next one never stood in the queue")
		}
	}
}

func (n next) when(t testing.TB) int64 {
	t.Helper()
	select {
	case at := <-n.granted:
		return at
	case err := <-n.fail:
		t.Fatal(err)
	case <-time.After(2 * patience):
		t.Fatal("the lock was never handed on")
	}
	return 0
}

// A killed holder with grace 0s frees the lock by the end of its connection, long before its lease.
func TestKilledHolderWithoutGrace(t *testing.T) {
	_, url := daemon(t)
	holder := hold(t, child{URL: url, Name: "k", Lease: time.Minute, Grace: 0})
	holder.line("event", "held")
	n := waitNext(t, connect(t, url), "k")
	killed := boottime.Now()
	holder.kill()
	if took := time.Duration(n.when(t) - killed); took > 30*time.Second {
		t.Errorf("the lease ended the hold, not the connection: %v", took)
	} else {
		t.Logf("handed on %v after kill -9", took)
	}
}

// A killed holder with the default grace keeps the lock for as long as it could have believed in it.
func TestKilledHolderWithDefaultGrace(t *testing.T) {
	_, url := daemon(t)
	holder := hold(t, child{URL: url, Name: "g", Lease: lease, Grace: -1})
	holder.line("event", "held")
	n := waitNext(t, connect(t, url), "g")
	killed := boottime.Now()
	holder.kill()
	if took := time.Duration(n.when(t) - killed); took < lease/4 {
		t.Errorf("handed on %v after the holder was killed; it may have trusted the lock for longer", took)
	}
}

// A holder that is stopped, not closed: its trust is over before the lock is handed on, and when it goes on it knows.
func TestStoppedHolder(t *testing.T) {
	_, url := daemon(t)
	holder := hold(t, child{URL: url, Name: "s", Lease: lease, Grace: -1})
	holder.line("event", "held")
	n := waitNext(t, connect(t, url), "s")
	holder.signal(syscall.SIGSTOP)
	granted := n.when(t)
	holder.signal(syscall.SIGCONT)
	checkIntervals(t, holder, granted)
}

// A holder whose network is cut without a word: the same.
func TestCutOffHolder(t *testing.T) {
	_, url := daemon(t)
	between := brokertest.NewProxy(t, url)
	holder := hold(t, child{URL: between.URL(), Name: "c", Lease: lease, Grace: -1})
	holder.line("event", "held")
	n := waitNext(t, connect(t, url), "c")
	between.Stall(true)
	checkIntervals(t, holder, n.when(t))
}

// A holder with grace 0s that is cut off, not closed: nobody closed anything, so only the lease ends it.
func TestCutOffHolderWithoutGrace(t *testing.T) {
	_, url := daemon(t)
	between := brokertest.NewProxy(t, url)
	holder := hold(t, child{URL: between.URL(), Name: "z", Lease: lease, Grace: 0})
	holder.line("event", "held")
	n := waitNext(t, connect(t, url), "z")
	between.Stall(true)
	checkIntervals(t, holder, n.when(t))
}

// checkIntervals compares the end of the old holder's own trust with the beginning of the new one's.
func checkIntervals(t *testing.T, holder *process, granted int64) {
	t.Helper()
	trusted := int64(holder.line("event", "lost")["trusted"].(float64))
	if trusted >= granted {
		t.Errorf("two holders for %v", time.Duration(trusted-granted))
	}
	t.Logf("%v between the end of one's trust and the other's grant", time.Duration(granted-trusted))
}
