package machine

import (
	"testing"
	"time"

	"github.com/opencluster/oclocks/subjects"
)

// limited is a static hold with a time limit of 16 s, which is renewed at 8 s and trusted for 12 s.
func limited(s *script) *Hold {
	h := s.acquire("a", func(c *Call) {
		c.Req.Kind, c.Req.TTL, c.Req.Has = subjects.Static, 16*time.Second, subjects.HasTTL
	})
	s.opened(1)
	s.grant(s.next(subjects.OpAcquire), 10, nil)
	return h
}

func (s *script) extend(h *Hold, ttl time.Duration) {
	s.do(func(now int64) {
		if !s.m.Renew(now, h, ownCall("owner", &subjects.Request{TTL: ttl, Has: subjects.HasTTL})) {
			s.t.Fatal("it has ended")
		}
	})
}

// renewed answers a renew: the limit that is told is the one that the broker has then.
func (s *script) renewed(msg sentMessage, ttl time.Duration) {
	s.grant(msg, 10, func(g *subjects.Grant) { g.TTL, g.Lease = ttl, ttl })
}

// The broker may count by the shorter limit from the sending on. (Simulator, seed 6064 of 22 November.)
func TestShorterLimitEndsTheTrustBeforeItsAnswer(t *testing.T) {
	s := newScript(t)
	h := limited(s)
	s.extend(h, 4*time.Second)
	s.left(h, 3*time.Second)
	s.pass(3*time.Second - 1)
	s.state(h, Held)
	s.pass(1)
	s.state(h, Lost)

	s = newScript(t)
	h = limited(s)
	s.extend(h, 4*time.Second)
	s.answer(s.next(subjects.OpRenew), refusal(400, subjects.ReasonBadRequest, ""))
	s.left(h, 12*time.Second) // nothing was done

	s = newScript(t)
	h = limited(s)
	s.extend(h, time.Hour)
	s.left(h, 12*time.Second) // nor is it known to be longer
	s.renewed(s.next(subjects.OpRenew), time.Hour)
	s.left(h, 45*time.Minute)
}

// One limit is set after the other, in the order of asking, and answers that come late do not bring an earlier one back.
// (Simulator, seed 6268 of 22 November.)
func TestLimitsAreSetOneByOne(t *testing.T) {
	s := newScript(t)
	h := limited(s)
	s.extend(h, 8*time.Second)
	first := s.next(subjects.OpRenew)
	s.extend(h, 4*time.Second)
	s.quiet()
	s.left(h, 6*time.Second)
	s.do(func(now int64) { s.m.askRenew(now, h, false) })
	beside := s.next(subjects.OpRenew)
	s.pass(100 * time.Millisecond)
	s.renewed(first, 8*time.Second)
	second := s.next(subjects.OpRenew)
	if second.req.TTL != 4*time.Second {
		t.Fatalf("%v is set after %v", second.req.TTL, first.req.TTL)
	}
	s.left(h, 3*time.Second)
	s.renewed(second, 4*time.Second)
	s.left(h, 3*time.Second)
	s.renewed(beside, 16*time.Second) // it was done before the first
	s.renewed(first, 8*time.Second)
	s.left(h, 3*time.Second)
	s.sent = nil
	s.pass(2 * time.Second)
	s.renewed(s.next(subjects.OpRenew), 4*time.Second)
	if left := h.Left(s.now); left < 2*time.Second || left > 3*time.Second {
		t.Errorf("trusted for %v after a renew", left)
	}
}
