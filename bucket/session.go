package bucket

import (
	"cmp"
	"time"

	"github.com/opencluster/oclocks/internal/mutant"
	"github.com/opencluster/oclocks/subjects"
)

// session is what a bucket knows of a session: from the first request of its that changes something here, until it is
// silent and has nothing, or until the tombstone of its end is old enough.
type session struct {
	id           string
	user         string
	zone         uint32
	opening      // the latest that is replicated
	lease        time.Duration
	cnext, cprev uint32 // sessions of the same connection
	state        sessionState
	why          why    // of an ended one
	released     uint64 // of a closed one: how many holds that ended

	done     uint64 // the client awaits no reply to a request below it
	forgot   uint64 // the highest number whose outcome was forgotten in spite of that
	window   window
	finished list // remembered requests, the oldest outcome first
	outcomes int  // how many

	holds, waits list
	bound        int // connection holds
	statics      int // static holds
	waiting      int
	weight       int    // bytes that the end of all of them may take in a change, see maxSessionWeight
	count        int    // holds that a keep-alive is told of: all but forced ones
	hash         uint64 // XOR of their tokens' hashes

	// Soft.
	deadline int64
	parted   bool // its connection was closed and it has not come back
	beat     uint64
	newer    *Session // a later opening that was heard of and is not replicated yet
	armed    int64    // for when the timer is set
	timer    node
}

type sessionState uint8

const (
	sessionLive    sessionState = iota + 1
	sessionEndedBy              // why says by what; later requests are refused
	sessionDormant              // forgotten but for the static holds that name it
)

const (
	requestKeep = 2 * time.Minute // how long an outcome is remembered that nobody said to have got
	// maxSessionWeight is how much one session may hold and wait for in a bucket: all of it ends in one change, which must
	// fit into the journal's largest record with the grants that follow.
	maxSessionWeight = 32 << 20
	// maxOutcomes is how many outcomes are remembered for a session in a bucket; the oldest go.
	maxOutcomes = 65_536
)

// tombstoneKeep is how long the end of a session is remembered.
func (s *session) tombstoneKeep() time.Duration { return max(requestKeep, 2*s.lease) }

// idleKeep is how long a silent session is remembered that has nothing.
func (s *session) idleKeep() time.Duration { return max(requestKeep, s.lease) }

// opening is one opening of a session, as its token tells it.
type opening struct {
	incarnation uint64
	conn        Conn
}

// compare is above 0 if a is later than b, and 0 if they are the same one. It is the only order of them: see the package's doc.
func (a opening) compare(b opening) int {
	if mutant.On(mutant.SessionOrderByConnection) {
		return cmp.Or(a.conn.Compare(b.conn), cmp.Compare(a.incarnation, b.incarnation))
	}
	return cmp.Or(cmp.Compare(a.incarnation, b.incarnation), a.conn.Compare(b.conn))
}

func (s *Session) opening() opening { return opening{s.Incarnation, s.Conn} }

// latest is the latest opening of the session that was seen.
func (s *session) latest() opening {
	if s.newer != nil {
		return s.newer.opening()
	}
	return s.opening
}

// sessionOf finds a session of the cursor's zone.
func (t *Table) sessionOf(id string) (uint32, *session) {
	if t.at.zone == nil || id == "" {
		return 0, nil
	}
	sid := t.at.zone.sessions[id]
	if sid == 0 {
		return 0, nil
	}
	return sid, t.sessions.at(sid)
}

// admitSession finds the caller's session and restarts its lease, or tells that it is over.
func (t *Table) admitSession(c *call) *subjects.Refusal {
	sid, s := t.sessionOf(c.in.Session.ID)
	if s == nil {
		return nil
	}
	if s.user != c.in.User {
		return &subjects.Refusal{Code: 403, Reason: subjects.ReasonDenied, Field: "session",
			Message: "the session is another user's"}
	}
	if refusal := s.over(&c.in.Session); refusal != nil {
		if s.why == whyClosed && c.req.Op == subjects.OpSessionClose {
			c.session = sid
			return nil // repeatable
		}
		return refusal
	}
	c.session = sid
	if s.state == sessionLive {
		t.hearOf(sid, &c.in.Session)
		t.touch(sid)
	}
	return nil
}

// hearOf takes note of an opening that is later than any before. The change that is about to be made tells the replicas of it; if there is none,
// that is what Untold is for. Its connection counts from then on.
func (t *Table) hearOf(sid uint32, session *Session) {
	s := t.sessions.at(sid)
	if session.opening().compare(s.latest()) <= 0 {
		return
	}
	newer := *session
	s.newer, s.beat, t.heard = &newer, 0, sid
	t.comeBack(sid)
}

// Untold says whether the last Step or Keep heard of an opening of a session that no change tells of yet. What they say must not be
// seen before one does, see the package's doc: a Step with the input Heard makes that change.
func (t *Table) Untold() bool {
	return t.heard != 0 && t.heard < t.sessions.end() && t.sessions.at(t.heard).newer != nil
}

// Unheard says whether a keep-alive of s would be the first that is heard here of a later opening of its session.
func (t *Table) Unheard(zone string, s *Session) bool {
	z := t.zoneOf(zone)
	if z == nil || z.sessions[s.ID] == 0 {
		return false
	}
	have := t.sessions.at(z.sessions[s.ID])
	return have.state == sessionLive && s.opening().compare(have.latest()) > 0
}

