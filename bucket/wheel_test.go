package bucket

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// clock is a wheel and the instants of its timers.
type clock struct {
	wheel wheel
	nodes []node
	at    []int64
}

func newClock(n int) *clock {
	c := &clock{nodes: make([]node, n+1), at: make([]int64, n+1)}
	c.wheel.node = func(t timer) *node { return &c.nodes[t] }
	c.wheel.at = func(t timer) int64 { return c.at[t] }
	for i := range c.at {
		c.at[i] = never
	}
	return c
}

// TestWheelAgainstInstants sets, puts off, advances and stops timers, and checks that each comes up within a millisecond
// of its instant and never before it, whatever the steps in which time passes.
func TestWheelAgainstInstants(t *testing.T) {
	const n = 50
	spans := []int64{
		0, 1, 999_999, 1_000_000, 1_000_001, 63_000_000, 64_000_000, 65_000_000, int64(time.Second), int64(5 * time.Minute),
		int64(25 * time.Hour), int64(400 * 24 * time.Hour), int64(10 * 365 * 24 * time.Hour),
	}
	rapid.Check(t, func(t *rapid.T) {
		c := newClock(n)
		now := rapid.SampledFrom([]int64{0, 1, 123_456_789_012, int64(300 * 24 * time.Hour)}).Draw(t, "start")
		c.wheel.advance(now)
		span := func() int64 {
			s := rapid.SampledFrom(spans).Draw(t, "span")
			return s + rapid.Int64Range(0, s/3+1).Draw(t, "more")
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			which := timer(rapid.IntRange(1, n).Draw(t, "timer"))
			switch rapid.IntRange(0, 5).Draw(t, "step") {
			case 0, 1:
				c.at[which] = later(now, time.Duration(span()))
				c.wheel.set(which)
			case 2:
				c.at[which] = never
				c.wheel.set(which)
			case 3: // put off without a call
				c.at[which] = later(c.at[which], time.Duration(span()/2))
			case 4:
				if next := c.wheel.next(); next != never {
					now = max(now, next)
				}
				c.run(t, now)
			default:
				now += span() / 100
				c.run(t, now)
			}
			c.check(t, now)
		}
		for _, at := range c.at {
			if at != never {
				now = max(now, later(at, 2*time.Millisecond))
			}
		}
		c.run(t, now)
		if i := slices.IndexFunc(c.at, func(at int64) bool { return at != never }); i >= 0 {
			t.Fatalf("timer %d never came up", i)
		}
		if c.wheel.next() != never {
			t.Fatal("an empty wheel waits for something")
		}
	})
}

// run takes everything that is due.
func (c *clock) run(t *rapid.T, now int64) {
	c.wheel.advance(now)
	for which := c.wheel.due(); which != 0; which = c.wheel.due() {
		if c.at[which] > now {
			c.wheel.set(which) // it was put off, as Table.tick does it
			continue
		}
		c.at[which] = never
	}
}

func (c *clock) check(t *rapid.T, now int64) {
	next := c.wheel.next()
	for which, at := range c.at {
		if at == never {
			continue
		}
		if later(at, time.Millisecond) <= now && c.wheel.slots[slotDue] == 0 {
			t.Fatalf("at %d: timer %d was for %d", now, which, at)
		}
		if next > later(at, time.Millisecond) {
			t.Fatalf("next is %d, timer %d is for %d", next, which, at)
		}
	}
}

// TestWheelKeepsOrder checks that timers of one tick come up in the order in which they were set.
func TestWheelKeepsOrder(t *testing.T) {
	c := newClock(20)
	for i := timer(1); i <= 20; i++ {
		c.at[i] = 5_000_000
		c.wheel.set(i)
	}
	c.wheel.stop(7)
	c.wheel.stop(1)
	c.wheel.stop(20)
	c.wheel.stop(20)
	c.wheel.advance(5_000_000)
	var got []timer
	for which := c.wheel.due(); which != 0; which = c.wheel.due() {
		got = append(got, which)
	}
	want := []timer{2, 3, 4, 5, 6, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19}
	if !slices.Equal(got, want) {
		t.Errorf("came up as %v, want %v", got, want)
	}
}

// TestWheelIsNeverEarly tries every length of a wait around the borders of the levels.
func TestWheelIsNeverEarly(t *testing.T) {
	for _, start := range []int64{0, 63, 64, 4095, 4096, 262_143, 262_144, 1 << 40} {
		for _, length := range []int64{1, 2, 62, 63, 64, 65, 4095, 4096, 4097, 262_143, 262_144, 16_777_216} {
			c := newClock(1)
			c.wheel.advance(start * tickLength)
			c.at[1] = (start+length)*tickLength - 1
			c.wheel.set(1)
			c.wheel.advance((start+length)*tickLength - 2)
			if c.wheel.due() != 0 {
				t.Fatalf("from tick %d, %d ticks on: early", start, length)
			}
			c.wheel.advance((start + length) * tickLength)
			if c.wheel.due() != 1 {
				t.Fatalf("from tick %d, %d ticks on: late", start, length)
			}
		}
	}
}
