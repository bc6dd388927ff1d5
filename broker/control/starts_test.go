package control

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/opencluster/oclocks/arbiter"
	"github.com/opencluster/oclocks/broker/control/flow"
	"github.com/opencluster/oclocks/conf/shared"
)

// threeOnDisk are three voters with a directory each.
func threeOnDisk(t *testing.T) (*cluster, []*node) {
	t.Helper()
	k := newCluster(t)
	var nodes []*node
	for i := range 3 {
		cfg := k.config(i + 1)
		cfg.Dir = t.TempDir()
		if i == 0 {
			cfg.Found = k.found
		}
		nodes = append(nodes, k.join(cfg))
	}
	k.complete(nodes...)
	k.vote(nodes...)
	return k, nodes
}

// known waits until these nodes have heard of a node's last start: that they have its buckets' views does not say so.
func (k *cluster) known(of *node, by ...*node) {
	k.t.Helper()
	eventually(k.t, "its last start is known", func() bool {
		return !slices.ContainsFunc(by, func(n *node) bool {
			is := n.c.State().Node(of.number())
			return is == nil || is.Start != of.c.start
		})
	})
}

// copyStore gives a copy of the control store in a directory, and a function that puts it back.
func copyStore(t *testing.T, dir string) (putBack func()) {
	t.Helper()
	path := filepath.Join(dir, "control.db")
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestAnOldDiskIsAnotherLife puts back a copy of a directory from before the node's last start.
func TestAnOldDiskIsAnotherLife(t *testing.T) {
	k, nodes := threeOnDisk(t)
	lead, others := leader(t, nodes...)
	victim := others[0]
	cfg, number := victim.cfg, victim.number()
	cfg.Found = nil
	victim.close()
	putBack := copyStore(t, cfg.Dir)

	back := k.join(cfg)
	id, raft := back.c.identity(), back.c.store.RaftID()
	if id.Number != number || id.Life != 1 {
		t.Fatalf("after a restart: %+v", id)
	}
	k.complete(lead, others[1], back)
	k.known(back, lead, others[1])
	back.close()

	putBack()
	old := k.join(cfg)
	if id := old.c.identity(); id.Number != number || id.Life != 2 {
		t.Errorf("with an old disk: %+v", id)
	}
	if old.c.store.RaftID() == raft {
		t.Error("the old control store takes part in the group")
	}
	k.complete(lead, others[1], old)
	k.vote(lead, others[1], old)
	old.close()

	again := k.join(cfg)
	if id := again.c.identity(); id.Life != 2 {
		t.Errorf("restarted after that: %+v", id)
	}
	k.complete(lead, others[1], again)
}

// TestAnOldDiskIsFoundOutAfterwards: nobody could tell it before its control store took part.
func TestAnOldDiskIsFoundOutAfterwards(t *testing.T) {
	k, nodes := threeOnDisk(t)
	lead, others := leader(t, nodes...)
	victim := others[0]
	cfg := victim.cfg
	cfg.Found = nil
	victim.close()
	putBack := copyStore(t, cfg.Dir)
	back := k.join(cfg)
	k.complete(lead, others[1], back)
	k.known(back, lead, others[1]) // two of the three are enough to register it, and one of those two is put back
	for _, n := range []*node{back, lead, others[1]} {
		n.close()
	}
	putBack()
	old, err := k.start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	var rest []*node
	for _, n := range []*node{lead, others[1]} {
		again, err := k.start(n.cfg)
		if err != nil {
			t.Fatal(err)
		}
		rest = append(rest, again)
	}
	if _, _, _, err := old.c.WaitRegistered(within(t)); !errors.Is(err, ErrOldDisk) {
		t.Fatalf("with an old disk: %v", err)
	}
	old.close()
	old = k.join(cfg)
	if id := old.c.identity(); id.Life != 2 {
		t.Errorf("with an old disk: %+v", id)
	}
	for _, n := range rest {
		n.serve()
		if id := n.c.identity(); id.Life != 1 {
			t.Errorf("another one: %+v", id)
		}
	}
	k.complete(append(rest, old)...)
}

// TestTheOnlyVoterWithAnOldDiskStops: it would take back what was decided.
func TestTheOnlyVoterWithAnOldDiskStops(t *testing.T) {
	k := newCluster(t)
	first, second := k.config(1), k.config(2)
	first.Found, first.Dir, second.Dir = k.found, t.TempDir(), t.TempDir()
	a := k.join(first)
	b := k.join(second)
	k.complete(a, b)
	a.close()
	putBack := copyStore(t, first.Dir)
	a = k.join(first)
	k.complete(a, b)
	k.known(a, b) // the only voter decides without it
	a.close()
	newest := copyStore(t, first.Dir)
	putBack()
	if _, err := k.start(first); !errors.Is(err, ErrOldVoter) {
		t.Fatalf("with an old disk: %v", err)
	}
	newest()
	a = k.join(first)
	if id := a.c.identity(); id.Life != 1 {
		t.Errorf("with the newest disk: %+v", id)
	}
	k.complete(a, b)
}

// TestStartsThatWereNotHeardOfAreNoNewLife: a process that died before it was registered, and one that was registered and
// died before it was told.
func TestStartsThatWereNotHeardOfAreNoNewLife(t *testing.T) {
	k, nodes := threeOnDisk(t)
	lead, others := leader(t, nodes...)
	victim := others[0]
	cfg := victim.cfg
	cfg.Found = nil
	me := *lead.c.State().Node(victim.number())
	victim.close()

	const unheard, registered = 11, 12
	store, err := arbiter.OpenStore(filepath.Join(cfg.Dir, "control.db"))
	if err != nil {
		t.Fatal(err)
	}
	kept, err := store.Kept()
	if err != nil {
		t.Fatal(err)
	}
	disk, err := decodeMessage[flow.Starts](kept)
	if err != nil || disk.Known != me.Start || disk.Change != me.Registered || len(disk.Since) > 0 {
		t.Fatalf("the disk knows %+v, registered is %+v: %v", disk, me, err)
	}
	disk = disk.Begin(unheard).Begin(registered)
	if err := errors.Join(store.Keep(encode(disk)), store.Close()); err != nil {
		t.Fatal(err)
	}
	command := shared.Command{Register: &shared.Register{
		ID: me.ID, Raft: me.Raft, Name: me.Name, Start: registered, Starts: disk.Before(registered),
	}}
	_, result, err := lead.c.arb.Propose(within(t), command.Encode())
	if res, _ := result.(shared.Result); err != nil || res.Err() != nil {
		t.Fatal(err, res)
	}
	back := k.join(cfg)
	if id := back.c.identity(); id.Number != me.Number || id.Life != 1 || back.c.store.RaftID() != me.Raft {
		t.Errorf("came back as %+v, was %+v", id, me)
	}
	k.complete(lead, others[1], back)

	// The one that died before it was registered asks at last.
	late := shared.Register{ID: me.ID, Raft: me.Raft, Name: me.Name, Start: unheard, Starts: disk.Before(unheard)[:1]}
	answer := admission{WaitMS: 1}
	for answer.WaitMS > 0 && !answer.Duplicate {
		if answer, err = decodeMessage[admission](back.request(subjectRegister, encode(late))); err != nil {
			t.Fatal(err)
		}
	}
	if !answer.Duplicate && answer.Kind != "old_disk" {
		t.Errorf("a start that is over is registered: %+v", answer)
	}
	now := lead.c.State().Node(me.Number)
	if slices.Contains([]uint64{unheard, registered}, now.Start) || now.Life != 1 {
		t.Errorf("the node is now %+v", now)
	}
}

// TestTheClustersLeaseCounts: a node that was told of another one takes part with the cluster's, also after a restart in which
// nobody can tell it. One that could not ask before is not let in with its own.
func TestTheClustersLeaseCounts(t *testing.T) {
	k := newCluster(t)
	first, second := k.config(1), k.config(2)
	first.Found, first.Dir, second.Dir = k.found, t.TempDir(), t.TempDir()
	second.NodeLease = 3 * testLease
	b, err := k.start(second) // nobody is there whom it could ask
	if err != nil {
		t.Fatal(err)
	}
	a := k.join(first)
	if _, _, _, err := b.c.WaitRegistered(within(t)); !errors.Is(err, ErrLease) {
		t.Fatalf("a node with another node_lease: %v", err)
	}
	b.close()
	b = k.join(second)
	k.complete(a, b)
	if b.c.lease != testLease {
		t.Errorf("it takes part with %v", b.c.lease)
	}
	a.close()
	b.close()
	first.NodeLease = 2 * testLease
	for _, cfg := range []Config{first, second} { // the first one, alone, is the voter
		n, err := k.start(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if n.c.lease != testLease {
			t.Errorf("restarted, %s takes part with %v", cfg.Name, n.c.lease)
		}
		n.serve()
	}
	result, err := k.nodes[len(k.nodes)-1].c.Change(within(t), shared.Command{Set: &shared.Set{Settings: map[string]string{"node_lease": "1s"}}})
	if err != nil || !errors.Is(result.Err(), shared.ErrValue) {
		t.Errorf("node_lease is changed while nodes hold leases: %v, %v", result, err)
	}
}
