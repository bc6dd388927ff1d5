package core

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	pb "go.etcd.io/raft/v3/raftpb"
)

// trio is three voters with leases, and the leader among them.
func trio(t *testing.T) (w *world, leader, a, b *machine) {
	t.Helper()
	w = newWorld(3, testConfig(), 3)
	w.grow(3, 0)
	w.run(second)
	leader = w.leader()
	var others []*machine
	for _, m := range w.machines {
		if m != leader {
			others = append(others, m)
		}
		if !w.believes(m) {
			t.Fatalf("%d has no lease", m.id)
		}
	}
	checked(t, w)
	return w, leader, others[0], others[1]
}

// must be so within a while.
func (w *world) must(t *testing.T, what string, cond func() bool) {
	t.Helper()
	if !w.until(5*second, cond) {
		t.Fatalf("in vain: %s; %v", what, w.wrong)
	}
}

func noAppends(to uint64) func(from, at uint64, k kind, m *pb.Message) bool {
	return func(_, at uint64, k kind, m *pb.Message) bool {
		return k == kindRaft && m.GetType() == pb.MsgApp && (to == 0 || at == to)
	}
}

// "from then on grants X nothing until c is applied"
func TestFence(t *testing.T) {
	w, l, x, y := trio(t)
	if err := w.take(l, x.id); err != nil {
		t.Fatal(err)
	}
	w.must(t, "x to be the one", func() bool { return w.acts(x) })
	if err := w.take(l, y.id); !errors.Is(err, ErrRefused) {
		t.Fatalf("taking from one with a lease: %v", err)
	}
	w.setCut(x.id, l.id, true)
	w.setCut(x.id, y.id, true)
	w.must(t, "x's lease to end", func() bool { return l.node.ended(x.id) })
	// Heartbeats pass, so that ReadIndex works; commands do not.
	w.hold = noAppends(0)
	if err := w.take(l, y.id); err != nil {
		t.Fatal(err)
	}
	clear(w.cut)
	heard := l.node.lead.leases[x.id].heard
	w.run(second)
	if l.node.lead.leases[x.id].heard == heard || !w.believes(y) || !l.node.Leading() {
		t.Fatal("this tests nothing: x did not ask, or nobody gets leases")
	}
	if w.believes(x) || l.node.lead.leases[x.id].until > l.clock(w.now) {
		t.Fatal("a lease for whom a command under way relies on not having one")
	}
	w.hold = nil
	w.must(t, "y to be the one, and x to get leases again", func() bool { return w.acts(y) && w.believes(x) })
	checked(t, w)
}

// "A ReadIndex that was begun before c was applied has a lower index and is not used."
func TestFloor(t *testing.T) {
	w, l, x, y := trio(t)
	if err := w.take(l, x.id); err != nil {
		t.Fatal(err)
	}
	w.must(t, "x to be the one", func() bool { return w.acts(x) })
	w.setCut(x.id, l.id, true)
	w.setCut(x.id, y.id, true)
	w.must(t, "x's lease to end", func() bool { return l.node.ended(x.id) })
	// The leader begins a ReadIndex for x and hears nothing of it yet. x gets no commands.
	w.hold = func(from, to uint64, k kind, m *pb.Message) bool {
		return m.GetType() == pb.MsgHeartbeatResp && k == kindRaft || noAppends(x.id)(from, to, k, m)
	}
	clear(w.cut)
	w.must(t, "x to be waited for", func() bool {
		return slices.ContainsFunc(l.node.lead.inFlight, func(a waitingAsk) bool { return a.from == x.id })
	})
	if err := w.take(l, y.id); err != nil {
		t.Fatal(err)
	}
	w.must(t, "y to be the one", func() bool { return l.fsm.One == y.id })
	w.hold = noAppends(x.id)
	w.release()
	w.run(150 * ms)
	if w.believes(x) {
		t.Fatal("x got a lease and does not know that it is not the one any more")
	}
	w.hold = nil
	w.must(t, "x to get leases again", func() bool { return w.believes(x) && w.acts(y) })
	checked(t, w)
}

