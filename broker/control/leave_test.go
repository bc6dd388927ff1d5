package control

import (
	"errors"
	"testing"
	"time"

	"github.com/opencluster/oclocks/broker/control/reign"
)

// primaryOfSomething waits until the buckets are balanced: the founder has them all at first.
func (n *node) primaryOfSomething() {
	n.t.Helper()
	n.copies.until("it is primary of something", func(c *copies) bool {
		for _, v := range c.views {
			if v.Primary() == c.self {
				return true
			}
		}
		return false
	})
}

func TestLeaveHandsEverythingOver(t *testing.T) {
	k, nodes := three(t)
	for _, what := range []string{"the leader", "a follower"} {
		lead, others := leader(t, nodes...)
		gone, rest := lead, others
		if what == "a follower" {
			gone, rest = others[0], []*node{lead, others[1]}
		}
		gone.primaryOfSomething()
		began := time.Now()
		if err := gone.c.Leave(within(t)); err != nil {
			t.Fatal(err)
		}
		t.Logf("%s left in %v", what, time.Since(began))
		number := gone.number()
		if left := reign.Primaries(gone.c.State(), number); left > 0 {
			t.Errorf("it left as primary of %d buckets", left)
		}
		if gone.c.Status().Leading {
			t.Error("it left as the leader")
		}
		for _, n := range rest {
			n.copies.until("it is away", func(c *copies) bool { return c.away[number] })
		}
		gone.close()
		k.complete(rest...)
		gone.cfg.Found = nil
		nodes = append(rest, k.join(gone.cfg))
		k.complete(nodes...)
		k.vote(nodes...)
	}
}

func TestTheLastOneCannotHandOver(t *testing.T) {
	k := newCluster(t)
	first := k.config(1)
	first.Found = k.found
	a := k.join(first)
	a.primaryOfSomething()
	if err := a.c.Leave(within(t)); !errors.Is(err, ErrAlone) {
		t.Errorf("the last one left: %v", err)
	}
}

// TestAWholeClusterStops: each node hands over to those that are left; the last one, who has no majority any more, notices
// that nobody is.
func TestAWholeClusterStops(t *testing.T) {
	_, nodes := three(t)
	for i, n := range nodes {
		began := time.Now()
		err := n.c.Leave(within(t))
		t.Logf("node %d left in %v: %v", i+1, time.Since(began), err)
		if last := i == len(nodes)-1; last != errors.Is(err, ErrAlone) || !last && err != nil {
			t.Errorf("node %d left: %v", i+1, err)
		}
		n.close()
	}
}

// TestANodeThatLeftComesBack: neither its farewell nor its old lease is in its way.
func TestANodeThatLeftComesBack(t *testing.T) {
	k, nodes := three(t)
	lead, others := leader(t, nodes...)
	gone := others[0]
	if err := gone.c.Leave(within(t)); err != nil {
		t.Fatal(err)
	}
	cfg, number := gone.cfg, gone.number()
	gone.close()
	cfg.Found = nil
	began := time.Now()
	back := k.join(cfg)
	t.Logf("registered again in %v", time.Since(began))
	if back.number() != number {
		t.Errorf("it was %d and is %d", number, back.number())
	}
	for _, n := range []*node{lead, others[1]} {
		n.copies.until("it is back", func(c *copies) bool { return !c.away[number] })
	}
	k.complete(lead, others[1], back)
}
