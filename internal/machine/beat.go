package machine

import (
	"slices"
	"time"

	"github.com/opencluster/oclocks/internal/mutant"
	"github.com/opencluster/oclocks/subjects"
)

// sentBeat is one keep-alive.
type sentBeat struct {
	beat uint64
	at   int64
	node string // "" if it went to all nodes
	era  uint64 // of the session
}

// How often those that owe an answer are asked again: 1/32 of the lease, within these bounds.
const (
	minBeatRetry = int64(5 * time.Millisecond)
	maxBeatRetry = int64(250 * time.Millisecond)
)

// needed says whether the session must be kept alive.
func (m *Machine) needed() bool {
	return m.session.leased > 0 || m.session.acquiring > 0 || m.session.keepIdle
}

// need is called before the session is needed. If it was not until now, the first keep-alive is due in half a lease: the
// request that needs it is heard by the broker itself.
func (m *Machine) need(now int64) {
	if s := &m.session; !m.needed() {
		s.nextRound = m.roundAfter(now)
		s.owed = false
		m.exorcise()
	}
}

// stepsOfLease is how many moments there are in a lease at which rounds begin in step.
const stepsOfLease = 4

// roundAfter is when the round after now begins: in half a lease; in step with other machines at the last of their moments until then, which
// is in more than a quarter of the lease.
func (m *Machine) roundAfter(now int64) int64 {
	s := &m.session
	at := now + max(s.lease/2, 1)
	if step := s.lease / stepsOfLease; m.cfg.InStep && step > 0 {
		at -= (at - m.cfg.Phase) % step
	}
	return at
}

func (m *Machine) roundDue() int64 {
	s := &m.session
	switch {
	case !m.connected || !s.ready() || !m.needed():
		return Never
	case s.owed:
		return min(s.nextRound, s.retryAt)
	}
	return s.nextRound
}

// tickBeats sends the keep-alives that are due: every half lease one to each node that is thought to be primary of a hold's
// bucket, and soon again, to all nodes, while a hold is not proved.
func (m *Machine) tickBeats(now int64) {
	s := &m.session
	switch {
	case now < m.roundDue():
	case now >= s.nextRound:
		m.beginRound(now)
	case !m.owing():
		s.owed = false
		m.exorcise()
	default:
		s.tries++
		s.retryAt = now + s.retryEvery()
		m.sendBeat(now, "")
		if s.tries > patientTries {
			m.doubtUnproved(now)
		}
	}
}

// patientTries is how often all nodes are asked in vain for holds before they are asked for one by one: the buckets may be
// with no node for a while, and the node that gets them answers for many holds at once.
const patientTries = 2

func (m *Machine) beginRound(now int64) {
	s := &m.session
	m.exorcise()
	nodes, known := m.nodes()
	everybody := s.everybody || s.owed || s.acquiring > 0 || s.keepIdle || !known || len(nodes) == 0
	s.nextRound, s.roundAt, s.retryAt = m.roundAfter(now), now, now+s.retryEvery()
	s.owed, s.tries, s.everybody = !known || len(nodes) > 0, 0, false
	if everybody {
		m.sendBeat(now, "")
		return
	}
	for _, node := range nodes {
		m.sendBeat(now, node)
	}
}

// nodes are those that are thought to be primary of a connection hold's bucket; known is false if one of them is not known.
func (m *Machine) nodes() (nodes []string, known bool) {
	known = true
	for _, h := range m.holds {
		switch {
		case !h.connection():
		case h.home.node == "":
			known = false
		case !slices.Contains(nodes, h.home.node):
			nodes = append(nodes, h.home.node)
		}
	}
	return nodes, known
}

// owes says whether a hold's primary owes a proof of it in the present round.
func (m *Machine) owes(h *Hold) bool {
	return h.connection() && h.phase == active && m.counts(h) && h.learned < m.session.roundAt && h.heard < m.session.roundAt
}

// owing says whether a proof is owed.
func (m *Machine) owing() bool { return slices.ContainsFunc(m.holds, m.owes) }

func (s *session) retryEvery() int64 {
	return min(max(s.lease/32, minBeatRetry), maxBeatRetry)
}

// sendBeat sends one keep-alive, with a number of its own, to a node or, if it is "", to all.
func (m *Machine) sendBeat(now int64, node string) {
	s := &m.session
	s.beat++
	old := 0
	for old < len(s.sent) && s.sent[old].at < now-2*s.lease {
		old++
	}
	s.sent = append(slices.Delete(s.sent, 0, old), sentBeat{beat: s.beat, at: now, node: node, era: s.era})
	subject := subjects.SimpleSubject(subjects.OpKeep, m.cfg.User)
	if node != "" {
		subject = subjects.KeepNodeSubject(node, m.cfg.User)
	}
	req := subjects.Request{Op: subjects.OpKeep, Session: s.token, Beat: s.beat}
	m.act(Action{Kind: Send, Subject: subject, Reply: KeepToken(s.beat), Node: node, Body: req.AppendJSON(nil)})
}

// find gives a beat of the last two leases.
func (s *session) find(beat uint64) (sentBeat, bool) {
	if len(s.sent) == 0 || beat < s.sent[0].beat || beat > s.sent[len(s.sent)-1].beat {
		return sentBeat{}, false
	}
	return s.sent[beat-s.sent[0].beat], true
}

// current says whether what was sent in an era of the session proves that the broker has heard: only that of the present one
// does, while its connection lasts. Between a disconnect and the return of the session the broker may answer a late message of
// the old connection, or one that came over a lane, and yet end the holds.
func (m *Machine) current(era uint64) bool {
	return m.connected && m.session.phase == open && (era == m.session.era || mutant.On(mutant.EarlierConnectionCounts))
}

// Kept takes a node's answer to a keep-alive.
func (m *Machine) Kept(now int64, k *subjects.Kept) {
	m.tickHolds(now)
	b, ok := m.session.find(k.Beat)
	if !ok || !m.current(b.era) {
		return // long past, or of an earlier connection
	}
	m.compare(now, b, k)
	if m.session.owed && !m.owing() {
		m.session.owed = false
		m.exorcise()
	}
	m.tickBeats(now)
}

// KeepRefused takes the refusal of a keep-alive, or that nobody listened for it (503).
func (m *Machine) KeepRefused(now int64, beat uint64, why *subjects.Refusal) {
	m.tickHolds(now)
	b, ok := m.session.find(beat)
	switch {
	case !ok:
	case why.Reason == subjects.ReasonSession && m.current(b.era):
		m.over(now, why)
	case why.Why == subjects.WhyDisconnected && m.current(b.era):
		m.reopen(now) // the broker has seen a connection end that we have not
	case why.Code == 503 && b.node != "":
		// The node is gone; others have its buckets, now or soon.
		m.session.retryAt = now
		m.tickBeats(now)
	}
}

// exorcise forgets the released holds that no unanswered keep-alive can count.
func (m *Machine) exorcise() {
	m.ghosts = slicesDelete(m.ghosts, func(h *Hold) bool { return h.goneAt != 0 })
}

// slicesDelete takes the holds out of a list that match.
func slicesDelete(list []*Hold, match func(*Hold) bool) []*Hold {
	for i := len(list) - 1; i >= 0; i-- {
		if match(list[i]) {
			list = remove(list, list[i])
		}
	}
	return list
}
