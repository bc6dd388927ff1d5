package control

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/opencluster/oclocks/arbiter/core"
	"github.com/opencluster/oclocks/conf/shared"
	"github.com/opencluster/oclocks/internal/boottime"
)

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// eventually waits for a condition that nobody tells of.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	for deadline := time.Now().Add(patience); !is(); <-ticker.C {
		if time.Now().After(deadline) {
			t.Fatalf("in vain: %s", what)
		}
	}
}

// request asks whoever leads, and again where nobody does, or does not answer: an election may be on its way.
func (n *node) request(subject string, body []byte) (answer []byte) {
	n.t.Helper()
	eventually(n.t, "an answer on "+subject, func() bool {
		msg, err := n.conn.Request(subject, body, requestWait)
		if err != nil && !errors.Is(err, nats.ErrNoResponders) && !errors.Is(err, nats.ErrTimeout) {
			n.t.Fatal(err)
		}
		if err == nil {
			answer = msg.Data
		}
		return err == nil
	})
	return answer
}

// leader waits until one of the nodes leads, and gives it and the others.
func leader(t *testing.T, nodes ...*node) (*node, []*node) {
	t.Helper()
	var lead *node
	eventually(t, "somebody leads", func() bool {
		for _, n := range nodes {
			if n.c.Status().Leading && n.c.reigning() != nil {
				lead = n
			}
		}
		return lead != nil
	})
	return lead, slices.DeleteFunc(slices.Clone(nodes), func(n *node) bool { return n == lead })
}

func TestThreeNodesBecomeACluster(t *testing.T) {
	_, nodes := three(t)
	for i, n := range nodes {
		if n.number() != uint64(i+1) {
			t.Errorf("node %d has number %d", i+1, n.number())
		}
		n.copies.until("a lease, with all three alive", func(c *copies) bool {
			return c.live == 3 && c.lease.Until > boottime.Now() && c.lease.Under > 0
		})
	}
	// Leases go on without anything else happening.
	c := nodes[2].copies
	c.mu.Lock()
	grants, until := c.grants, c.lease.Until
	c.mu.Unlock()
	c.until("the lease is renewed", func(c *copies) bool { return c.grants >= grants+3 && c.lease.Until > until })

	// The founder is the only voter until there are three; then all vote.
	list, err := nodes[1].c.Cluster(within(t))
	if err != nil || len(list) != 3 {
		t.Fatalf("%d statuses, %v", len(list), err)
	}
	for i, s := range list {
		if s.Number != uint64(i+1) || s.Lease <= 0 || s.Leader == 0 || s.Change == 0 {
			t.Errorf("status %+v", s)
		}
		if s.Change == list[0].Change && s.Digest != list[0].Digest {
			t.Errorf("digest %x, and %x at the same change", s.Digest, list[0].Digest)
		}
	}
}

// TestAKilledNodeIsReplaced kills nodes without a word, a follower and then the leader, and demands that the others get
// views in which it is primary of nothing, and not before its lease has ended.
func TestAKilledNodeIsReplaced(t *testing.T) {
	k, nodes := three(t)
	for _, what := range []string{"a follower", "the leader"} {
		lead, others := leader(t, nodes...)
		victim, rest := others[0], []*node{lead, others[1]}
		if what == "the leader" {
			victim, rest = lead, others
		}
		victim.primaryOfSomething()
		victim.copies.mu.Lock()
		lease := victim.copies.lease.Until
		victim.copies.mu.Unlock()
		killed := boottime.Now()
		victim.close()
		number := victim.number()
		for _, n := range rest {
			n.copies.until("nothing belongs to "+what, func(c *copies) bool {
				for _, v := range c.views {
					if v.Primary().Node == number {
						return false
					}
				}
				return true
			})
		}
		now := boottime.Now()
		t.Logf("%s: killed to installed %v, its lease ended %v after the kill", what, time.Duration(now-killed), time.Duration(lease-killed))
		if now < lease {
			t.Errorf("%s: its buckets were taken %v before its lease ended", what, time.Duration(lease-now))
		}
		victim.cfg.Found = nil
		nodes = append(rest, k.join(victim.cfg))
		k.complete(nodes...)
		k.vote(nodes...)
	}
}

