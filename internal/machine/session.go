package machine

import (
	"time"

	"github.com/opencluster/oclocks/subjects"
)

// phase is how far the session is.
type sessionPhase uint8

const (
	none      sessionPhase = iota
	opening                // the first session-open, or the first after the end of another session, is under way
	reopening              // the session comes back over another connection
	open
)

// session is the machine's part of a session.
type session struct {
	phase       sessionPhase
	info        subjects.Opened
	token       string // "" before the first session-open is answered
	secret      string // "" for a new session
	incarnation uint64 // as the broker numbers it; only shown, and for above
	era         uint64 // counts what was opened, in one session after the other: the broker's numbers may be equal in two of them
	lease       int64
	since       int64 // when the present incarnation was opened
	opener      *Call // session-open under way

	life      uint64   // counts the sessions, one after the other
	number    uint64   // the newest number of a call
	floor     uint64   // numbers from here on are above all that a bucket has refused; see renumber.go
	flight    callList // numbered calls, in the order of their numbers
	acquiring int      // acquires among them
	leased    int      // connection holds

	keepIdle  bool // keep it alive even if nothing is held through this machine
	beat      uint64
	sent      []sentBeat // the beats of the last two leases, in order
	nextRound int64      // when to begin the next round of keep-alives
	roundAt   int64      // when the present one began
	owed      bool       // holds have not been proved in it yet
	tries     int        // how often everybody was asked again in it
	retryAt   int64      // when to ask again
	everybody bool       // the next round asks all nodes: buckets may have moved since the last
}

// ready says whether calls of the session can be sent.
func (s *session) ready() bool { return s.phase == open }

// Session describes the open session; ok is false while there is none.
func (m *Machine) Session() (info subjects.Opened, ok bool) {
	return m.session.info, m.session.phase == open
}

// KeepSession keeps the session alive from now on also while nothing is held through this machine.
func (m *Machine) KeepSession(now int64) {
	m.need(now)
	m.session.keepIdle = true
}

// open begins the first session, or a new one after the end of another.
func (m *Machine) open(now int64) {
	m.session.phase = opening
	m.sendOpen(now)
}

// reopen brings the session back over a new connection. A session-open that was sent over the old one is forgotten: it
// names a connection that is gone.
func (m *Machine) reopen(now int64) {
	if m.session.token != "" {
		m.session.phase = reopening
	}
	if c := m.session.opener; c != nil {
		m.finish(c, Result{})
	}
	m.sendOpen(now)
}

func (m *Machine) sendOpen(now int64) {
	req := &subjects.Request{
		Op: subjects.OpSessionOpen, Secret: m.session.secret, Location: m.cfg.Location, Holder: m.cfg.Name,
		Server: m.conn.Server, CID: m.conn.CID,
	}
	if m.cfg.Lease > 0 {
		req.TTL, req.Has = m.cfg.Lease, subjects.HasTTL
	}
	m.session.opener = &Call{Req: req, role: toOpen}
	m.start(now, m.session.opener)
}

// openSettled takes the answer to session-open.
func (m *Machine) openSettled(now int64, c *Call, r Result) {
	m.finish(c, r)
	s := &m.session
	s.opener = nil
	var info subjects.Opened
	if r.Data != nil {
		if err := info.DecodeJSON(r.Data); err != nil {
			r.Err = err
		}
	}
	switch {
	case r.Data != nil && r.Err == nil:
		m.opened(now, info)
	case s.phase == reopening:
		// The broker does not know the session any longer (its keys are new), or not this user.
		m.over(now, told(subjects.ReasonSession, subjects.WhyExpired, "the session could not come back: "+reason(r)))
	default:
		s.phase = none
		for _, p := range m.others.all() {
			if p.list == &m.others && p.inSession() && p.state == parked {
				m.settle(now, p, Result{Refusal: r.Refusal, Err: r.Err})
			}
		}
	}
}

func reason(r Result) string {
	if r.Refusal != nil {
		return r.Refusal.Error()
	}
	return r.Err.Error()
}

func (m *Machine) opened(now int64, info subjects.Opened) {
	s := &m.session
	s.phase, s.info, s.token, s.secret = open, info, info.Session, info.Secret
	s.incarnation, s.lease, s.since = info.Incarnation, int64(info.Lease), now
	s.era++
	if s.number == 0 && m.cfg.Secret != "" {
		s.number = m.above(info.Incarnation)
	}
	for _, h := range m.holds {
		if h.connection() && h.lease > s.lease {
			m.shorten(now, h)
		}
	}
	m.act(Action{Kind: Opened, Subject: info.Events})
	if m.needed() {
		// First of all the nodes are to learn of the new incarnation, and holds may have waited long for a keep-alive. What
		// broke the connection may have moved buckets as well.
		s.nextRound, s.everybody = now, true
		m.tickBeats(now)
	}
	m.resendAll(now, &s.flight)
	for _, c := range m.others.all() {
		if c.list == &m.others && c.inSession() {
			m.send(now, c)
		}
	}
}

