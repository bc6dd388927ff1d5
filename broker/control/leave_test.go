package control

import (
	"errors"
	"testing"
	"time"
)

// balanced says that somebody is primary of something, since a hand-over of nothing proves nothing.
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
	for len(nodes) > 1 {
		lead, others := leader(t, nodes...)
		lead.primaryOfSomething() // the founder has it all before the buckets are balanced
		began := time.Now()
		if err := lead.c.Leave(within(t)); err != nil {
			t.Fatal(err)
		}
		took := time.Since(began)
		number := lead.number()
		if left := primaries(lead.c.State(), number); left > 0 {
			t.Errorf("it left as primary of %d buckets", left)
		}
		if lead.c.Status().Leading {
			t.Error("it left as the leader")
		}
		t.Logf("left in %v", took)
		for _, n := range others {
			n.copies.until("it is away", func(c *copies) bool { return c.away[number] })
		}
		lead.close()
		k.complete(others...)
		nodes = others
	}
	nodes[0].primaryOfSomething()
	if err := nodes[0].c.Leave(within(t)); !errors.Is(err, ErrAlone) {
		t.Errorf("the last one: %v", err)
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
