package core

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	pb "go.etcd.io/raft/v3/raftpb"
	"pgregory.net/rapid"
)

// "it takes effect at most once however often it is in the log"
func TestRepeatedProposalCountsOnce(t *testing.T) {
	w, l, x, _ := trio(t)
	w.twice = 1
	for i := range 40 {
		if err := w.propose(w.machines[i%3], fmt.Sprint("text ", i), Condition{}); err != nil {
			t.Fatal(err)
		}
		w.run(ms)
	}
	// The leader's answers do not come, so the proposer repeats.
	w.hold = noAppends(x.id)
	if err := w.propose(x, "repeated", Condition{}); err != nil {
		t.Fatal(err)
	}
	before := l.node.applied
	w.run(3 * second)
	if l.node.applied-before < 3 {
		t.Fatalf("it was not repeated: %d entries", l.node.applied-before)
	}
	w.hold = nil
	w.must(t, "all to be acknowledged", func() bool { return len(w.acked) == 41 })
	checked(t, w)
}

// seen against a model that forgets nothing.
func TestSeen(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, model := seen{}, map[[2]uint64]bool{}
		life, high := uint64(1), uint64(0)
		for range rapid.IntRange(1, 200).Draw(t, "n") {
			e := envelope{Raft: 7, Life: rapid.Uint64Range(life-min(life, 2)+1, life).Draw(t, "life")}
			e.ID = max(1, high+rapid.Uint64Range(0, 2100).Draw(t, "up")-min(high+2100, rapid.Uint64Range(0, 2100).Draw(t, "down")))
			if rapid.IntRange(0, 20).Draw(t, "restart") == 0 {
				life++
				high = 0
				e.Life = life
			}
			key := [2]uint64{e.Life, e.ID}
			tooOld := e.Life < life || e.ID+window <= high
			want := !tooOld && !model[key]
			if got := s.first(&e); got != want {
				t.Fatalf("%+v: first is %t, want %t (highest %d)", e, got, want, high)
			}
			if want {
				model[key], high = true, max(high, e.ID)
			}
			r := reader{buf: s.encode(nil)}
			if s = r.seen(); r.err != nil || len(r.buf) > 0 {
				t.Fatal(r.err)
			}
		}
	})
}

// A vote is on the disk before it is sent: after a crash the node votes for nobody else in that term.
func TestVoteSurvivesACrash(t *testing.T) {
	w, l, x, y := trio(t)
	w.crash(l)
	w.crash(y)
	term := x.node.elect.term + 1
	vote := func(of uint64, kind *pb.MessageType) []byte {
		last, err := x.node.log.LastIndex()
		if err != nil {
			t.Fatal(err)
		}
		m := &pb.Message{
			Type: kind, From: new(of), To: new(x.id), Term: new(term), Index: new(last + 10), LogTerm: new(term), Context: []byte("CampaignTransfer"),
		}
		raw, err := marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		return encodeRaft(of, x.id, [][]byte{raw})
	}
	granted := func() int {
		count := 0
		w.hold = func(_, _ uint64, _ kind, m *pb.Message) bool {
			if m.GetType() == pb.MsgVoteResp && m.GetTerm() == term && !m.GetReject() {
				count++
			}
			return true
		}
		w.turn(x)
		w.held = nil
		return count
	}
	x.inbox = append(x.inbox, packet{from: l.id, to: x.id, raw: vote(l.id, pb.MsgVote.Enum())})
	x.tear = true // it stores the vote, and its answer is never sent
	if granted() != 0 || x.node != nil {
		t.Fatal("it did not crash between the disk and the answer")
	}
	w.start(x)
	x.inbox = append(x.inbox, packet{from: y.id, to: x.id, raw: vote(y.id, pb.MsgVote.Enum())})
	if granted() != 0 {
		t.Fatal("two votes in one term")
	}
	x.inbox = append(x.inbox, packet{from: l.id, to: x.id, raw: vote(l.id, pb.MsgVote.Enum())})
	if granted() != 1 {
		t.Fatal("it does not repeat its vote")
	}
}

// "they are snapshots that bring late members up", lost or not
func TestSnapshots(t *testing.T) {
	w := newWorld(5, testConfig(), 3)
	w.grow(2, 0)
	for i := range 3000 {
		if err := w.propose(w.machines[0], fmt.Sprint("text ", i), Condition{}); err != nil {
			w.run(5 * ms)
		}
		if i%50 == 0 {
			w.run(5 * ms)
		}
	}
	w.run(second)
	m := w.machines[0]
	if first, err := m.node.log.FirstIndex(); err != nil || first < 500 || len(m.disk.Entries) > 2*keepEntries+200 {
		t.Fatalf("the log is not cut: first %d, on disk %d, %v", first, len(m.disk.Entries), err)
	}
	lost := 0
	w.hold = func(_, to uint64, _ kind, m *pb.Message) bool {
		if m.GetType() == pb.MsgSnap && to == 3 && lost < 2 {
			lost++
			return true
		}
		return false
	}
	w.insist(AddLearner, 3)
	w.must(t, "the learner to have everything", func() bool { return len(w.machines[2].fsm.Log) == len(w.committed) && w.believes(w.machines[2]) })
	if lost != 2 {
		t.Fatalf("%d snapshots were lost", lost)
	}
	for _, m := range w.machines {
		w.crash(m)
		w.start(m)
	}
	w.run(2 * second)
	for _, m := range w.machines {
		if len(m.fsm.Log) != len(w.committed) || len(m.fsm.Log) < 2000 {
			t.Fatalf("%d has %d of %d", m.id, len(m.fsm.Log), len(w.committed))
		}
	}
	checked(t, w)
}

