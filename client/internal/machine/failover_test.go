package machine

import (
	"fmt"
	"testing"
	"time"

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
				c.m.Release(c.clock(), swallowed.Hold, "", nil)
			}
			holder.m.Release(holder.clock(), held.Hold, "", nil)
			c.carryOut()
			holder.carryOut()
			w.run(w.now + 1e6)
			if waits.Result.Grant == nil || late.Result.Grant == nil {
				t.Errorf("the waiter got %+v, who came in the vacancy %+v", waits.Result, late.Result)
			}
		})
	}
}

func submit(t *testing.T, c *simClient, name string, endless bool) *Call {
	t.Helper()
	call := &Call{Req: &subjects.Request{Op: subjects.OpAcquire, Name: name}, Hold: &Hold{}, Endless: endless}
	must(t, c.m.Submit(c.clock(), call))
	c.carryOut()
	return call
}
