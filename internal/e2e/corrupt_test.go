package e2e

import (
	"slices"
	"testing"
)

// A change that is damaged on its way, once: the next hop asks again, and nobody hears of it.
func TestCorruptedChangeIsSentAgain(t *testing.T) {
	c := newCluster(t, 3).withFaults()
	for i := range c.nodes {
		c.start(i)
	}
	c.balanced()
	s := stage(t, c, 1, 2, 20, 0, 1, 2)
	c.arm(1, "chain.corrupt=1")
	c.nodes[1].line("fault", "chain.corrupt")
	s.load.progress(200)
	s.end()
	c.whole(c.inside(0), 0, 1, 2)
	for i, n := range c.nodes {
		if n.has(isAlert) {
			t.Errorf("node %d tells an alert after one damaged change", i+1)
		}
	}
	if dropped := c.begunAnew(); len(dropped) > 0 {
		t.Errorf("copies were dropped for one damaged change: %v", dropped)
	}
}

// A change that is damaged each time that it is sent: the next hop finds out by its hash, all nodes are alerted, the copy
// is dropped and joins again, and nobody gets a wrong answer.
func TestCorruptedChangeIsAlerted(t *testing.T) {
	c := newCluster(t, 3).withFaults()
	for i := range c.nodes {
		c.start(i)
	}
	c.balanced()
	s := stage(t, c, 1, 2, 20, 0, 1, 2)
	c.arm(1, "chain.corrupt=1000")
	for _, n := range c.nodes {
		if n.find(isAlert) == nil {
			t.Fatalf("%s never tells an alert", n.Name)
		}
	}
	c.arm(1)
	s.load.progress(200)
	s.end()
	c.whole(c.inside(0), 0, 1, 2)
	if len(c.begunAnew()) == 0 {
		t.Error("no copy was dropped")
	}
}

func isAlert(line map[string]any) bool { return line["msg"] == "ALERT" }

// begunAnew gives the members of chains that have thrown away what they had once: "bucket: member".
func (c *cluster) begunAnew() (list []string) {
	c.t.Helper()
	admin := c.admin(0)
	views, err := admin.Views(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	for _, v := range views {
		for _, m := range v.View.Chain {
			if uint32(m.Inc) > 0 {
				list = append(list, m.String())
			}
		}
	}
	slices.Sort(list)
	return list
}
