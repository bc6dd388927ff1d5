package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/nats-io/nats.go"
)

// estate is static locks in most of the buckets, and what is known of them.
type estate struct {
	*cluster
	nc    *nats.Conn
	names []string
	held  map[string]answer
}

// settle takes static locks, in most of the buckets.
func settle(t *testing.T, c *cluster, home int) *estate {
	t.Helper()
	e := &estate{cluster: c, nc: c.plain(home), held: make(map[string]answer)}
	for k := range buckets {
		e.names = append(e.names, fmt.Sprint("estate", k))
	}
	e.take("first")
	return e
}

func (e *estate) take(request string) {
	e.t.Helper()
	for _, name := range e.names {
		e.held[name] = takeStatic(e.t, e.nc, name, request)
	}
}

// move gives all locks to others.
func (e *estate) move(request string) {
	e.t.Helper()
	for _, name := range e.names {
		before := e.held[name]
		release(e.t, e.nc, name, before)
		e.held[name] = takeStatic(e.t, e.nc, name, request)
		if e.held[name].Token <= before.Token {
			e.t.Errorf("%s: token %d after %d", name, e.held[name].Token, before.Token)
		}
	}
}

// check judges that every lock is held by whom it was granted to last, and by nobody else. The same request is answered with
// the same grant; another one is refused.
func (e *estate) check(nc *nats.Conn, request string) {
	e.t.Helper()
	for _, name := range e.names {
		held := e.held[name]
		if a := takeStatic(e.t, nc, name, request); a.Token != held.Token || a.Key != held.Key {
			e.t.Errorf("%s: token %d and key %s, not %d and %s", name, a.Token, a.Key, held.Token, held.Key)
		}
		a := askUntil(e.t, nc, "acquire", name, fmt.Appendf(nil, `{"name":%q,"kind":"static","ttl":"10m"}`, name), answered)
		if a.Granted {
			e.t.Errorf("%s is granted with token %d while %d holds it", name, a.Token, held.Token)
		}
	}
}

// victim is a node that does not lead, and the two others.
func (c *cluster) victim() (victim int, others []int) {
	c.t.Helper()
	lead := c.leads()
	victim = (lead + 1) % 3
	return victim, []int{lead, (lead + 2) % 3}
}

// leads is the index of the node that leads the control plane.
func (c *cluster) leads() int {
	c.t.Helper()
	wanted := make([]int, len(c.nodes))
	for i := range wanted {
		wanted[i] = i
	}
	lead := -1
	c.until(c.inside(0), "somebody leads", wanted, func(all map[int]*inner) bool {
		for i, in := range all { // order: one leads at the most in a term
			if in.Leading {
				lead = i
			}
		}
		return lead >= 0
	})
	return lead
}

// A node that comes back with an empty memory, or with an old copy of its directory, is not counted for what it had: as soon
// as it is there, another one dies that does have it.
func TestReturningNode(t *testing.T) {
	c := newCluster(t, 3).withFaults()
	for i := range c.nodes {
		c.start(i)
	}
	c.balanced()
	e := settle(t, c, 0)
	t.Run("with an empty memory", func(t *testing.T) {
		c.use(t)
		defer c.use(c.root)
		returns(t, e, "second", func(dir string) {
			for _, name := range []string{"journal", "control.db"} {
				if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
					t.Fatal(err)
				}
			}
		}, nil)
	})
	t.Run("with an old disk", func(t *testing.T) {
		c.use(t)
		defer c.use(c.root)
		returns(t, e, "third", func(dir string) {
			if err := os.Rename(dir+".old", dir); err != nil {
				t.Fatal(err)
			}
		}, func(dir string) { copyDir(t, dir, dir+".old") })
	})
}

// returns kills a node, has everything change that it had, changes its directory and brings it back. When the control plane
// counts on it, and its copies have heard nothing yet, the node dies that leads, which was in its chains. early is called
// while the node is down for the first time.
func returns(t *testing.T, e *estate, request string, change, early func(dir string)) {
	t.Helper()
	c := e.cluster
	victim, others := c.victim()
	lead, other := others[0], others[1]
	dir := c.nodes[victim].Dir
	e.nc = c.plain(other)
	inside := c.inside(other)
	if early != nil {
		c.stop(victim)
		early(dir)
		c.start(victim)
		e.move(request + " before")
		c.whole(inside, 0, 1, 2)
	}
	c.kill(victim)
	e.move(request)
	if early != nil {
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	}
	change(dir)
	c.arm(victim, "control.hold=1")
	c.launch(victim)
	c.votes(inside, victim)
	c.kill(lead)
	e.check(e.nc, request)
	c.arm(victim)
	c.nodes[victim].serving()
	c.start(lead)
	c.whole(inside, 0, 1, 2)
	for i := range c.nodes {
		e.check(c.plain(i), request)
	}
}

// votes waits until a node is a voter of the control plane and has a lease.
func (c *cluster) votes(inside *nats.Conn, i int) {
	c.t.Helper()
	c.until(inside, "the node votes", []int{i}, func(all map[int]*inner) bool { return all[i].Voter && all[i].Lease > 0 })
}

// A daemon with another node's identifier and certificate. While that one lives it is refused, and nobody is disturbed; when
// it is dead it takes its place, but is not counted for what the dead one had, and the dead one cannot come back beside it.
func TestAnotherNodesIdentifier(t *testing.T) {
	c := startCluster(t, 3)
	c.balanced()
	e := settle(t, c, 0)
	victim, others := c.victim()
	e.nc = c.plain(others[1])
	twin := newNodes(t, 3, 1)[0]
	copyDir(t, c.nodes[victim].Dir, twin.Dir)
	for _, name := range []string{"journal", "control.db"} {
		if err := os.RemoveAll(filepath.Join(twin.Dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	twin.ID = c.nodes[victim].ID
	c.nodes = append(c.nodes, twin)
	c.launch(3)
	twin.wait()
	if code := twin.Cmd.ProcessState.ExitCode(); code == 0 || twin.has(func(l map[string]any) bool { return l["msg"] == "serving" }) {
		t.Fatalf("a second node with the identifier of a live one was let in (exit code %d)", code)
	}
	e.check(e.nc, "first")

	c.kill(victim)
	e.move("second")
	c.start(3)
	c.votes(c.inside(others[1]), victim) // by its identifier
	c.kill(others[0])
	e.check(e.nc, "second")
	dead := c.nodes[victim]
	c.launch(victim)
	dead.wait()
	if dead.has(func(l map[string]any) bool { return l["msg"] == "serving" }) {
		t.Error("a node came back whose identifier another one has")
	}
	c.start(others[0])
	c.nodes = slices.Delete(slices.Clone(c.nodes), victim, victim+1)
	c.whole(c.inside(len(c.nodes)-1), 0, 1, 2)
	e.check(e.nc, "second")
}
