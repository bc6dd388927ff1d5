package machine

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/opencluster/oclocks/bucket"
	"github.com/opencluster/oclocks/subjects"
	"pgregory.net/rapid"
)

var simNames = []string{"a", "b", "c", "d", "e"}

// TestTrustNeverOutlivesTheHold: whatever the network does, a client that trusts a lock has it at the broker; and when all
// is well again nothing is left behind: no hold, no waiter, no request. (DESIGN section 6, promise 1 of section 7.)
func TestTrustNeverOutlivesTheHold(t *testing.T) {
	if err := flag.Set("rapid.nofailfile", "true"); err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) { simulate(t) })
}

func simulate(t *rapid.T) {
	draw := func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "n") }
	w := newWorld(draw, t.Logf, 0.9, 1, 1.1)
	w.totals = draw(4) == 0
	w.useLanes(draw(2) * 2)
	w.inStep(draw(2) == 1)
	w.checks = func() { w.checkTrust(t) }
	w.trouble = true
	for range rapid.IntRange(1, 60).Draw(t, "steps") {
		c := w.clients[draw(len(w.clients))]
		w.act(t, c, draw(20))
		w.run(w.now + int64(draw(int(simLease/2))))
	}
	w.calmDown(t)
}

// act lets a client, or the world around it, do one thing.
func (w *world) act(t *rapid.T, c *simClient, what int) {
	switch {
	case what < 6:
		if c.paused <= w.now {
			c.acquire(t)
		}
	case what < 9:
		if len(c.holds) > 0 && c.paused <= w.now {
			i := w.draw(len(c.holds))
			c.m.Release(c.clock(), c.holds[i], "", tidyCall())
			c.holds = append(c.holds[:i], c.holds[i+1:]...)
		}
	case what == 9:
		if len(c.calls) > 0 && c.paused <= w.now {
			call := c.calls[w.draw(len(c.calls))]
			c.m.GiveUp(c.clock(), call)
		}
	case what == 10:
		c.disconnect()
	case what == 11:
		c.paused = max(c.paused, w.now+int64(w.draw(int(2*simLease))))
	case what == 12:
		w.handOver(w.draw(simBuckets))
	case what == 13:
		w.refuse = w.now + int64(w.draw(int(simLease)))
	case what == 14:
		w.force(simNames[w.draw(len(simNames))])
	case what == 15:
		w.kill(w.nodes[w.draw(len(w.nodes))])
	case what == 16:
		w.freeze(w.nodes[w.draw(len(w.nodes))])
	case what == 17:
		c.breakLane(c.someLane())
	case what == 18:
		c.muteLane(c.someLane())
	}
	c.carryOut()
}

func (c *simClient) acquire(t *rapid.T) {
	req := &subjects.Request{Op: subjects.OpAcquire, Name: simNames[c.w.draw(len(simNames))]}
	switch c.w.draw(5) {
	case 0:
		req.Mode = subjects.Shared
	case 1:
		req.Kind, req.TTL, req.Has = subjects.Static, time.Duration(simLease), subjects.HasTTL
	case 2:
		req.TTL, req.Has = time.Duration(2*simLease), subjects.HasTTL
	}
	call := &Call{Req: req, Hold: &Hold{}, Endless: c.w.draw(3) > 0}
	if err := c.m.Submit(c.clock(), call); err != nil {
		t.Fatal(err)
	}
	c.calls = append(c.calls, call)
}

// force ends a holder of a name in the orderly way: it may confirm, or its lease runs out.
func (w *world) force(name string) {
	best := uint64(0)
	for token := range w.holders(name) {
		best = max(best, token)
	}
	if b := int(subjects.BucketOf(name, simBuckets)); best != 0 && w.buckets[b].primary != nil {
		req := &subjects.Request{Op: subjects.OpForce, Name: name, Token: best}
		w.step(b, &bucket.Input{Zone: simZone, User: "admin", Req: req})
	}
}

// checkTrust compares what the clients believe with what the broker has.
func (w *world) checkTrust(t *rapid.T) {
	w.tick()
	exclusive := map[string]string{}
	for _, c := range w.clients {
		for _, h := range c.holds {
			if s := h.State(c.clock()); s != Held && s != Suspect {
				continue
			}
			name := h.Grant.Name
			mode, held := w.holders(name)[h.Grant.Token]
			if !held {
				t.Fatalf("at %v %s trusts %s (token %d) for another %v, and the broker has ended it",
					time.Duration(w.now), c.user, name, h.Grant.Token, h.Left(c.clock()))
			}
			if other := exclusive[name]; other != "" && mode == subjects.Exclusive {
				t.Fatalf("at %v %s and %s both trust %s", time.Duration(w.now), other, c.user, name)
			}
			if mode == subjects.Exclusive {
				exclusive[name] = c.user
			}
		}
	}
}

// calmDown repairs everything, gives everything up, and looks for what is left.
func (w *world) calmDown(t *rapid.T) {
	w.trouble, w.refuse = false, 0
	w.run(w.now + 4*simLease) // what is late arrives, pauses end, nodes and connections come back
	for _, c := range w.clients {
		c.m.KeepSession(c.clock()) // so that nothing ends because its session does
		for _, call := range c.calls {
			c.m.GiveUp(c.clock(), call)
		}
		for _, h := range c.holds {
			if h.State(c.clock()) != Lost || h.forced { // the others are released without being asked
				c.m.Release(c.clock(), h, "", tidyCall())
			}
		}
		c.carryOut()
	}
	w.run(w.now + 3*simLease)
	for _, c := range w.clients {
		if n := c.m.Calls(); n != 0 {
			t.Errorf("%s has %d unfinished requests: %s", c.user, n, c.m.describe())
		}
		c.m.exorcise() // what the broker has confirmed, and only a later keep-alive would forget
		if n := len(c.m.holds) + len(c.m.ghosts); n != 0 {
			t.Errorf("%s keeps %d holds in mind: %s", c.user, n, c.m.describeHolds())
		}
		if s := &c.m.session; s.leased != 0 || s.acquiring != 0 || c.m.checking != 0 {
			t.Errorf("%s counts wrongly: %d leased, %d acquiring, %d checking", c.user, s.leased, s.acquiring, c.m.checking)
		}
	}
	for b, table := range w.tables {
		if u := table.Usage(simZone); u.Holds != 0 || u.Waiters != 0 {
			t.Errorf("bucket %d has %d holds and %d waiters that nobody wants", b, u.Holds, u.Waiters)
		}
	}
}

// describe draws the unfinished requests.
func (m *Machine) describe() string {
	var b strings.Builder
	for _, l := range []*callList{&m.others, &m.session.flight} {
		for c := l.head; c != nil; c = c.next {
			b.WriteString(c.Req.Op.String() + " " + c.Req.Name + "; ")
		}
	}
	return b.String()
}

// describeHolds draws what the machine keeps in mind.
func (m *Machine) describeHolds() string {
	var b strings.Builder
	for _, h := range append(slices.Clone(m.holds), m.ghosts...) {
		fmt.Fprintf(&b, "%s %s token %d, list %d, end %d, gone at %d, release at %d; ", h.Grant.Name, h.phase, h.Grant.Token,
			h.list, h.end(), h.goneAt, h.releaseAt)
	}
	return b.String()
}
