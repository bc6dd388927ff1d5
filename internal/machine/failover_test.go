package machine

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/opencluster/oclocks/subjects"
)

// A primary swallows requests and dies; 600 ms later another node takes over. The client adds next to nothing to that, sends
// few messages meanwhile, keeps its hold, and its waiters keep their order.
func TestClientAddsLittleToAFailover(t *testing.T) {
	for _, told := range []bool{true, false} {
		t.Run(fmt.Sprintf("told of it=%v", told), func(t *testing.T) {
			second := func(n int) int { return min(n-1, 1) } // no delays to speak of, no mischief
			w := newWorld(second, func(string, ...any) {}, 1, 1)
			holder, c := w.clients[0], w.clients[1]
			b := int(subjects.BucketOf("a", simBuckets))
			old := w.buckets[b].primary
			for _, client := range w.clients {
				client.node = w.nodes[(b+1)%3] // they stay connected
			}
			held := submit(t, holder, "a", true)
			w.run(w.now + 1e6)
			waits := submit(t, c, "a", true)
			w.run(w.now + 1e6)
			old.deaf = w.now + int64(time.Hour) // what comes now is not answered, nor kept
			swallowed := submit(t, c, "b", false)
			w.run(w.now + 1e6)
			old.up, old.deaf = false, 0
			old.life++
			w.vacate(b, 600e6)
			if told {
				for _, client := range w.clients {
					client.m.ServerDown(client.clock(), old.name)
					client.carryOut()
				}
			}
			w.run(w.now + 1e6)
			late := submit(t, c, "b", true)
			before := w.seq
			w.run(w.now + 600e6 - 1e6 - 1)
			if w.seq-before > 400 {
				t.Errorf("%d events during the fail-over", w.seq-before)
			}
			w.run(w.now + 25e6)
			if swallowed.Result.Grant == nil {
				t.Errorf("what the old primary has swallowed is not answered 25 ms after the take-over: %+v", swallowed.Result)
			}
			if s := held.Hold.State(holder.clock()); s != Held && s != Suspect {
				t.Errorf("the hold is %v", s)
			}
			if swallowed.Result.Grant != nil {
				c.m.Release(c.clock(), swallowed.Hold, "", tidyCall())
			}
			holder.m.Release(holder.clock(), held.Hold, "", tidyCall())
			c.carryOut()
			holder.carryOut()
			w.run(w.now + 1e6)
			if waits.Result.Grant == nil || late.Result.Grant == nil {
				t.Errorf("the waiter got %+v, who came in the vacancy %+v", waits.Result, late.Result)
			}
		})
	}
}

// failer is a test of either kind.
type failer interface {
	Helper()
	Fatal(args ...any)
}

func submit(t failer, c *simClient, name string, endless bool) *Call {
	t.Helper()
	call := &Call{Req: &subjects.Request{Op: subjects.OpAcquire, Name: name}, Hold: &Hold{}, Endless: endless}
	if err := c.m.Submit(c.clock(), call); err != nil {
		t.Fatal(err)
	}
	c.carryOut()
	return call
}

// Where the network does what it should and a fail-over is shorter than an eighth of the lease, no hold is ever lost and
// every request ends, however often buckets move and nodes die.
func TestFailoversLoseNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "n") }
		w := newWorld(draw, t.Logf, 0.95, 1, 1.05)
		w.longest = simLease / 8
		w.useLanes(draw(2) * 2)
		w.checks = func() {
			w.checkTrust(t)
			w.checkNothingLost(t)
		}
		for range rapid.IntRange(1, 25).Draw(t, "steps") {
			c := w.clients[draw(len(w.clients))]
			switch what := draw(10); {
			case what < 5:
				submit(t, c, simNames[draw(len(simNames))], true)
			case what < 7 && len(c.holds) > 0:
				i := draw(len(c.holds))
				c.m.Release(c.clock(), c.holds[i], "", tidyCall())
				c.holds = slices.Delete(c.holds, i, i+1)
				c.carryOut()
			case what == 7:
				w.handOver(draw(simBuckets))
			case what == 9:
				c.breakLane(c.someLane())
			case what == 8:
				w.kill(w.nodes[draw(len(w.nodes))])
				w.run(w.now + 2*simLease) // it is back
			}
			w.run(w.now + int64(draw(int(simLease/2))))
		}
		w.releaseAll(t)
	})
}

// checkNothingLost fails if a client has lost a hold.
func (w *world) checkNothingLost(t *rapid.T) {
	for _, c := range w.clients {
		for _, h := range c.holds {
			if h.State(c.clock()) == Lost {
				t.Fatalf("at %v %s has lost %s: %v", time.Duration(w.now), c.user, h.Grant.Name, h.Why)
			}
		}
	}
}

// releaseAll releases what is held again and again: so all who wait are granted in turn.
func (w *world) releaseAll(t *rapid.T) {
	for range 40 {
		unfinished := 0
		for _, c := range w.clients {
			for _, h := range c.holds {
				c.m.Release(c.clock(), h, "", tidyCall())
			}
			c.holds = nil
			c.carryOut()
			unfinished += c.m.Calls()
		}
		if unfinished == 0 {
			return
		}
		w.run(w.now + simLease/4)
	}
	for _, c := range w.clients {
		if n := c.m.Calls(); n > 0 {
			t.Errorf("%s has %d requests that never end: %s", c.user, n, c.m.describe())
		}
	}
}
