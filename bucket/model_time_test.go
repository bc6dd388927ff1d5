package bucket

import (
	"fmt"
	"slices"
	"time"

	"github.com/opencluster/oclocks/subjects"
)

// tick takes over what the table's timer did, if that was due; otherwise it says why it was not.
func (m *model) tick(ops []op) error {
	var z *mZone
	var first *op
	closes := slices.IndexFunc(ops, func(o op) bool { return o.code == opCloseSession })
	for i := range ops {
		switch o := &ops[i]; o.code {
		case opZone:
			z = m.zone(o.zone)
		case opName:
		case opForgetEnds:
			if err := m.timeEnds(z, int(o.number)); err != nil {
				return err
			}
			if len(ops) == i+1 && first == nil {
				return nil
			}
		default:
			if first == nil {
				first = o
			}
		}
	}
	switch {
	case first == nil:
		return nil
	case closes >= 0:
		return m.expire(z, z.sessions[ops[closes].session])
	case first.code == opEnd:
		return m.timeHold(z, first.token)
	case first.code == opLeave:
		return m.timeWaiter(z, first.ticket)
	case first.code == opAdmit:
		l, _ := m.waiter(z, first.ticket)
		m.settle(z, l)
	case first.code == opForget:
		return m.timeRequests(z, first)
	case first.code == opDropSession:
		s := z.sessions[first.session]
		if m.sessionDue(z, s) > m.now.Boot {
			return fmt.Errorf("session %s is forgotten too early", s.id)
		}
		m.dropSession(z, s)
	case first.code == opSeen:
		s := z.sessions[first.session]
		if s.next == nil {
			return fmt.Errorf("session %s was not seen again", s.id)
		}
		m.see(z, s.user, s.next)
	default:
		return fmt.Errorf("a timer did %s", drawOp(first))
	}
	return nil
}

func (m *model) expire(z *mZone, s *mSession) error {
	waiters, holds := m.of(z, s)
	holds = slices.DeleteFunc(holds, func(h *mHold) bool { return h.kind == subjects.Static })
	if s.deadline > m.now.Boot || len(waiters)+len(holds) == 0 {
		return fmt.Errorf("session %s ends too early", s.id)
	}
	m.endSession(z, s, "expired")
	return nil
}

func (m *model) timeHold(z *mZone, token uint64) error {
	for _, l := range z.locks {
		for _, h := range l.holds {
			if h.token != token {
				continue
			}
			if m.holdDue(h) > m.now.Boot {
				return fmt.Errorf("the hold of %q ends too early", l.name)
			}
			why := "expired"
			if h.parted <= m.now.Boot {
				why = "disconnected"
			}
			m.endBy(z, h, why)
			return nil
		}
	}
	return fmt.Errorf("nobody holds with %s", drawToken(token))
}

func (m *model) waiter(z *mZone, ticket uint64) (*mLock, *mWaiter) {
	for _, l := range z.locks {
		for _, w := range l.queue {
			if w.ticket == ticket {
				return l, w
			}
		}
	}
	return nil, nil
}

func (m *model) timeWaiter(z *mZone, ticket uint64) error {
	l, w := m.waiter(z, ticket)
	if w == nil || min(w.deadline, w.parted) > m.now.Boot {
		return fmt.Errorf("waiter %d leaves too early", ticket)
	}
	why := "timeout"
	if w.parted <= m.now.Boot {
		why = "disconnected"
	}
	m.leave(z, w, why)
	m.settle(z, l)
	m.tidy(z, l)
	return nil
}

func (m *model) timeRequests(z *mZone, o *op) error {
	finished := z.finished
	s := z.sessions[o.session]
	if o.session != "" {
		finished = s.finished
	}
	for _, r := range slices.Clone(finished[:o.number]) {
		if r.at+int64(2*time.Minute) > m.now.Boot {
			return fmt.Errorf("request %s is forgotten too early", r.text())
		}
		if s != nil {
			s.forgot = max(s.forgot, r.number)
		}
		m.forget(z, r)
	}
	return nil
}

// timeEnds forgets all but a few ended holds of a zone in which none has ended for ten minutes.
func (m *model) timeEnds(z *mZone, n int) error {
	if m.endsDue(z) > m.now.Boot || n != len(z.ended)-m.limits.Ended {
		return fmt.Errorf("%d of %d ended holds of zone %s are forgotten", n, len(z.ended), z.name)
	}
	z.ended = z.ended[n:]
	return nil
}

func (m *model) endsDue(z *mZone) int64 {
	if len(z.ended) <= m.limits.Ended {
		return never
	}
	return z.quiet + int64(10*time.Minute)
}

func (m *model) holdDue(h *mHold) int64 { return min(h.limit, h.parted, h.forced) }

// sessionDue is when a session ends or is forgotten.
func (m *model) sessionDue(z *mZone, s *mSession) int64 {
	waiters, holds := m.of(z, s)
	holds = slices.DeleteFunc(holds, func(h *mHold) bool { return h.kind == subjects.Static })
	switch {
	case s.dormant:
		return never
	case s.ended != "", len(waiters)+len(holds) > 0:
		return s.deadline
	}
	return s.deadline + int64(max(2*time.Minute, s.lease))
}

// overdue says what should have happened by now: a timer may be a millisecond late.
func (m *model) overdue() error {
	tick := m.now.Boot / int64(time.Millisecond) * int64(time.Millisecond)
	late := func(at int64) bool { return at <= tick }
	for _, z := range m.zones {
		for _, l := range z.locks {
			for _, h := range l.holds {
				if late(m.holdDue(h)) {
					return fmt.Errorf("the hold %s of %q should be over", drawToken(h.token), l.name)
				}
			}
			for _, w := range l.queue {
				if late(min(w.deadline, w.parted)) {
					return fmt.Errorf("waiter %d should have left", w.ticket)
				}
			}
			at := *m
			at.now.Boot = tick
			if late(m.promoted) && !at.recovering() && at.next(l, asks(l)) >= 0 {
				return fmt.Errorf("somebody should have been granted %q", l.name)
			}
		}
		for _, s := range z.sessions {
			if late(m.sessionDue(z, s)) || s.ended == "" && s.next != nil {
				return fmt.Errorf("session %s should be over, or its return told", s.id)
			}
			if len(s.finished) > 0 && late(s.finished[0].at+int64(2*time.Minute)) {
				return fmt.Errorf("requests of session %s should be forgotten", s.id)
			}
		}
		if len(z.finished) > 0 && late(z.finished[0].at+int64(2*time.Minute)) {
			return fmt.Errorf("requests of zone %s should be forgotten", z.name)
		}
		if late(m.endsDue(z)) {
			return fmt.Errorf("ended holds of zone %s should be forgotten", z.name)
		}
	}
	return nil
}
