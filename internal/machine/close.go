package machine

import "github.com/opencluster/oclocks/subjects"

// Close ends everything: all holds are released, callers' calls that are not releases end with ErrClosing, and the session
// is closed when nothing else is under way. There is nothing left to wait for when Idle.
func (m *Machine) Close(now int64) {
	m.tickHolds(now)
	if m.closing {
		return
	}
	m.closing = true
	for len(m.holds) > 0 {
		m.letGo(now, m.holds[len(m.holds)-1])
	}
	for _, l := range []*callList{&m.others, &m.session.flight} {
		for _, c := range l.all() {
			if c.list == l {
				m.abort(now, c)
			}
		}
	}
	if c := m.session.opener; c != nil && m.session.token == "" && !m.sessionAwaited() {
		m.session.phase, m.session.opener = none, nil
		m.finish(c, Result{})
	}
	m.closeOn(now)
}

// sessionAwaited says whether something is to be done in a session: a release goes on after Close.
func (m *Machine) sessionAwaited() bool {
	for _, l := range []*callList{&m.others, &m.session.flight} {
		for c := l.head; c != nil; c = c.next {
			if c.inSession() {
				return true
			}
		}
	}
	return false
}

// Idle says whether a closed machine has nothing under way.
func (m *Machine) Idle() bool { return m.closing && len(m.byID) == 0 && m.session.token == "" }

// Break says that there will never be a connection again: every caller's call ends with err, now and later. Holds are
// trusted until their time is over.
func (m *Machine) Break(now int64, err error) {
	m.Disconnected(now)
	m.broken = err
	for _, l := range []*callList{&m.others, &m.session.flight} {
		for _, c := range l.all() {
			if c.list == l {
				m.finish(c, Result{Err: err})
			}
		}
	}
	m.vacant = nil
	for _, h := range m.holds {
		if c := h.acquire; c != nil {
			h.acquire = nil
			m.finish(c, Result{Err: err})
		}
	}
}

// letGo releases a hold for good: those of a connection by the end of the session, the others one by one.
func (m *Machine) letGo(now int64, h *Hold) {
	if c := h.acquire; c != nil {
		h.acquire = nil
		m.finish(c, Result{Err: ErrClosing})
	}
	if !h.connection() {
		m.Release(now, h, "client closed", tidyCall())
		return
	}
	m.leave(h)
	m.ended(h, Released)
}

// abort ends a call because the machine closes. Releases go on; an acquire that the end of the session does not take back
// is cancelled.
func (m *Machine) abort(now int64, c *Call) {
	switch {
	case c.role != forCaller:
		if c.Req.Op == subjects.OpRenew {
			m.finish(c, Result{})
		}
	case c.given && c.Req.Op == subjects.OpAcquire && c.cancel == nil:
		m.finish(c, Result{}) // its cancel was refused
	case c.Req.Op == subjects.OpRelease, c.given:
	case c.Req.Op == subjects.OpAcquire && (c.Raw || c.Req.Kind == subjects.Static):
		c.Result = Result{Err: ErrClosing}
		m.act(Action{Kind: Finish, Call: c})
		m.GiveUp(now, c)
	default:
		m.finish(c, Result{Err: ErrClosing})
	}
}

// closeOn closes the session once it is needed for nothing else.
func (m *Machine) closeOn(now int64) {
	s := &m.session
	if !m.closing || s.token == "" || len(m.byID) > 0 {
		return
	}
	m.closeSession(now)
	s.phase, s.token, s.secret = none, "", ""
}

// closeSession tells all buckets that the session is over.
func (m *Machine) closeSession(now int64) {
	req := &subjects.Request{Op: subjects.OpSessionClose, Session: m.session.token}
	m.start(now, &Call{Req: req, Raw: true, role: toTidy})
}
