package core

import (
	"fmt"
	"slices"
	"testing"

	pb "go.etcd.io/raft/v3/raftpb"
)

// TestALogThatHasParted: the old leader's store is put back from a copy that lacks what it and x have decided, and it and y decide
// something else in that place before x is there again. x can never be brought in step; it costs a message for each heartbeat, not as many
// as the network carries.
func TestALogThatHasParted(t *testing.T) {
	w, l, x, y := trio(t)
	old := l.disk
	old.Entries = slices.Clone(old.Entries)
	w.hold = noAppends(y.id)
	if err := w.propose(l, "decided by two", Condition{}); err != nil {
		t.Fatal(err)
	}
	has := func(e entry) bool { return e.Text == "decided by two" }
	w.must(t, "x to have it", func() bool { return slices.ContainsFunc(x.fsm.Log, has) })
	if err := w.propose(l, "what is decided is stored with what comes next", Condition{}); err != nil {
		t.Fatal(err)
	}
	w.must(t, "x to have stored that it is decided", func() bool {
		return x.disk.HardState.GetCommit() >= x.fsm.Log[slices.IndexFunc(x.fsm.Log, has)].Change
	})
	for _, m := range []*machine{l, x, y} {
		w.crash(m)
	}
	w.hold, w.held = nil, nil
	l.disk = old
	w.start(l)
	w.start(y)
	w.must(t, "two to lead without x", func() bool { return w.leader() != nil })
	leader := w.leader()
	w.start(x)
	w.run(second)
	w.committed = slices.DeleteFunc(w.committed, has) // the world would rightly call it lost
	for i := range 3 {
		if err := w.propose(leader, fmt.Sprint("decided without x ", i), Condition{}); err != nil {
			t.Fatal(err)
		}
	}
	w.run(second)
	w.twice = 1
	sent := 0
	w.hold = func(_, to uint64, k kind, m *pb.Message) bool {
		if k == kindRaft && to == x.id && m.GetType() == pb.MsgApp {
			sent++
		}
		return sent > 10_000
	}
	w.run(second)
	beats := int(second / w.cfg.Heartbeat)
	if sent < beats {
		t.Fatalf("this tests nothing: x is asked only %d times in %d heartbeats", sent, beats)
	}
	if sent > 16*beats { // each message comes twice: two heartbeats, four answers, eight times asked, and some
		t.Errorf("%d messages in %d heartbeats", sent, beats)
	}
	checked(t, w)
}
