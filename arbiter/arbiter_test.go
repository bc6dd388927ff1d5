package arbiter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/opencluster/oclocks/internal/boottime"
)

func eachStore(t *testing.T, test func(t *testing.T, disk bool)) {
	for name, disk := range map[string]bool{"memory": false, "disk": true} {
		t.Run(name, func(t *testing.T) { test(t, disk) })
	}
}

func TestSingleVoterLeadsWhenStartReturns(t *testing.T) {
	eachStore(t, func(t *testing.T, disk bool) {
		g := newGroup(t, disk, 1)
		m := g.all[0]
		if !m.a.Status().Leading {
			t.Fatal("it does not lead")
		}
		m.propose("a")
		m.propose("b")
		change, err := m.a.ReadIndex(t.Context())
		if err != nil || change != m.fsm.at {
			t.Fatalf("read: %d, %v; applied is %d", change, err, m.fsm.at)
		}
		m.kill()
		m.start(false)
		if got := m.fsm.texts(); !slices.Equal(got, []string{"a", "b"}) || !m.a.Status().Leading {
			t.Fatalf("after a restart: %q, %+v", got, m.a.Status())
		}
		g.wait("a lease", m.holds)
		if from := m.a.Status().TakeFrom; from < boottime.Now()-int64(far) {
			t.Fatalf("TakeFrom is %d", from)
		}
	})
}

func TestThreeSurviveTheirLeader(t *testing.T) {
	eachStore(t, func(t *testing.T, disk bool) {
		g := newGroup(t, disk, 3)
		g.grow()
		for i := range 9 {
			g.all[i%3].propose(fmt.Sprint(i))
		}
		g.wait("leases", func() bool { return g.all[0].holds() && g.all[1].holds() && g.all[2].holds() })
		old := g.leader()
		oldRaft := old.raft()
		old.kill()
		begin := time.Now()
		g.closeConnections(oldRaft)
		l := g.newLeader(old)
		t.Logf("a new leader after %v", time.Since(begin))
		l.propose("after")
		old.start(false)
		g.wait("the old one to catch up", func() bool { return len(old.fsm.texts()) == 10 && old.holds() })
		if !slices.Equal(old.fsm.texts(), l.fsm.texts()) {
			t.Fatalf("%q, %q", old.fsm.texts(), l.fsm.texts())
		}
	})
}

func TestPausedLeader(t *testing.T) {
	g := newGroup(t, false, 3)
	g.grow()
	old := g.leader()
	old.setDeaf(true)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, _, err := old.a.Propose(ctx, []byte("lost?")); !errors.Is(err, ErrUnknown) || !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("a leader without a majority says %v", err)
	}
	term := old.a.Status().Term
	l := g.newLeader(old)
	l.propose("kept")
	if _, _, err := old.a.ProposeIf(t.Context(), []byte("never"), Condition{Term: term - 1}); !errors.Is(err, ErrNotLeader) {
		t.Fatalf("a proposal for an older term: %v", err)
	}
	old.setDeaf(false)
	g.wait("the old leader to follow", func() bool { return !old.a.Status().Leading && slices.Contains(old.fsm.texts(), "kept") })
	if slices.Contains(old.fsm.texts(), "never") || slices.Contains(old.fsm.texts(), "lost?") {
		t.Fatalf("%q", old.fsm.texts())
	}
}

func (m *member) setDeaf(deaf bool) {
	m.g.mu.Lock()
	defer m.g.mu.Unlock()
	m.deaf = deaf
}

func TestMembersComeAndGo(t *testing.T) {
	eachStore(t, func(t *testing.T, disk bool) {
		g := newGroup(t, disk, 4)
		g.grow()
		l := g.leader()
		gone := g.all[3]
		if l == gone {
			t.Skip("the founder does not lead any more")
		}
		must(t, l.a.Remove(t.Context(), gone.raft()))
		if s := l.a.Status(); len(s.Voters) != 3 || slices.Contains(s.Voters, gone.raft()) {
			t.Fatalf("%+v", s)
		}
		l.propose("x")
		err := l.a.Promote(t.Context(), gone.raft())
		if !errors.Is(err, ErrMembership) {
			t.Fatalf("promoting a stranger: %v", err)
		}
		if err := l.a.Remove(t.Context(), l.raft()); !errors.Is(err, ErrMembership) {
			t.Fatalf("removing the leader: %v", err)
		}
		for _, m := range g.all[:3] {
			if m != l {
				if err := m.a.AddLearner(t.Context(), 12345); !errors.Is(err, ErrNotLeader) {
					t.Fatalf("a follower changes the membership: %v", err)
				}
			}
		}
	})
}

