package plan

import (
	"cmp"
	"slices"
)

// groupWork is what is going on with the Raft group.
type groupWork struct {
	step    MemberStep
	sent    int64
	moved   int64            // when the leadership was given away last
	absence map[uint64]int64 // voters, by raft ID, that are away, and since when
}

// Times of the Raft group, in nanoseconds, and how far a log may be behind to count as the leader's.
const (
	stepAgain  = 500_000_000
	transferIn = 5_000_000_000
	slack      = 256
)

// voter is a member of the group with what is known of its node.
type voter struct {
	raft  uint64
	seat  *seat // nil: of no registered node
	match bool  // its log is nearly the leader's
	heard bool  // something came from it lately
	away  bool  // it has been away for long
}

// members asks for the next change of the Raft group, one at a time.
func (t *turn) members() {
	if t.Group.Leader == 0 {
		return
	}
	step := t.membership()
	w := &t.group
	if step == w.step && step.Change != 0 && t.Now < w.sent+stepAgain {
		t.wake(w.sent + stepAgain)
		return
	}
	w.step = step
	if step.Change == 0 {
		return
	}
	w.sent = t.Now
	if step.Change == Transfer {
		w.moved = t.Now
	}
	t.out.Members = []MemberStep{step}
	t.wake(t.Now + stepAgain)
}

func (t *turn) membership() MemberStep {
	voters, learners := t.voters(t.Group.Voters), t.voters(t.Group.Learners)
	if len(t.State.Nodes) == 0 || len(voters) == 0 {
		return MemberStep{}
	}
	for _, v := range slices.Concat(learners, voters) {
		if v.seat == nil && v.raft != t.Group.Leader && dispensable(voters, v) {
			return MemberStep{Remove, v.raft}
		}
	}
	if t.State.NodeByRaft(t.Group.Leader) == nil {
		// This node was removed and will be gone in a moment. It makes no voter a learner: its own vote is counted on for nobody but
		// itself, and with one voter less it could be needed for ever. It takes nodes into the group, if nobody else could (succession).
		if len(voters) == 1 {
			if step := t.resize(voters, learners); step.Change != 0 {
				return step
			}
		}
		return t.succession(voters, learners)
	}
	if step := t.missingMember(); step.Change != 0 {
		return step
	}
	if step := t.resize(voters, learners); step.Change != 0 {
		return step
	}
	return t.lead(voters)
}

// succession gives the leadership of a removed node away. Where no voter could take it, because those that are heard of were removed
// as well, a learner votes first. That costs nothing: of one voter more, whom the majority can count on, as many may fail. If there is no
// learner who could, registered nodes are taken into the group: a learner is counted on for nothing, and nobody else would do it.
func (t *turn) succession(voters, learners []voter) MemberStep {
	if step := t.lead(voters); step.Change != 0 || slices.ContainsFunc(voters, t.present) {
		return step
	}
	if ready := t.ready(learners); len(ready) > 0 {
		return MemberStep{Promote, ready[0].raft}
	}
	return t.missingMember()
}

// voters looks up the members of the group, in the order of their raft IDs.
func (t *turn) voters(list []uint64) []voter {
	w := &t.group
	if w.absence == nil {
		w.absence = map[uint64]int64{}
	}
	out := make([]voter, 0, len(list))
	for _, id := range slices.Sorted(slices.Values(list)) {
		v := voter{raft: id, match: id == t.Group.Leader, heard: id == t.Group.Leader}
		if n := t.State.NodeByRaft(id); n != nil {
			v.seat = t.seats[n.Number]
		}
		for _, m := range t.Group.Match {
			v.match = v.match || m.Raft == id && m.Index+slack >= t.Group.Last
			v.heard = v.heard || m.Raft == id && m.Heard
		}
		switch since, ok := w.absence[id]; {
		case id == t.Group.Leader || v.seat != nil && (v.seat.alive || v.seat.node.Arbiter && v.seat.connected):
			delete(w.absence, id)
		case !ok:
			w.absence[id] = t.Now
			t.wake(t.Now + t.cfg.Absent)
		default:
			v.away = t.Now >= since+t.cfg.Absent
			t.wake1(since + t.cfg.Absent)
		}
		out = append(out, v)
	}
	return out
}

// present says whether the member takes part now.
func (t *turn) present(v voter) bool {
	_, absent := t.group.absence[v.raft]
	return !absent && v.seat != nil
}

// missingMember takes registered nodes into the group.
func (t *turn) missingMember() MemberStep {
	for i := range t.State.Nodes {
		id := t.State.Nodes[i].Raft
		if !slices.Contains(t.Group.Voters, id) && !slices.Contains(t.Group.Learners, id) {
			return MemberStep{AddLearner, id}
		}
	}
	return MemberStep{}
}

