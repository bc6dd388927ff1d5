package core

import (
	"fmt"
	"testing"
)

func checked(t *testing.T, w *world) {
	t.Helper()
	for _, wrong := range w.wrong {
		t.Error(wrong)
	}
	if t.Failed() {
		t.FailNow()
	}
}

func TestSingleVoterLeadsAtOnce(t *testing.T) {
	w := newWorld(1, testConfig(), 1)
	m := w.machines[0]
	if !m.node.Leading() {
		t.Fatal("a single voter does not lead at its start")
	}
	if err := w.propose(m, "a", Condition{}); err != nil {
		t.Fatal(err)
	}
	if len(w.acked) != 1 {
		t.Fatal("what a single voter proposes is not committed at once")
	}
	w.crash(m)
	w.start(m)
	if !m.node.Leading() || len(m.fsm.Log) != 1 {
		t.Fatalf("after a restart: leading %t, %v", m.node.Leading(), m.fsm.Log)
	}
	w.run(2 * second)
	if !w.believes(m) {
		t.Fatal("no lease")
	}
	checked(t, w)
}

func TestThreeElectCommitAndReplaceTheLeader(t *testing.T) {
	w := newWorld(2, testConfig(), 4)
	w.grow(3, 1)
	checked(t, w)
	for i := range 20 {
		if err := w.propose(w.machines[i%4], fmt.Sprint("text ", i), Condition{}); err != nil {
			t.Fatal(err)
		}
	}
	if !w.until(second, func() bool { return len(w.acked) == 20 }) {
		t.Fatalf("%d of 20 committed", len(w.acked))
	}
	old := w.leader()
	w.crash(old)
	begin := w.now
	if !w.until(2*second, func() bool { return w.leader() != nil && w.leader() != old }) {
		t.Fatal("no new leader")
	}
	t.Logf("silent death: %v ms", (w.now-begin)/ms)
	w.start(old)
	w.run(second)
	for _, m := range w.machines {
		if len(m.fsm.Log) != 20 || !w.believes(m) {
			t.Fatalf("%d has %d commands, lease: %t", m.id, len(m.fsm.Log), w.believes(m))
		}
	}
	old = w.leader()
	w.crash(old)
	for _, m := range w.machines {
		m.gone = append(m.gone, old.id)
	}
	begin = w.now
	if !w.until(2*second, func() bool { return w.leader() != nil && w.leader() != old }) {
		t.Fatal("no new leader")
	}
	t.Logf("told death: %v ms", (w.now-begin)/ms)
	if w.now-begin > 50*ms {
		t.Fatalf("a leader whose connections closed was replaced after %d ms", (w.now-begin)/ms)
	}
	checked(t, w)
}
