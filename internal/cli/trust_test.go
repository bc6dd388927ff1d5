package cli

import (
	"cmp"
	"testing"
	"time"

	"github.com/opencluster/oclocks/internal/cli/run"
	"github.com/opencluster/oclocks/subjects"
)

// fakeClaim is a claim on a clock of the test's own.
type fakeClaim struct {
	grant subjects.Grant
	left  time.Duration
	done  chan struct{}
}

func (c *fakeClaim) Grant() subjects.Grant   { return c.grant }
func (c *fakeClaim) Deadline() time.Duration { return c.left }
func (c *fakeClaim) Done() <-chan struct{}   { return c.done }
func (c *fakeClaim) Err() error              { return nil }

func TestKillComesInsideTheLease(t *testing.T) {
	const s, ms = time.Second, time.Millisecond
	for _, c := range []struct {
		name       string
		lease, ttl time.Duration
		left       time.Duration // trust at the last look, at second 0
		lost       time.Duration // when the loss is noticed
		want       time.Duration // what the command has left then
	}{
		{"the trust ends", 10 * s, 0, 7500 * ms, 7500 * ms, 1250 * ms},
		{"the loss is noticed late", 10 * s, 0, 7500 * ms, 8 * s, 750 * ms},
		{"the machine was suspended", 10 * s, 0, 7500 * ms, time.Hour, 7500*ms + 1250*ms - time.Hour},
		{"the broker tells it early", 10 * s, 0, 7500 * ms, s, 1250 * ms},
		{"a limit that is shorter than the lease", 10 * s, 2 * s, 1500 * ms, 1500 * ms, 250 * ms},
		{"a limit that is longer", 2 * s, 60 * s, 1500 * ms, 1500 * ms, 250 * ms},
		{"no limit and no lease", 0, 0, -1, time.Hour, run.Grace(0)},
		{"a very long limit", 24 * time.Hour, 24 * time.Hour, 18 * time.Hour, s, run.Grace(24 * time.Hour)},
	} {
		now := int64(1000 * s)
		claim := &fakeClaim{grant: subjects.Grant{Lease: c.lease, TTL: c.ttl}, left: c.left}
		tr := newTrust(claim, func() int64 { return now })
		now += int64(c.lost)
		if got := tr.killIn(); got != c.want {
			t.Errorf("%s: %v left, want %v", c.name, got, c.want)
		}
		now += int64(100 * ms)
		if got := tr.killIn(); got != c.want-100*ms {
			t.Errorf("%s: %v left 100 ms later, want %v", c.name, got, c.want-100*ms)
		}
		if shortest := min(cmp.Or(c.lease, c.ttl), cmp.Or(c.ttl, c.lease)); shortest > 0 && tr.every > shortest/8 {
			t.Errorf("%s: looks each %v", c.name, tr.every)
		}
	}
}

func TestTrustFollowsTheClaim(t *testing.T) {
	now := int64(time.Hour)
	claim := &fakeClaim{grant: subjects.Grant{Lease: 10 * time.Second}, left: 7 * time.Second}
	tr := newTrust(claim, func() int64 { return now })
	now += int64(5 * time.Second)
	claim.left = 7 * time.Second // it was kept alive
	tr.look()
	now += int64(10 * time.Second)
	claim.left = 0
	tr.look() // tells nothing of when it ended
	if got, want := tr.killIn(), -3*time.Second+run.Grace(10*time.Second); got != want {
		t.Errorf("%v left, want %v", got, want)
	}
}

func TestKeepLookingEnds(t *testing.T) {
	looked := make(chan struct{}, 1)
	claim := &fakeClaim{grant: subjects.Grant{Lease: 40 * time.Millisecond}, left: time.Second, done: make(chan struct{})}
	tr := newTrust(claim, func() int64 {
		select {
		case looked <- struct{}{}:
		default:
		}
		return 1
	})
	<-looked
	for _, end := range []chan struct{}{make(chan struct{}), claim.done} {
		stop, over := make(chan struct{}), make(chan struct{})
		if end != claim.done {
			stop = end
		}
		go func() { tr.keepLooking(stop); close(over) }()
		<-looked
		close(end)
		<-over
	}
}