// resize brings the number of voters to what it should be, and replaces those who are away for long, a leader that was
// removed, or who are about to stop if the others could decide nothing without them.
func (t *turn) resize(voters, learners []voter) MemberStep {
	want := min(t.State.Settings.Voters, len(t.State.Nodes))
	want -= 1 - want%2
	ready := t.ready(learners)
	worst := t.worst(voters)
	staying := 0
	for _, v := range voters {
		if t.present(v) && !v.seat.leaving {
			staying++
		}
	}
	replace := worst.away || worst.seat == nil || staying < len(voters)/2+1 && worst.seat != nil && worst.seat.leaving
	switch {
	case len(voters) > want:
		less := slices.DeleteFunc(slices.Clone(voters), func(v voter) bool { return !dispensable(voters, v) })
		if len(less) == 0 {
			return MemberStep{}
		}
		if worst = t.worst(less); worst.raft == t.Group.Leader {
			return t.lead(voters)
		}
		return MemberStep{Demote, worst.raft}
	case len(voters) < want && len(ready) > 0 && (len(voters)+len(ready) >= want || len(voters)%2 == 0):
		return MemberStep{Promote, ready[0].raft}
	case len(voters) == want && replace && len(ready) > 0:
		return MemberStep{Promote, ready[0].raft} // then there is one too many
	}
	return MemberStep{}
}

// ready are the learners who could vote, the best one first.
func (t *turn) ready(learners []voter) (ready []voter) {
	for _, l := range learners {
		if t.present(l) && l.match && !l.seat.leaving {
			ready = append(ready, l)
		}
	}
	slices.SortStableFunc(ready, t.worth)
	return ready
}

// worth compares members: negative if a is the better voter. Arbiters are there to vote.
func (t *turn) worth(a, b voter) int {
	rank := func(v voter) int {
		switch {
		case v.seat == nil:
			return 1000
		case v.seat.node.Arbiter:
			return 0
		}
		return v.seat.node.Priority
	}
	return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.raft, b.raft))
}

// dispensable says that enough of the others are there to decide without this member: the arbiter refuses it otherwise, and something
// else may be what helps.
func dispensable(voters []voter, v voter) bool {
	others, heard := 0, 0
	for _, o := range voters {
		if o.raft != v.raft {
			others++
			if o.heard {
				heard++
			}
		}
	}
	return others == len(voters) || heard > others/2
}

// worst is the voter that is given up first: who is away, longest first, or removed, who is about to stop, then the leader last.
func (t *turn) worst(voters []voter) voter {
	grade := func(v voter) int {
		switch since, absent := t.group.absence[v.raft]; {
		case absent:
			return 3 + int((t.Now-since)/1e6)
		case v.seat == nil:
			return 3 // removed, and it leads still
		case v.seat != nil && v.seat.leaving:
			return 2
		case v.raft == t.Group.Leader:
			return 0
		}
		return 1
	}
	return slices.MaxFunc(voters, func(a, b voter) int { return cmp.Or(cmp.Compare(grade(a), grade(b)), t.worth(a, b)) })
}

// lead gives the leadership to a better voter, if there is one.
func (t *turn) lead(voters []voter) MemberStep {
	best, own := voter{}, voter{}
	leader := t.State.NodeByRaft(t.Group.Leader)
	stops := leader == nil || t.seats[leader.Number].leaving
	for _, v := range voters {
		if v.raft == t.Group.Leader {
			own = v
		}
		settled := v.seat != nil && (v.seat.settled || v.seat.node.Arbiter || stops)
		if t.present(v) && v.match && (settled || v.raft == t.Group.Leader) && (best.raft == 0 || t.leads(v, best) < 0) {
			best = v
		}
	}
	if best.raft == 0 || best.raft == own.raft || own.raft != 0 && t.leads(best, own) >= 0 {
		return MemberStep{}
	}
	if !stops && t.group.step.Raft != best.raft && t.group.moved != 0 && t.wait(t.group.moved+transferIn) {
		return MemberStep{}
	}
	return MemberStep{Transfer, best.raft}
}

// leads compares voters: negative if a should lead rather than b.
func (t *turn) leads(a, b voter) int {
	rank := func(v voter) int {
		switch {
		case v.seat == nil || v.seat.node == nil:
			return 300
		case v.seat.leaving:
			return 200 + v.seat.node.Priority
		case v.seat.node.Arbiter:
			return 100
		case v.seat.node.Drain:
			return 50 + v.seat.node.Priority
		}
		return v.seat.node.Priority
	}
	return cmp.Compare(rank(a), rank(b))
}