// "A snapshot from before the last change is never sent"
func TestOldSnapshotIsNotGiven(t *testing.T) {
	p := Found(1, nil)
	var start Start
	start.Merge(&p)
	log, err := start.open()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := log.Snapshot(); err != nil || log.wanted {
		t.Fatal(err)
	}
	log.confIndex = 2
	if _, err := log.Snapshot(); err == nil || !log.wanted {
		t.Fatal("a snapshot that lacks a member")
	}
}

// "15 stands later", "half a heartbeat apart", "hands over to the best voter"
func TestPreference(t *testing.T) {
	w, l, x, y := trio(t)
	prefer := func(priorities map[uint64]int) {
		for _, m := range w.machines {
			if m.node != nil {
				m.node.SetPriorities(priorities)
			}
		}
	}
	prefer(map[uint64]int{l.id: 5, x.id: 15, y.id: 5})
	w.run(5 * second)
	if w.leader() != l {
		t.Fatal("leadership moved between equals")
	}
	prefer(map[uint64]int{l.id: 5, x.id: 15, y.id: 3})
	w.run(second)
	if w.leader() != l {
		t.Fatal("leadership moved before the better one had been there for a while")
	}
	w.must(t, "the better one to lead", func() bool { return w.leader() == y })
	begin := w.now
	w.crash(y)
	l.gone, x.gone = append(l.gone, y.id), append(x.gone, y.id)
	w.must(t, "a new leader", func() bool { return w.leader() != nil })
	if w.leader() != l || w.now-begin > 120*ms { // heartbeats of the dead one are still on their way
		t.Fatalf("%d leads after %d ms, want %d", w.leader().id, (w.now-begin)/ms, l.id)
	}
	w.crash(l)
	w.start(y)
	w.must(t, "a new leader", func() bool { return w.leader() != nil })
	w.crash(w.leader())
	w.start(l)
	w.must(t, "the last to lead if nobody else does", func() bool { return w.leader() != nil })
	checked(t, w)
}

// "A reluctant node never stands by itself; only after it refused a candidate for its shorter log, and nobody led"
func TestReluctant(t *testing.T) {
	w := newWorld(7, testConfig(), 3)
	arbiter := w.machines[2]
	w.crash(arbiter)
	arbiter.cfg.Reluctant = true
	w.start(arbiter)
	w.grow(3, 0)
	a, b := w.machines[0], w.machines[1]
	w.must(t, "a to lead", func() bool { return w.leader() == a })
	w.crash(b)
	if err := w.propose(a, "b does not have this", Condition{}); err != nil {
		t.Fatal(err)
	}
	w.run(second)
	w.crash(a)
	w.run(5 * second)
	if arbiter.node.elect.leads || arbiter.node.elect.attempts > 0 {
		t.Fatal("it stood though nobody was refused")
	}
	w.start(b)
	w.must(t, "b to get it and to lead", func() bool { return w.leader() == b && len(b.fsm.Log) == 1 })
	if arbiter.node.elect.attempts == 0 {
		t.Fatal("this tests nothing: b could lead by itself")
	}
	checked(t, w)
}

// "must leave a majority that is there"
func TestMembershipIsRefused(t *testing.T) {
	w := newWorld(8, testConfig(), 4)
	w.grow(3, 1)
	l := w.leader()
	want := func(step Step, id uint64, kind error) {
		t.Helper()
		if err := w.member(l, step, id); !errors.Is(err, kind) {
			t.Fatalf("step %d of %d: %v", step, id, err)
		}
	}
	others := slices.DeleteFunc([]uint64{1, 2, 3}, func(id uint64) bool { return id == l.id })
	want(Remove, l.id, ErrMembership)
	want(Remove, 77, ErrMembership)
	want(Promote, others[0], ErrMembership)
	want(AddLearner, 4, ErrMembership)
	want(AddLearner, 0, ErrMembership)
	want(9, 4, ErrMembership)
	w.crash(w.find(others[0]))
	w.crash(w.find(4))
	w.run(second)
	want(Remove, others[1], ErrMembership) // it would leave one of two
	want(Promote, 4, ErrMembership)        // nothing is heard of it
	want(AddLearner, l.id, ErrMembership)
	want(AddLearner, others[1], ErrMembership) // the rest would be one of two
	want(Remove, others[0], nil)
	want(Remove, 4, ErrMembership) // another is under way
	w.must(t, "the removal", func() bool { return len(l.node.conf.Voters) == 2 })
	if d := l.done[len(l.done)-1]; d.Outcome != Taken || d.Change == 0 {
		t.Fatalf("%+v", d)
	}
	if err := w.member(w.find(others[1]), AddLearner, 5); !errors.Is(err, ErrNotLeader) {
		t.Fatal(err)
	}
	checked(t, w)
}