// above is a number above those of the requests that earlier processes have sent in the session that this one comes back to: what
// one of those did would be answered again instead of being done. The incarnation rises with the brokers' clocks, FirstBeat with
// those of the clients, and the sum with either. It leaves room for a million requests in a second, but for one millisecond, and stays
// below 2^53. Two that come back in one millisecond are kept apart by Seed: they are two runs of one program mostly, and ask for the same.
// Clocks may be wrong: a bucket that has met higher numbers tells so (renumber.go).
func (m *Machine) above(incarnation uint64) uint64 {
	const room = 10 // bits of the number for the requests of a millisecond
	return (incarnation+m.cfg.FirstBeat>>4)<<room&(1<<53-1) | m.cfg.Seed&(1<<room-1)
}

// sessionRefused takes a 410 session. If the session has come back since the call was sent, that tells nothing: what was sent
// before may reach the broker behind the new incarnation, and is superseded by it. late says that the refusal is to a sending with
// an earlier incarnation than the newest one.
func (m *Machine) sessionRefused(now int64, c *Call, late bool, why *subjects.Refusal) {
	switch {
	case !m.current(c.era):
		m.send(now, c)
	case !late:
		m.over(now, why)
	}
}

// over ends the session: everything that lives in it is lost. Acquires that are still wanted, and whatever concerns static
// holds, go on in a new session; the buckets that have not ended the old one are told.
func (m *Machine) over(now int64, why *subjects.Refusal) {
	s := &m.session
	if s.token != "" && !m.closing && why.Why != subjects.WhySuperseded { // the session is another process's then
		m.closeSession(now)
	}
	if s.opener != nil {
		m.finish(s.opener, Result{})
	}
	calls := s.flight.all()
	s.phase, s.token, s.secret, s.opener, s.info = none, "", "", nil, subjects.Opened{}
	s.number, s.floor, s.incarnation, s.owed, s.sent = 0, 0, 0, false, nil
	m.homes = map[uint32]*home{} // that of a broker which has forgotten everything counts its epochs anew
	s.life++
	m.ghosts = slicesDelete(m.ghosts, (*Hold).connection)
	for i := len(m.holds) - 1; i >= 0; i-- {
		if h := m.holds[i]; h.connection() {
			m.lose(now, h, why)
		}
	}
	for _, c := range calls {
		m.outlive(now, c, why)
	}
	for _, c := range m.others.all() {
		if c.list == &m.others && c.cancels() {
			m.finish(c, Result{Refusal: why})
		}
	}
	m.closeOn(now)
}

// outlive goes on with a numbered call after its session's end, or ends it. An acquire of a static lock may have been granted under
// its old number: that hold is nobody's then, until its time limit is over (docs/locks.md). To take it back its bucket would have to know
// the number of every static hold, beyond the end of the session (it forgets the outcomes there), and let such a session cancel.
func (m *Machine) outlive(now int64, c *Call, why *subjects.Refusal) {
	switch {
	case c.list == nil:
	case c.Req.Op == subjects.OpAcquire && !c.given,
		c.about != nil && !c.about.connection(),
		c.role == toTidy && c.about == nil:
		m.again(now, c)
	default:
		m.settle(now, c, Result{Refusal: why})
	}
}

// Event takes a session event: it ends the hold that is lost or to be given back.
func (m *Machine) Event(now int64, e *subjects.SessionEvent) {
	m.tickHolds(now)
	if e.Type != "lost" && e.Type != "forced" {
		return
	}
	for _, h := range m.holds {
		if h.Grant.Token != e.Token || h.Grant.Name != e.Name || h.phase == Pending {
			continue
		}
		why := told(subjects.ReasonLost, e.Why, "the broker ended the hold")
		if e.Type == "forced" {
			why = told(subjects.ReasonLost, subjects.WhyForced, "an administrator ends the hold; release it to confirm")
			h.forced = true
		}
		m.lose(now, h, why)
		return
	}
}

// Lease is the lease of the session; 0 before one was opened.
func (m *Machine) Lease() time.Duration { return time.Duration(m.session.lease) }
