package e2e

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/opencluster/oclocks/conf"
	"github.com/opencluster/oclocks/conf/shared"
)

// join adds a node with a join token, and returns when it serves.
func (c *cluster) join() {
	c.t.Helper()
	n := newNodes(c.root, len(c.nodes), 1)[0]
	token := tool(c.t, "oclocks-startup", "token", "--data", c.nodes[0].Dir, "--at", "nats://"+c.nodes[0].Listen)
	n.Env = append(n.Env, "OCLOCKS_JOIN_TOKEN="+strings.TrimSpace(token))
	c.nodes = append(c.nodes, n)
	c.start(len(c.nodes) - 1)
	id, err := conf.NodeID(n.Dir)
	if err != nil {
		c.t.Fatal(err)
	}
	n.ID, n.Env = id, nil
}

// remove stops a node in good order and has the cluster forget it.
func (c *cluster) remove(n *node) {
	c.t.Helper()
	n.signal(syscall.SIGTERM)
	n.wait()
	tool(c.t, "oclocks-config", "--data", c.nodes[0].Dir, "nodes", "remove", n.Name)
	c.nodes = slices.DeleteFunc(slices.Clone(c.nodes), func(m *node) bool { return m == n })
}

// A fourth and a fifth node come, and two others go for ever, one of them the primary of the held lock, under load.
func TestGrowAndShrinkUnderLoad(t *testing.T) {
	c := startCluster(t, 3)
	c.balanced()
	s := stage(t, c, 1, 2, 100, 0, 2)
	c.join()
	s.load.progress(100)
	c.join()
	c.balanced()
	c.chained(5)
	s.load.progress(100)
	c.remove(c.nodes[4])
	s.load.progress(100)
	c.remove(c.nodes[1])
	c.chained(3)
	state, err := c.admin(0).State(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(state.Nodes) != 3 {
		t.Errorf("there are %d nodes, not 3: %+v", len(state.Nodes), state.Nodes)
	}
	s.end()
	c.whole(c.inside(0), 0, 1, 2)
}

// Twenty daemons on one machine elect, balance and serve, and go on when three of them die.
func TestTwentyDaemons(t *testing.T) {
	if testing.Short() {
		t.Skip("twenty processes")
	}
	const n = 20
	c := newCluster(t, n, "--node-lease", "4s")
	begin := time.Now()
	c.start(0)
	tool(t, "oclocks-config", "--data", c.nodes[0].Dir, "set", "copies", "5")
	for i := 1; i < n; i++ { // all at once would be some thousand TLS handshakes at one time
		c.start(i)
	}
	t.Logf("%d daemons serve after %s", n, time.Since(begin))
	c.spread(n-4, 2) // a bucket is moved among its copies only
	t.Logf("they are balanced after %s; each has %v MiB", time.Since(begin), c.resident())
	s := stage(t, c, 1, 2, 100, 2, 3, 4, 5)
	for _, victim := range []int{c.leads(), 1, n - 1} {
		c.redundant()
		c.kill(victim)
		s.load.progress(100)
	}
	c.redundant()
	s.end()
}

// resident is how much memory each daemon has: the least and the most.
func (c *cluster) resident() (span [2]int) {
	c.t.Helper()
	span[0] = 1 << 30
	for _, n := range c.nodes {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", n.Cmd.Process.Pid))
		if err != nil {
			c.t.Fatal(err)
		}
		var size, pages int
		if _, err := fmt.Sscan(string(text), &size, &pages); err != nil {
			c.t.Fatal(err)
		}
		mib := pages * os.Getpagesize() >> 20
		span = [2]int{min(span[0], mib), max(span[1], mib)}
	}
	return span
}

// redundant waits until every bucket has two members that every answer waits for, and all of them are alive.
func (c *cluster) redundant() { c.views("two copies that count", c.poor) }

// chained waits until every bucket has n members, and two that every answer waits for.
func (c *cluster) chained(n int) {
	c.views(fmt.Sprint(n, " copies"), func(nodes []shared.Node, v shared.BucketView) bool {
		return len(v.View.Chain) != n || c.poor(nodes, v)
	})
}

// views waits until no bucket's view is bad any more.
func (c *cluster) views(what string, bad func([]shared.Node, shared.BucketView) bool) {
	c.t.Helper()
	alive := slices.IndexFunc(c.nodes, func(n *node) bool { return n.alive() })
	admin := c.admin(alive)
	for deadline := time.Now().Add(3 * patience); ; {
		views, err := admin.Views(c.t.Context())
		state, err2 := admin.State(c.t.Context())
		worst := -1
		if err == nil && err2 == nil {
			if worst = slices.IndexFunc(views, func(v shared.BucketView) bool { return bad(state.Nodes, v) }); worst < 0 {
				return
			}
		}
		if time.Now().After(deadline) {
			c.t.Fatalf("not every bucket has %s after %s: %v %v %v", what, 3*patience, err, err2, views[max(worst, 0):])
		}
		<-time.After(20 * time.Millisecond)
	}
}

// poor says that less than two members of the in-sync set are there, or that one of it is dead.
func (c *cluster) poor(nodes []shared.Node, v shared.BucketView) bool {
	for _, m := range v.View.Chain[:v.View.InSync] {
		at := slices.IndexFunc(nodes, func(n shared.Node) bool { return n.Number == m.Node })
		if at < 0 || !slices.ContainsFunc(c.nodes, func(n *node) bool { return n.ID == nodes[at].ID && n.alive() }) {
			return true
		}
	}
	return v.View.InSync < 2
}