// "An answer that is late, or comes twice, is worth its own s only. The numbers of asks have the life in them"
func TestLateAnswer(t *testing.T) {
	w, l, x, _ := trio(t)
	w.crash(x)
	answers := func(_, to uint64, k kind, _ *pb.Message) bool { return k == kindAnswer && to == x.id }
	w.hold = answers
	w.start(x)
	w.must(t, "an answer", func() bool { return len(w.held) > 0 })
	late := w.held[:1:1]
	w.run(700 * ms)
	w.held = slices.Clone(late)
	w.release()
	w.run(10 * ms)
	if w.believes(x) {
		t.Fatal("a lease that was asked for 700 ms ago, of 800")
	}
	// Another life asks; the answer is to the one before.
	w.crash(x)
	w.hold = func(from, to uint64, k kind, m *pb.Message) bool {
		return k == kindAsk && from == x.id || answers(from, to, k, m)
	}
	w.held = nil
	w.start(x)
	w.must(t, "it to ask", func() bool { return len(x.node.holder.sent) > 0 })
	w.hold = nil
	w.held = slices.Clone(late)
	w.release()
	w.hold = func(from, _ uint64, k kind, _ *pb.Message) bool { return k == kindAsk && from == x.id }
	w.run(10 * ms)
	if w.believes(x) {
		t.Fatal("a lease by an answer to an earlier life")
	}
	if !l.node.Leading() {
		t.Fatal("this tests nothing")
	}
	checked(t, w)
}

// "that is TakeFrom, and l takes nothing before"
func TestNewLeaderWaits(t *testing.T) {
	for name, lose := range map[string]func(w *world, l *machine){
		"death":    func(w *world, l *machine) { w.crash(l) },
		"transfer": func(w *world, l *machine) { _ = l.node.Transfer(0); w.carryOut(l) },
	} {
		t.Run(name, func(t *testing.T) {
			w, l, x, y := trio(t)
			if err := w.take(l, x.id); err != nil {
				t.Fatal(err)
			}
			w.must(t, "x to be the one", func() bool { return w.acts(x) })
			lose(w, l)
			for _, m := range []*machine{x, y} {
				m.gone = append(m.gone, l.id)
			}
			w.must(t, "another leader", func() bool { return w.leader() != nil && w.leader() != l })
			n := w.leader()
			// x believes in what the old leader granted, and asks for no more.
			w.hold = func(from, _ uint64, k kind, _ *pb.Message) bool { return k == kindAsk && from == x.id }
			if n == x {
				t.Skip("the one leads: it grants to itself")
			}
			if !w.acts(x) {
				t.Fatal("this tests nothing: x does not act any more")
			}
			begun := n.node.lead.takeFrom - testConfig().Lease
			if err := w.take(n, y.id); !errors.Is(err, ErrRefused) {
				t.Fatalf("a new leader takes at once: %v", err)
			}
			w.must(t, "the new leader to take", func() bool { return w.take(n, y.id) == nil })
			if w.acts(x) || n.clock(w.now) < begun+testConfig().Lease {
				t.Fatal("too early")
			}
			checked(t, w)
		})
	}
}

// "c has the condition that it counts as an entry of T only, so nobody repeats it in a later term"
func TestOldDecisionDies(t *testing.T) {
	w, l, x, y := trio(t)
	w.setCut(l.id, x.id, true)
	w.setCut(l.id, y.id, true)
	only := Condition{Term: l.node.elect.term}
	if err := w.propose(l, "old decision", only); err != nil {
		t.Fatal(err)
	}
	if err := w.propose(l, "old wish", Condition{}); err != nil {
		t.Fatal(err)
	}
	w.must(t, "another leader", func() bool { return w.leader() != nil && w.leader() != l })
	w.must(t, "the old one to give up", func() bool { return !l.node.Leading() })
	if err := w.propose(l, "older decision", only); !errors.Is(err, ErrNotLeader) {
		t.Fatalf("a decision of a lost term: %v", err)
	}
	clear(w.cut)
	w.must(t, "the wish to be repeated, and the decision refused", func() bool {
		return slices.Contains(w.acked, "old wish") && slices.ContainsFunc(l.done, func(d Done) bool { return d.Outcome == Refused })
	})
	for _, e := range w.committed {
		if e.Text == "old decision" || e.Text == "older decision" {
			t.Fatalf("%q was committed", e.Text)
		}
	}
	// Nor would it count if it came into the log of a later term in some way.
	env := envelope{Raft: l.id, Life: l.life, ID: 1000, Term: only.Term, Data: []byte("smuggled")}
	n := w.leader()
	n.node.commit(&pb.Entry{Index: new(n.node.applied + 1), Term: new(n.node.elect.term), Data: env.encode()})
	if len(n.node.out.Apply) != 0 {
		t.Fatal("an entry of another term than its condition names was applied")
	}
	checked(t, w)
}