func TestLeadershipGoesToThePreferred(t *testing.T) {
	g := newGroup(t, false, 3)
	g.grow()
	want := g.all[2]
	for _, m := range g.all {
		m.a.SetPriorities(map[uint64]int{want.raft(): 1, g.all[1].raft(): 15})
	}
	g.wait("the preferred to lead", func() bool { return g.leader() == want })
	must(t, want.a.Transfer(t.Context(), g.all[1].raft()))
	g.wait("the one asked for to lead", func() bool { return g.leader() == g.all[1] })
	if err := want.a.Transfer(t.Context(), 0); !errors.Is(err, ErrNotLeader) {
		t.Fatalf("a transfer by a follower: %v", err)
	}
}

func TestTakingNeedsTheEndOfTheLease(t *testing.T) {
	g := newGroup(t, false, 3)
	g.grow()
	g.wait("leases", func() bool { return g.all[1].holds() && g.all[2].holds() })
	l := g.leader()
	victim := g.all[1]
	if victim == l {
		victim = g.all[2]
	}
	only := Condition{Term: l.a.Status().Term, Ended: []uint64{victim.number}}
	if _, _, err := l.a.ProposeIf(t.Context(), []byte("too early"), only); !errors.Is(err, ErrRefused) {
		t.Fatalf("taking from a holder of a lease: %v", err)
	}
	victim.setDeaf(true)
	g.wait("the lease to end", func() bool {
		_, _, err := l.a.ProposeIf(t.Context(), []byte("in time"), only)
		if err != nil && !errors.Is(err, ErrRefused) {
			t.Fatal(err)
		}
		return err == nil
	})
	if victim.holds() {
		t.Fatal("the lease ended at the leader and is believed in at the node")
	}
	victim.setDeaf(false)
	g.wait("a lease again", victim.holds)
	if !slices.Contains(victim.fsm.texts(), "in time") {
		t.Fatal("a lease came before what was committed before it")
	}
}

func TestSnapshotsBringLateMembersUp(t *testing.T) {
	eachStore(t, func(t *testing.T, disk bool) {
		count := 2600
		g := newGroup(t, disk, 2)
		l := g.all[0]
		done := make(chan struct{}, 64)
		for i := range cap(done) {
			go func() {
				defer func() { done <- struct{}{} }()
				for k := i; k < count; k += cap(done) {
					_, _, err := l.a.Propose(t.Context(), []byte(fmt.Sprint(k)))
					if err != nil {
						t.Error(err)
						return
					}
				}
			}()
		}
		for range cap(done) {
			<-done
		}
		g.grow()
		late := g.all[1]
		g.wait("the new one to have everything", func() bool { return len(late.fsm.texts()) == count })
		late.kill()
		l2 := g.all[0]
		l2.kill()
		l2.start(false)
		late.start(false)
		g.wait("both to have everything after a restart", func() bool {
			return len(late.fsm.texts()) == count && len(l2.fsm.texts()) == count
		})
	})
}

func TestClosedAndFailed(t *testing.T) {
	g := newGroup(t, true, 1)
	m := g.all[0]
	m.propose("a")
	a := m.a
	broken := errors.New("disk gone")
	m.kill()
	if _, _, err := a.Propose(t.Context(), []byte("b")); !errors.Is(err, ErrClosed) {
		t.Fatalf("after Close: %v", err)
	}
	store, err := OpenStore(m.path)
	must(t, err)
	defer func() { must(t, store.Close()) }()
	if _, err := OpenStore(m.path); !errors.Is(err, ErrStore) {
		t.Fatalf("a second opening: %v", err)
	}
	failing := &failingStore{Store: store}
	f := &list{}
	a, err = Start(Config{Store: failing, FSM: f, Logger: g.quiet, Send: func(uint64, []byte) {}})
	must(t, err)
	defer a.Close()
	failing.fail(broken)
	_, _, err = a.Propose(t.Context(), []byte("c"))
	if !errors.Is(err, ErrUnknown) || !errors.Is(err, ErrFailed) {
		t.Fatalf("with a failing store: %v", err)
	}
	<-a.Failed()
	if !errors.Is(a.Err(), broken) {
		t.Fatalf("Err: %v", a.Err())
	}
	if _, err := a.ReadIndex(t.Context()); !errors.Is(err, ErrFailed) {
		t.Fatalf("a read afterwards: %v", err)
	}
	if slices.Contains(f.texts(), "c") {
		t.Fatal("what was not stored was applied")
	}
}