func TestARestartedNodeIsWhoItWas(t *testing.T) {
	k := newCluster(t)
	first := k.config(1)
	first.Found, first.Dir = k.found, t.TempDir()
	a := k.join(first)
	second := k.config(2)
	second.Dir = t.TempDir()
	b := k.join(second)
	k.complete(a, b)

	b.close()
	b = k.join(second)
	if b.number() != 2 || b.c.identity().Life != 1 {
		t.Errorf("after a restart: %+v", b.c.identity())
	}
	k.complete(a, b)

	b.close()
	second.Fresh = true
	b = k.join(second)
	if b.number() != 2 || b.c.identity().Life != 2 {
		t.Errorf("after a restart without its journal: %+v", b.c.identity())
	}
	k.complete(a, b)

	third := k.config(3)
	third.Dir = t.TempDir()
	c := k.join(third)
	k.complete(a, b, c)
	k.vote(a, b, c)

	// All at once: the group comes up from what is on the disks, and nobody founds again.
	second.Fresh = false
	nodes := []*node{a, b, c}
	for _, n := range nodes {
		n.close()
	}
	for i, cfg := range []Config{first, second, third} {
		n, err := k.start(cfg)
		if err != nil {
			t.Fatal(err)
		}
		nodes[i] = n
	}
	began := time.Now()
	for i, n := range nodes {
		n.serve()
		if life := n.c.identity().Life; n.number() != uint64(i+1) || life != []uint64{1, 2, 1}[i] {
			t.Errorf("node %d after a restart of all: %+v", i+1, n.c.identity())
		}
	}
	t.Logf("all registered again after %v", time.Since(began))
	k.complete(nodes...)
}

// TestALostStoreIsAnotherLife: without its store a node has another raft ID, and nothing that it had counts.
func TestALostStoreIsAnotherLife(t *testing.T) {
	k, nodes := three(t)
	lead, others := leader(t, nodes...)
	gone := others[0]
	cfg, number := gone.cfg, gone.number()
	gone.close()
	cfg.Found = nil
	back := k.join(cfg)
	if id := back.c.identity(); id.Number != number || id.Life != 2 {
		t.Errorf("came back as %+v, was number %d", id, number)
	}
	k.complete(lead, others[1], back)
}

// TestAFounderThatFindsAClusterJoinsIt: though one that belongs to none answers first. Who finds only such nodes founds.
func TestAFounderThatFindsAClusterJoinsIt(t *testing.T) {
	k := newCluster(t)
	waiting, err := k.server.ConnectNodes()
	if err != nil {
		t.Fatal(err)
	}
	defer waiting.Close()
	answered := make(chan error, 1) // the first answer is told; those after the test's end are nobody's matter
	if _, err := waiting.Subscribe(subjectStatus, func(m *nats.Msg) {
		err := m.Respond(encode(Status{Identifier: identifier(9)}))
		select {
		case answered <- err:
		default:
		}
	}); err != nil {
		t.Fatal(err)
	}
	if err := waiting.Flush(); err != nil {
		t.Fatal(err)
	}
	first := k.config(1)
	first.Found = k.found
	a := k.join(first)
	second := k.config(2)
	second.Found = k.found
	b := k.join(second)
	k.complete(a, b)
	if a.number() != 1 || b.number() != 2 {
		t.Errorf("numbers %d and %d", a.number(), b.number())
	}
	select {
	case err := <-answered:
		if err != nil {
			t.Error(err)
		}
	default:
		t.Error("the node that belongs to none was not asked")
	}
}

func TestADuplicateIdentifierIsRefused(t *testing.T) {
	k, nodes := three(t)
	cfg := nodes[1].cfg
	if _, err := k.start(cfg); !errors.Is(err, ErrDuplicate) {
		t.Fatalf("a second node with the same identifier: %v", err)
	}
	// If the two do not see each other at the start, the leader refuses the newcomer.
	n := nodes[1]
	n.c.mu.Lock()
	for _, sub := range n.c.subs {
		if sub.Subject == subjectHere(cfg.Identifier) {
			if err := sub.Unsubscribe(); err != nil {
				t.Error(err)
			}
		}
	}
	n.c.mu.Unlock()
	if err := n.conn.Flush(); err != nil {
		t.Fatal(err)
	}
	twin, err := k.start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := twin.c.WaitRegistered(within(t)); !errors.Is(err, ErrDuplicate) {
		t.Fatalf("the twin: %v", err)
	}
	select {
	case <-n.c.Failed():
		t.Errorf("the node that was there: %v", n.c.Err())
	default:
	}
	if life := n.c.State().Node(n.number()).Life; life != 1 {
		t.Errorf("life %d", life)
	}
}

