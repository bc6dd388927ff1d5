package cli

import (
	"sync"
	"time"

	"github.com/opencluster/oclocks/internal/cli/run"
	"github.com/opencluster/oclocks/subjects"
)

const forever = int64(1<<63 - 1)

// claim is what a held lock is to a command that runs under it; *client.Claim is one.
type claim interface {
	Grant() subjects.Grant
	Deadline() time.Duration // how long it may be trusted from now on; negative for ever, 0 no longer
	Done() <-chan struct{}
	Err() error
}

// trust remembers until when a claim was to be trusted. When the machine was suspended, the loss is noticed long after
// that, and then the command has no time left.
type trust struct {
	claim claim
	now   func() int64 // boot time, nanoseconds
	grace time.Duration
	every time.Duration // how often look is to be called

	mu    sync.Mutex
	until int64 // boot time
	lost  int64 // boot time at which killIn was asked first; 0 if it was not
}

func newTrust(c claim, now func() int64) *trust {
	g := c.Grant()
	shortest := g.Lease
	if g.TTL > 0 && (shortest == 0 || g.TTL < shortest) {
		shortest = g.TTL
	}
	// A keep-alive or renewal is due at half of the lease and prolongs the trust by about as much, so a look at each eighth
	// is never far behind.
	every := max(shortest/8, 5*time.Millisecond)
	if shortest == 0 {
		every = time.Minute
	}
	t := &trust{claim: c, now: now, grace: run.Grace(shortest), every: every, until: forever}
	t.look()
	return t
}

// look takes down until when the claim is to be trusted.
func (t *trust) look() {
	now, left := t.now(), t.claim.Deadline()
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case left < 0:
		t.until = forever
	case left > 0:
		t.until = now + int64(left)
	}
}

// keepLooking looks until stop is closed.
func (t *trust) keepLooking(stop <-chan struct{}) {
	tick := time.NewTicker(t.every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			t.look()
		case <-t.claim.Done():
			return
		case <-stop:
			return
		}
	}
}

// killIn is how long a command may still live, the lock being lost: its grace, counted from the loss, or from the end of
// the trust if that was before.
func (t *trust) killIn() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	if t.lost == 0 {
		t.lost = now
	}
	return time.Duration(min(t.lost, t.until)-now) + t.grace
}