// "has another digest than the leader at the same change", and MayLease
func TestRefusals(t *testing.T) {
	w, l, x, y := trio(t)
	if err := w.propose(l, "something", Condition{}); err != nil {
		t.Fatal(err)
	}
	w.run(300 * ms)
	x.fsm.Sum-- // a bit that fell over
	x.node.digest = x.fsm.digest()
	w.must(t, "a quarantine", func() bool {
		return slices.ContainsFunc(l.events, func(e Event) bool { q, ok := e.(Quarantine); return ok && q.Number == x.id })
	})
	w.run(second)
	refused := slices.ContainsFunc(x.events, func(e Event) bool { _, ok := e.(Refusal); return ok })
	if w.believes(x) || !refused {
		t.Fatalf("a node that has come apart has a lease, or was not told: %t", refused)
	}
	if !w.believes(y) || w.leader() != l {
		t.Fatal("the others have none")
	}
	if s := l.node.Status(); s.Live != 2 || s.Peers[0].Raft != 1 {
		t.Fatalf("%+v", s)
	}
	granted := y.events[len(y.events)-1].(Granted)
	if granted.Live != 2 {
		t.Fatalf("%+v, want two that hold a lease", granted)
	}
	x.fsm.Sum++
	x.node.digest = x.fsm.digest()
	w.must(t, "it to get a lease when it is well again", func() bool { return w.believes(x) })

	l.node.cfg.MayLease = func(number, _ uint64) error {
		if number == y.id {
			return fmt.Errorf("node %d was removed", number)
		}
		return nil
	}
	w.must(t, "the lease of the removed one to end", func() bool { return !w.believes(y) })
	if last, ok := y.events[len(y.events)-1].(Refusal); !ok || last.Why != fmt.Sprintf("node %d was removed", y.id) {
		t.Fatalf("%+v", y.events[len(y.events)-1])
	}
	checked(t, w)
}

// TestTheLeaderHasComeApart: it is not for the leader alone to say who differs from whom. If most voters differ from it, it gives
// nobody a lease, and the leadership to one of them, for good, though it is preferred.
func TestTheLeaderHasComeApart(t *testing.T) {
	w, l, x, y := trio(t)
	for _, m := range w.machines {
		m.node.SetPriorities(map[uint64]int{l.id: 1})
	}
	if err := w.propose(l, "something", Condition{}); err != nil {
		t.Fatal(err)
	}
	w.run(300 * ms)
	l.fsm.Sum--
	l.node.digest = l.fsm.digest()
	w.must(t, "another leader", func() bool { n := w.leader(); return n != nil && n != l && n.node.Leading() })
	w.must(t, "leases of the others only", func() bool { return w.believes(x) && w.believes(y) && !w.believes(l) })
	for range 100 { // longer than the pauses between attempts to hand over
		w.run(200 * ms)
		if w.leader() == l || w.believes(l) || !w.believes(x) || !w.believes(y) {
			t.Fatalf("leader %d of %d, leases %t, %t, %t", w.leader().id, l.id, w.believes(l), w.believes(x), w.believes(y))
		}
	}
	checked(t, w)
}

// TestALeaderWithAnOldStore: its life is one from before those that the group has seen, so nothing that it proposes counts. It gives
// way to somebody who can decide.
func TestALeaderWithAnOldStore(t *testing.T) {
	w, l, _, _ := trio(t)
	w.crash(l)
	w.start(l)
	w.run(second)
	if err := w.propose(l, "of its newest life", Condition{}); err != nil {
		t.Fatal(err)
	}
	w.run(second)
	w.crash(l)
	w.must(t, "another leader", func() bool { n := w.leader(); return n != nil && n != l && n.node.Leading() })
	l.life = 0
	w.start(l)
	w.run(second)
	if err := w.leader().node.Transfer(l.id); err != nil {
		t.Fatal(err)
	}
	w.must(t, "the old store to lead", func() bool { return w.leader() == l && l.node.Leading() })
	w.must(t, "another leader", func() bool { n := w.leader(); return n != nil && n != l && n.node.Leading() })
	if err := w.propose(w.leader(), "by the new one", Condition{Term: w.leader().node.Status().Term}); err != nil {
		t.Fatal(err)
	}
	change := w.leader().node.Status().Change
	w.must(t, "it to decide", func() bool { n := w.leader(); return n != nil && n.node.Status().Change > change })
	checked(t, w)
}

func TestClip(t *testing.T) {
	for _, text := range []string{"", "short", string(make([]byte, 2*MaxRefusal)), fmt.Sprintf("%0*d", MaxRefusal-1, 0) + "äöü"} {
		if got := clip(text); got == "" || len(got) > MaxRefusal {
			t.Fatalf("%q", got)
		}
	}
}