// TestANodeNoticesThatItWasReplaced: a node that was cut off while another one registered under its identifier must stop.
func TestANodeNoticesThatItWasReplaced(t *testing.T) {
	_, nodes := three(t)
	lead, others := leader(t, nodes...)
	me := others[0].c.State().Node(others[0].number())
	command := shared.Command{Register: &shared.Register{ID: me.ID, Raft: me.Raft + 1, Name: me.Name}}.Encode()
	if _, _, err := lead.c.arb.Propose(within(t), command); err != nil {
		t.Fatal(err)
	}
	select {
	case <-others[0].c.Failed():
		if err := others[0].c.Err(); !errors.Is(err, ErrDuplicate) && !errors.Is(err, ErrRemoved) {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Fatal("it goes on")
	}
}

// TestAReplacedNodeIsToldNothingMore: neither the change by which another process has become this node, nor a lease that
// counts with it. It may have the same life, and would be the same primary at the same time.
func TestAReplacedNodeIsToldNothingMore(t *testing.T) {
	_, nodes := three(t)
	lead, others := leader(t, nodes...)
	n := others[0]
	me := *lead.c.State().Node(n.number())
	command := shared.Command{Register: &shared.Register{
		ID: me.ID, Raft: me.Raft, Name: me.Name, Start: me.Start + 1, Starts: []uint64{me.Start},
	}}.Encode()
	change, result, err := lead.c.arb.Propose(within(t), command)
	if res, _ := result.(shared.Result); err != nil || res.Life != me.Life {
		t.Fatal(err, res)
	}
	eventually(t, "the leader grants leases after that", func() bool {
		lead.copies.mu.Lock()
		defer lead.copies.mu.Unlock()
		return lead.copies.lease.Under >= change
	})
	select {
	case <-n.c.Failed():
	case <-time.After(patience):
		t.Fatal("it goes on")
	}
	n.close()
	if c := n.copies; c.applied >= change || c.lease.Under >= change {
		t.Errorf("replaced by change %d, and was told change %d and a lease under %d", change, c.applied, c.lease.Under)
	}
}

// hearsItIsRemoved waits until the node ends by itself, since it was removed.
func (n *node) hearsItIsRemoved(t *testing.T) {
	t.Helper()
	select {
	case <-n.c.Failed():
		if !errors.Is(n.c.Err(), ErrRemoved) {
			t.Error(n.c.Err())
		}
	case <-time.After(patience):
		t.Fatal("it goes on")
	}
	n.close()
}

// TestTheOnlyVoterIsRemoved: it passes its vote on before it goes, or nobody could decide anything ever again.
func TestTheOnlyVoterIsRemoved(t *testing.T) {
	k := newCluster(t)
	first := k.config(1)
	first.Found = k.found
	a := k.join(first)
	b := k.join(k.config(2))
	k.complete(a, b)
	result, err := b.c.Change(within(t), shared.Command{Remove: &shared.Remove{Number: a.number()}})
	if err != nil || result.Err() != nil {
		t.Fatal(err, result.Err())
	}
	a.hearsItIsRemoved(t)
	k.complete(b)
	k.vote(b)
	k.complete(b, k.join(k.config(3)))
}

// TestARemovedVoterStaysWhileItIsNeeded: of three voters one is lost for good, and then another one is removed: without its vote
// the last one could decide nothing. So the lost one's vote is taken first.
func TestARemovedVoterStaysWhileItIsNeeded(t *testing.T) {
	_, nodes := three(t)
	lead, others := leader(t, nodes...)
	lost, gone := others[0], others[1]
	raft := lead.c.State().Node(lost.number()).Raft
	lost.close()
	eventually(t, "the leader hears nothing of it", func() bool {
		peers := lead.c.arb.Status().Peers
		at := slices.IndexFunc(peers, func(p core.Peer) bool { return p.Raft == raft })
		return at >= 0 && !peers[at].Active
	})
	result, err := lead.c.Change(within(t), shared.Command{Remove: &shared.Remove{Number: gone.number()}})
	if err != nil || result.Err() != nil {
		t.Fatal(err, result.Err())
	}
	gone.hearsItIsRemoved(t)
	if result, err = lead.c.Change(within(t), shared.Command{Remove: &shared.Remove{Number: gone.number()}}); err != nil || !errors.Is(result.Err(), shared.ErrNotFound) {
		t.Fatal("the last one decides nothing: ", err, result.Err())
	}
}

func TestARemovedNodeStops(t *testing.T) {
	k, nodes := three(t)
	lead, others := leader(t, nodes...)
	gone := others[0]
	result, err := lead.c.Change(within(t), shared.Command{Remove: &shared.Remove{Number: gone.number()}})
	if err != nil || result.Err() != nil {
		t.Fatal(err, result.Err())
	}
	gone.hearsItIsRemoved(t)
	k.complete(lead, others[1])
}