// tellHeard makes the change that Untold asks for.
func (t *Table) tellHeard() {
	if !t.Untold() {
		return
	}
	s := t.sessions.at(t.heard)
	t.atZone(t.zones[s.zone].name)
	newer := *s.newer
	t.see(s.user, &newer)
}

// over is what an opening of the session is told that may not act any more; nil if it may.
func (s *session) over(session *Session) *subjects.Refusal {
	if s.state == sessionEndedBy {
		return sessionEnded(s.why)
	}
	if session.opening().compare(s.latest()) < 0 && !mutant.On(mutant.SessionIncarnationIgnored) {
		return sessionEnded(whySuperseded)
	}
	return nil
}

// touch restarts the lease of a session in this bucket. One that has become shorter does not shorten what an earlier
// opening may still trust.
func (t *Table) touch(sid uint32) {
	s := t.sessions.at(sid)
	s.deadline = max(s.deadline, t.after(s.lease))
	t.armSession(sid)
}

// armSession sets the timer of a session if it must come earlier than it is set; a later one sets itself, see wheel.
func (t *Table) armSession(sid uint32) {
	if t.primary && t.sessionDue(t.sessions.at(sid)) < t.sessions.at(sid).armed {
		t.wheel.set(timerOf(sessionTimer, sid))
	}
}

// introduce tells, at the beginning of a change, what the change's request says about its session: a new one, a later
// opening, replies that are awaited no more.
func (t *Table) introduce(c *call) {
	c.session = t.see(c.in.User, &c.in.Session)
	s := t.sessions.at(c.session)
	if c.req.Done > s.done && c.req.Op != subjects.OpCancel {
		o := op{code: opDone, number: c.req.Done}
		o.session = s.id
		t.do(&o)
	}
	if c.request.op != subjects.OpNone && s.outcomes >= maxOutcomes {
		o := op{code: opForget, number: uint64(s.outcomes - maxOutcomes + 1)}
		o.session = s.id
		t.do(&o)
	}
}

// willForget is the highest number whose outcome a session must forget to make room for the call's: see introduce.
func (t *Table) willForget(c *call, s *session) (number uint64) {
	excess := s.outcomes - maxOutcomes + 1
	for id := s.finished.first; id != 0 && excess > 0; id = t.entries.at(id).next {
		if e := t.entries.at(id); e.number >= c.req.Done {
			number = max(number, e.number)
		}
		excess--
	}
	return number
}

// longestLease bounds the lease of a session. No cluster can be set to a longer one.
const longestLease = 24 * time.Hour

// see enters a session, or a later opening of it, unless it is known so already. It returns its number.
func (t *Table) see(user string, session *Session) uint32 {
	sid, s := t.sessionOf(session.ID)
	if s == nil || s.state == sessionDormant || session.opening().compare(s.opening) > 0 {
		// Its lease was judged where it was opened: what its client trusts counts, whatever is set here by now.
		o := op{code: opSeen, span: min(max(session.Lease, time.Millisecond), longestLease)}
		o.session, o.user = session.ID, user
		o.opening = session.opening()
		t.do(&o)
		sid, _ = t.sessionOf(session.ID)
	}
	return sid
}

func (t *Table) applySeen(o *op) bool {
	z := t.at.zone
	if z == nil || o.session == "" || o.span <= 0 {
		return false
	}
	sid, s := t.sessionOf(o.session)
	order := 1
	if s != nil {
		order = o.opening.compare(s.opening)
	}
	switch {
	case s == nil:
		sid, s = t.sessions.take()
		*s = session{id: o.session, user: t.texts.share(o.user), zone: z.id, armed: never}
		z.sessions[s.id] = sid
		z.known.mark(s.id, z.sessions)
	case s.state == sessionEndedBy, order < 0, s.user != o.user, order == 0 && s.state != sessionDormant:
		return false
	}
	if s.state != sessionLive {
		s.state = sessionLive
		z.live++
	}
	t.leaveConn(sid)
	s.opening, s.lease = o.opening, o.span
	t.joinConn(sid)
	if t.primary {
		if s.newer == nil {
			s.beat = 0
		}
		s.newer = nil
		t.comeBack(sid)
		t.touch(sid)
	}
	return true
}

// joinConn enters a session under its connection.
func (t *Table) joinConn(sid uint32) {
	s := t.sessions.at(sid)
	if !s.conn.known() {
		return
	}
	s.conn.Server = t.texts.share(s.conn.Server)
	conns := t.zones[s.zone].conns
	s.cnext, s.cprev = conns[s.conn], 0
	if s.cnext != 0 {
		t.sessions.at(s.cnext).cprev = sid
	}
	conns[s.conn] = sid
}

func (t *Table) leaveConn(sid uint32) {
	s := t.sessions.at(sid)
	if !s.conn.known() {
		s.conn = Conn{}
		return
	}
	conns := t.zones[s.zone].conns
	switch {
	case s.cprev != 0:
		t.sessions.at(s.cprev).cnext = s.cnext
	case s.cnext != 0:
		conns[s.conn] = s.cnext
	default:
		delete(conns, s.conn)
	}
	if s.cnext != 0 {
		t.sessions.at(s.cnext).cprev = s.cprev
	}
	t.texts.drop(s.conn.Server)
	s.cnext, s.cprev, s.conn = 0, 0, Conn{}
}