func TestProposalsAreBounded(t *testing.T) {
	w, l, _, _ := trio(t)
	for _, m := range w.machines {
		if m != l {
			w.crash(m)
		}
	}
	busy := 0
	for i := range maxProposals + 10 {
		if err := w.propose(l, fmt.Sprint(i), Condition{}); errors.Is(err, ErrBusy) {
			busy++
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if busy != 10 {
		t.Fatalf("%d were refused", busy)
	}
	for err, do := range map[error]func() error{
		ErrProposal: func() error { return l.node.Propose(1, nil, Condition{}) },
		ErrConfig:   func() error { return l.node.Identify(1, make([]byte, MaxNote+1)) },
	} {
		if got := do(); !errors.Is(got, err) {
			t.Fatal(got)
		}
	}
	if err := l.node.Propose(1<<40, make([]byte, MaxCommand+1), Condition{}); !errors.Is(err, ErrProposal) {
		t.Fatal(err)
	}
}

// A read is asked again if the leader does not answer.
func TestReadsAreRepeated(t *testing.T) {
	w, _, x, _ := trio(t)
	lost := 0
	w.hold = func(from, _ uint64, k kind, _ *pb.Message) bool {
		if k == kindAnswer || k == kindAsk && from == x.id {
			lost++
			return lost < 10
		}
		return false
	}
	w.read(x)
	w.must(t, "the read", func() bool { return len(x.reads) == 1 })
	if lost < 10 {
		t.Fatal("this tests nothing")
	}
	checked(t, w)
}

// "Proposals of members that were removed do not count": nor does anybody remember them.
func TestRemovedProposer(t *testing.T) {
	w, l, x, _ := trio(t)
	if err := w.propose(x, "of a member", Condition{}); err != nil {
		t.Fatal(err)
	}
	w.run(second)
	if l.node.seen[x.id] == nil {
		t.Fatal("this tests nothing")
	}
	if err := w.member(l, Remove, x.id); err != nil {
		t.Fatal(err)
	}
	w.must(t, "the removal", func() bool { return !l.node.isMember(x.id) })
	env := envelope{Raft: x.id, Life: x.life, ID: 99, Data: []byte("late")}
	l.node.commit(&pb.Entry{Index: new(l.node.applied + 1), Term: new(l.node.elect.term), Data: env.encode()})
	if len(l.node.out.Apply) != 0 || l.node.seen[x.id] != nil {
		t.Fatal("a removed member's proposal was applied, or is remembered")
	}
	checked(t, w)
}

// A voter that is added as a learner votes no more, and stays a member.
func TestVoterBecomesLearner(t *testing.T) {
	w := newWorld(9, testConfig(), 3)
	w.grow(3, 0)
	l := w.leader()
	other := slices.DeleteFunc([]uint64{1, 2, 3}, func(id uint64) bool { return id == l.id })[0]
	w.insist(AddLearner, other)
	w.must(t, "the voter to be a learner", func() bool {
		return len(l.node.conf.Voters) == 2 && slices.Equal(l.node.conf.Learners, []uint64{other})
	})
	w.insist(Promote, other)
	w.must(t, "the learner to be a voter again", func() bool { return len(l.node.conf.Voters) == 3 })
	checked(t, w)
}

// TestTheLastVoterAnswers: what the leader has begun to ask the others is never answered once it is alone; it must begin anew,
// or nobody ever gets a lease or a read again.
func TestTheLastVoterAnswers(t *testing.T) {
	w := newWorld(10, testConfig(), 2)
	w.grow(2, 0)
	l := w.leader()
	x := w.machines[2-l.id]
	w.hold = func(from, _ uint64, k kind, m *pb.Message) bool {
		return from == x.id && k == kindRaft && m.GetType() == pb.MsgHeartbeatResp
	}
	w.run(10 * ms) // what was on its way has come
	w.must(t, "somebody to be waited for", func() bool { return len(l.node.lead.inFlight) > 0 })
	if err := w.member(l, Remove, x.id); err != nil {
		t.Fatal(err)
	}
	w.must(t, "the leader to be alone", func() bool { return l.node.alone() })
	w.read(l)
	w.must(t, "an answer", func() bool { return len(l.reads) > 0 })
	until := l.lease
	w.must(t, "another lease", func() bool { return l.lease > until })
	checked(t, w)
}
