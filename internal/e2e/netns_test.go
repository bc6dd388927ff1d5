package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/opencluster/oclocks/internal/e2e/daemons"
	"github.com/opencluster/oclocks/subjects"
)

// inNetwork runs the test again in a network of its own: a namespace for each of n nodes and one for the hub, where the
// test and its clients are, which routes between all. It gives a cluster whose nodes are there, nil in the outer test.
func inNetwork(t *testing.T, n int, args ...string) *cluster {
	t.Helper()
	if daemons.InHub() {
		return namespaced(t, n, args)
	}
	run := exec.Command(os.Args[0], "-test.run", "^"+t.Name()+"$", "-test.v")
	bin, err := binDir()
	if err != nil {
		t.Fatal(err)
	}
	run.Env = append(os.Environ(), daemons.BinVariable+"="+bin)
	if err := daemons.IntoHub(run); errors.Is(err, daemons.ErrNoNamespaces) {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	out, err := run.CombinedOutput()
	t.Logf("in the network:\n%s", out)
	if err != nil {
		t.Errorf("in the network: %v", err)
	}
	return nil
}

// namespaced makes and starts the cluster of a network.
func namespaced(t *testing.T, n int, args []string) *cluster {
	t.Helper()
	c := &cluster{t: t, root: t, args: append([]string{"--allow-open-zone-on-any-address"}, args...)}
	var err error
	if c.network, err = daemons.OpenNetwork(); err != nil {
		t.Fatal(err)
	}
	for i := 1; i <= n; i++ {
		if err := c.network.Add(i); err != nil {
			t.Fatal(err)
		}
		c.nodes = append(c.nodes, &node{Node: &daemons.Node{
			Name: fmt.Sprint("n", i), Dir: filepath.Join(t.TempDir(), fmt.Sprint("n", i)),
			Listen: daemons.Address(i) + ":4222", Route: daemons.Address(i) + ":6222", Wrap: daemons.At(i),
		}})
	}
	c.enroll()
	for i := range c.nodes {
		c.start(i)
	}
	return c
}

// cut stops everything that goes from node i to node j; what is on its way back still arrives. It gives what mends it.
func (c *cluster) cut(i, j int) (mend func()) {
	c.t.Helper()
	if err := c.network.Cut(i+1, j+1); err != nil {
		c.t.Fatal(err)
	}
	return func() {
		if err := c.network.Mend(i+1, j+1); err != nil {
			c.t.Fatal(err)
		}
	}
}

// part cuts both ways between the nodes of one side and all others.
func (c *cluster) part(side ...int) (mend func()) {
	c.t.Helper()
	var mends []func()
	for _, i := range side {
		for j := range c.nodes {
			inside := false
			for _, k := range side {
				inside = inside || k == j
			}
			if !inside {
				mends = append(mends, c.cut(i, j), c.cut(j, i))
			}
		}
	}
	return func() {
		for _, m := range mends {
			m()
		}
	}
}

// chainOf is the chain of a name's bucket, as indices of nodes, as node i says.
func (c *cluster) chainOf(i int, name string) []int {
	c.t.Helper()
	bucket := subjects.BucketOf(name, c.info(i).Buckets)
	nc := c.plain(i)
	defer nc.Close()
	var list []int
	deadline := time.Now().Add(patience)
	for len(list) == 0 {
		all, err := c.lookAt(nc, bucket)
		if err == nil && len(all.Buckets) == 1 {
			for _, number := range all.Buckets[0].Chain {
				list = append(list, c.byNumber(all, number))
			}
		}
		if time.Now().After(deadline) {
			c.t.Fatalf("the chain of bucket %d is unknown: %v", bucket, err)
		}
	}
	return list
}

// A cut between a primary and its first secondary, and nothing else: the primary goes on with another one.
func TestCutBetweenPrimaryAndSecondary(t *testing.T) {
	c := inNetwork(t, 3)
	if c == nil {
		return
	}
	c.balanced()
	s := stage(t, c, 1, 2, 100, 0, 1, 2)
	// A client that sits at one end of the cut does not reach the other end's buckets until it has found the third node, which
	// may take two changes of the server, and a session of 10 s may be over by then. Nobody must hold twice all the same.
	s.load.tolerant = true
	chain := c.chainOf(0, s.waiters.name)
	mend := c.part2(chain[0], chain[1])
	s.load.progress(500)
	mend()
	s.load.progress(200)
	c.settled(0, 3)
	s.end()
}

// part2 cuts both ways between two nodes.
func (c *cluster) part2(i, j int) (mend func()) {
	a, b := c.cut(i, j), c.cut(j, i)
	return func() { a(); b() }
}

// A cut in one direction only, from the primary to the others: it hears them and they do not hear it.
func TestOneWayCut(t *testing.T) {
	c := inNetwork(t, 3)
	if c == nil {
		return
	}
	c.balanced()
	s := stage(t, c, 1, 2, 100, 0, 2)
	mends := []func(){c.cut(1, 0), c.cut(1, 2)}
	s.load.progress(500)
	for _, mend := range mends {
		mend()
	}
	s.load.progress(200)
	c.settled(0, 3)
	s.end()
}

// A primary and its first secondary are cut off together. They are the whole in-sync set, so the others go on only after a
// recovery; the two stop by the end of their lease; nobody believes in a lock that another one has.
func TestPrimaryAndSecondaryCutOffTogether(t *testing.T) {
	c := inNetwork(t, 5, "--max-lease", "3s", "--session-lease", "2s")
	if c == nil {
		return
	}
	c.balanced()
	name := c.named(1, "island")
	chain := c.chainOf(0, name)
	var main []int
	for i := range c.nodes {
		if i != chain[0] && i != chain[1] {
			main = append(main, i)
		}
	}
	// Workers on both sides, all at the locks of all buckets.
	load := startLoad(t, []string{c.only(chain[0]), c.only(chain[1]), c.only(main[0]), c.only(main[1])}, 16)
	load.tolerant = true // an island serves nobody
	load.progress(200)
	island := c.plain(chain[0])
	mend := c.part(chain[0], chain[1])
	// The island stops: when its lease has ended nobody there is granted anything any more.
	cut, last := time.Now(), time.Duration(0)
	deadline := time.Now().Add(patience)
	for refused, n := 0, 0; refused < 10; n++ {
		probe := fmt.Sprint("probe", n)
		if subjects.BucketOf(probe, buckets) != subjects.BucketOf(name, buckets) {
			continue // of the bucket whose in-sync set they are, which could go on as far as that is concerned
		}
		subject := fmt.Sprintf("locks.b.%d.acquire.anyone", subjects.BucketOf(name, buckets))
		if a, ok := askAt(island, subject, askTime, fmt.Appendf(nil, `{"name":%q,"kind":"static"}`, probe)); !ok || !a.Granted {
			refused++
		} else {
			refused, last = 0, time.Since(cut)
		}
		if time.Now().After(deadline) {
			t.Fatal("an island of two goes on granting locks")
		}
	}
	t.Logf("the island's last grant came %s after the cut", last)
	if late := 5 * time.Second; last > nodeLease+late { // it may be on its way to us for a while, on a busy machine
		t.Errorf("an island goes on granting locks for %s; its lease is %s", last, nodeLease)
	}
	nc := c.plain(main[0])
	held := holdStatic(t, nc, name) // the others come out of the recovery
	mend()
	c.settled(main[0], 5)
	if again := holdStatic(t, c.plain(chain[0]), name); again.Token != held.Token {
		t.Errorf("after the island came back %s is held by token %d, not %d", name, again.Token, held.Token)
	}
	load.progress(200)
	load.stop()
}
