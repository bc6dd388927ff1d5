package boottime

import (
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// far is longer than any test waits for what must come.
const far = time.Minute

// kinds are the timers under test: the system's own and the one that needs nothing but Go.
var kinds = map[string]func(ring func()) alarm{
	"system": newAlarm,
	"go":     func(ring func()) alarm { return newGoAlarm(ring) },
}

func eachKind(t *testing.T, test func(t *testing.T, timer *Timer)) {
	t.Helper()
	for name, make := range kinds {
		t.Run(name, func(t *testing.T) {
			timer := newTimer(make)
			t.Cleanup(timer.Close)
			test(t, timer)
		})
	}
}

func fired(t *testing.T, timer *Timer) {
	t.Helper()
	select {
	case <-timer.C:
	case <-time.After(far):
		t.Fatal("the timer did not fire")
	}
}

func silent(t *testing.T, timer *Timer) {
	t.Helper()
	select {
	case <-timer.C:
		t.Fatal("the timer fired, and nothing was due")
	default:
	}
}

func in(d time.Duration) int64 { return Now() + int64(d) }

func TestNowGoesForward(t *testing.T) {
	last := Now()
	if last <= 0 {
		t.Fatalf("Now is %d, want above 0", last)
	}
	for range 10_000 {
		now := Now()
		if now < last {
			t.Fatalf("the clock went back from %d to %d", last, now)
		}
		last = now
	}
	// It runs at the rate of real time: at least as much has passed as Go measured in between.
	begin := Now()
	start := time.Now() // after it, whatever comes between
	<-time.After(20 * time.Millisecond)
	least := time.Since(start)
	if passed := time.Duration(Now() - begin); passed < least {
		t.Fatalf("boot time advanced by %v while at least %v passed", passed, least)
	}
}

func TestTimerFiresOnceAndNotEarly(t *testing.T) {
	eachKind(t, func(t *testing.T, timer *Timer) {
		for range 3 {
			deadline := in(5 * time.Millisecond)
			timer.Reset(deadline)
			fired(t, timer)
			if now := Now(); now < deadline {
				t.Fatalf("fired %v early", time.Duration(deadline-now))
			}
			silent(t, timer)
		}
	})
}

func TestTimerWithPassedDeadlineFires(t *testing.T) {
	eachKind(t, func(t *testing.T, timer *Timer) {
		for _, deadline := range []int64{Now(), Now() - 1, 1, 0, -5, math.MinInt64} {
			timer.Reset(deadline)
			fired(t, timer)
		}
	})
}

func TestTimerMovedLaterDoesNotFireEarly(t *testing.T) {
	eachKind(t, func(t *testing.T, timer *Timer) {
		timer.Reset(in(2 * time.Millisecond))
		deadline := in(30 * time.Millisecond)
		timer.Reset(deadline) // rings at the earlier one and must be armed again
		fired(t, timer)
		if now := Now(); now < deadline {
			t.Fatalf("fired %v early", time.Duration(deadline-now))
		}
	})
}

func TestTimerMovedEarlierFires(t *testing.T) {
	eachKind(t, func(t *testing.T, timer *Timer) {
		timer.Reset(in(time.Hour))
		timer.Reset(in(time.Millisecond))
		fired(t, timer)
		timer.Reset(math.MaxInt64) // never
		timer.Reset(in(time.Millisecond))
		fired(t, timer)
	})
}

func TestStopAndResetTakeTheValueBack(t *testing.T) {
	eachKind(t, func(t *testing.T, timer *Timer) {
		for _, reset := range []bool{false, true} {
			timer.Reset(1)
			waitFor(t, "the value in the channel", func() bool { return len(timer.C) == 1 })
			if reset {
				timer.Reset(in(time.Hour))
			} else {
				timer.Stop()
			}
			silent(t, timer)
		}
	})
}

func TestStoppedTimerStaysSilent(t *testing.T) {
	eachKind(t, func(t *testing.T, timer *Timer) {
		deadline := in(time.Millisecond)
		timer.Reset(deadline)
		timer.Stop()
		other := NewTimer() // says when the stopped one would have rung
		defer other.Close()
		other.Reset(deadline + int64(5*time.Millisecond))
		fired(t, other)
		silent(t, timer)
	})
}

func TestClosedTimer(t *testing.T) {
	eachKind(t, func(t *testing.T, timer *Timer) {
		timer.Reset(1)
		timer.Close()
		timer.Close()
		timer.Reset(1)
		timer.Stop()
		silent(t, timer)
	})
}

func TestTimerUnderManyHands(t *testing.T) {
	eachKind(t, func(t *testing.T, timer *Timer) {
		const hands = 4
		done := make(chan struct{}, hands)
		for hand := range hands {
			go func() {
				defer func() { done <- struct{}{} }()
				for i := range 2000 {
					switch (i + hand) % 4 {
					case 0:
						timer.Stop()
					case 1:
						timer.Reset(Now())
					default:
						timer.Reset(in(time.Duration(i) * time.Microsecond))
					}
				}
			}()
		}
		for range hands {
			<-done
		}
		timer.Reset(in(time.Millisecond)) // it still works
		fired(t, timer)
	})
}

// A ring that comes too early, as after a machine's suspend, leads to another arming and to no value.
func TestEarlyRingIsNoFire(t *testing.T) {
	fake := &fakeAlarm{}
	timer := newTimer(func(ring func()) alarm { fake.ring = ring; return fake })
	defer timer.Close()
	deadline := in(time.Hour)
	timer.Reset(deadline)
	fake.ring()
	silent(t, timer)
	if len(fake.armed) != 2 || fake.armed[1] != deadline {
		t.Fatalf("armed at %v, want twice at %d", fake.armed, deadline)
	}
	timer.Stop()
	fake.ring()
	silent(t, timer)
	if len(fake.armed) != 2 {
		t.Fatalf("armed at %v after Stop", fake.armed)
	}
}

type fakeAlarm struct {
	ring  func()
	armed []int64
}

func (f *fakeAlarm) arm(at int64) { f.armed = append(f.armed, at) }
func (f *fakeAlarm) close()       {}

func TestBootID(t *testing.T) {
	if _, err := os.Stat("/proc/sys/kernel/random/boot_id"); err != nil {
		t.Skipf("no boot id here: %v", err)
	}
	first, err := BootID()
	if err != nil {
		t.Fatal(err)
	}
	second, err := BootID()
	if err != nil || first != second || first == "" || strings.TrimSpace(first) != first {
		t.Fatalf("boot id %q, then %q (%v)", first, second, err)
	}
}

func waitFor(t *testing.T, what string, cond func() bool) {
	t.Helper()
	end := time.After(far)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !cond() {
		select {
		case <-end:
			t.Fatalf("waited in vain for %s", what)
		case <-tick.C:
		}
	}
}

func BenchmarkNow(b *testing.B) {
	for b.Loop() {
		Now()
	}
}

// BenchmarkReset moves the deadline to a later time, which is what a lease does at each renewal, or to and fro.
func BenchmarkReset(b *testing.B) {
	for name, step := range map[string]int64{"later": 1, "earlier": -1} {
		b.Run(name, func(b *testing.B) {
			timer := NewTimer()
			defer timer.Close()
			deadline := in(time.Hour)
			for b.Loop() {
				deadline += step
				timer.Reset(deadline)
			}
		})
	}
}

// BenchmarkLate shows how late a timer fires.
func BenchmarkLate(b *testing.B) {
	for name, make := range kinds {
		b.Run(name, func(b *testing.B) {
			timer := newTimer(make)
			defer timer.Close()
			var late int64
			for b.Loop() {
				deadline := in(time.Millisecond)
				timer.Reset(deadline)
				<-timer.C
				late += Now() - deadline
			}
			b.ReportMetric(float64(late)/float64(b.N), "ns-late")
		})
	}
}
