package machine

import (
	"testing"
	"time"

	"github.com/opencluster/oclocks/subjects"
)

// lowNumber refuses a message as a bucket does that has been told a higher done by another process of the session.
func (s *script) lowNumber(msg sentMessage, above uint64) {
	s.t.Helper()
	r := refusal(400, subjects.ReasonBadRequest, "")
	r.Field, r.Above = "request", above
	s.answer(msg, r)
}

// Whoever comes back with a clock that is behind asks again, with a number that is new wherever the process before has been.
func TestNumbersBelowThoseOfAnotherProcess(t *testing.T) {
	s := newScript(t)
	s.m = New(Config{User: "u", Buckets: 4, Timeout: time.Second, Secret: "s", FirstBeat: 16, Seed: 3, MaxCalls: 50})
	a, b := s.acquire("a", nil), s.acquire("b", nil)
	s.opened(1)
	s.next(subjects.OpKeep)
	first, second := s.next(subjects.OpAcquire), s.next(subjects.OpAcquire)
	above := second.req.Number + 1000
	s.lowNumber(first, above)
	again := s.next(subjects.OpAcquire)
	if again.req.Number <= above+1<<32 || again.req.Name != "a" {
		t.Fatalf("%s is asked again as %d, which must be above %d by more than anybody's requests", again.req.Name, again.req.Number, above)
	}
	s.lowNumber(second, above)
	if next := s.next(subjects.OpAcquire); next.req.Number != again.req.Number+1 || next.req.Done != again.req.Number {
		t.Errorf("asked again as %d, done %d, behind %d", next.req.Number, next.req.Done, again.req.Number)
	} else {
		s.grant(again, 10, nil)
		s.grant(next, 11, nil)
	}
	s.state(a, Held)
	s.state(b, Held)

	call := tidyCall()
	s.do(func(now int64) { s.m.Release(now, a, "", call) })
	release := s.next(subjects.OpRelease)
	s.lowNumber(release, release.req.Number+5)
	if again := s.next(subjects.OpRelease); again.req.Key != release.req.Key || again.req.Number <= release.req.Number+5 {
		t.Errorf("released as %d with the key %d", again.req.Number, again.req.Key)
	}
	s.quiet()
}

// What was sent in two openings may have been carried out in the first, before another process took the session over and lost it again.
func TestWhatMayWaitUnderTheOldNumberIsCancelled(t *testing.T) {
	s := newScript(t)
	h := s.acquire("a", nil)
	s.opened(1)
	old := s.next(subjects.OpAcquire)
	s.pass(time.Millisecond)
	s.do(s.m.Disconnected)
	s.do(func(now int64) { s.m.Connected(now, Conn{Server: "s", CID: 2}) })
	s.opened(2)
	s.next(subjects.OpKeep)
	s.lowNumber(s.next(subjects.OpAcquire), 70)
	if cancel := s.next(subjects.OpCancel); cancel.req.Number != old.req.Number || cancel.req.Name != "a" {
		t.Errorf("number %d of %s is cancelled, expected %d", cancel.req.Number, cancel.req.Name, old.req.Number)
	}
	s.grant(s.next(subjects.OpAcquire), 10, nil)
	s.state(h, Held)
}

// The same if its caller has given it up: the cancel goes on until it is answered, though the acquire is refused for its number. That number
// is not remembered, as it may be another process's. What was sent in one opening has had no effect, so its cancel ends with it.
func TestCancelGoesOnWhereTheNumberIsTooLow(t *testing.T) {
	for _, openings := range []int{1, 2} {
		s := newScript(t)
		s.acquire("a", once(time.Minute))
		s.opened(1)
		if openings == 2 {
			s.next(subjects.OpAcquire)
			s.pass(time.Millisecond)
			s.do(s.m.Disconnected)
			s.do(func(now int64) { s.m.Connected(now, Conn{Server: "s", CID: 2}) })
			s.opened(2)
			s.next(subjects.OpKeep)
		}
		acquire := s.next(subjects.OpAcquire)
		s.do(func(now int64) { s.m.GiveUp(now, s.m.session.flight.head) })
		s.sent = nil // the cancel is lost
		s.lowNumber(acquire, 1<<52)
		s.quiet()
		s.pass(5 * time.Second)
		cancels := slicesOf(s.sent, subjects.OpCancel)
		if openings == 1 {
			if len(cancels) > 0 || s.m.session.flight.head != nil {
				t.Errorf("%d cancels of what has had no effect", len(cancels))
			}
			continue
		}
		if len(cancels) == 0 || cancels[0].req.Number != acquire.req.Number {
			t.Fatalf("%d cancels after the refusal", len(cancels))
		}
		if again := slicesOf(s.sent, subjects.OpAcquire); len(again) > 0 {
			t.Errorf("asked again %d times", len(again))
		}
		s.sent = nil
		s.answer(cancels[0], &subjects.Cancelled{Request: "1", Was: "waiting"})
		s.pass(time.Minute)
		if n := len(slicesOf(s.sent, subjects.OpCancel)); n > 0 || s.m.session.flight.head != nil || len(s.m.refused.holds) > 0 {
			t.Errorf("%d cancels after the answer, %d refused are remembered", n, len(s.m.refused.holds))
		}
	}
}

// A broker that refuses every number is not asked for ever.
func TestNumbersThatAreAllRefused(t *testing.T) {
	s := newScript(t)
	h := s.acquire("a", nil)
	s.opened(1)
	for range 1 + maxRenumber {
		msg := s.next(subjects.OpAcquire)
		s.lowNumber(msg, msg.req.Number+1)
	}
	s.quiet()
	if !s.finished(h) {
		t.Error("the caller is not told")
	}
	s.acquire("b", nil)
	s.lowNumber(s.next(subjects.OpAcquire), 1<<53-1)
	s.quiet() // there is none above
}
