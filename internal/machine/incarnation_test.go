package machine

import (
	"testing"
	"time"

	"github.com/opencluster/oclocks/subjects"
)

// What the broker says about the earlier incarnation proves nothing and ends nothing.
func TestAnswersToTheEarlierIncarnation(t *testing.T) {
	s := newScript(t)
	held := s.begin("a")[0]
	s.pass(8 * time.Second)
	beat := s.next(subjects.OpKeep)
	try := s.acquire("b", func(c *Call) { c.Endless = false })
	acquire := s.next(subjects.OpAcquire)
	s.do(s.m.Disconnected)
	s.do(func(now int64) { s.m.Connected(now, Conn{Server: "s", CID: 2}) })
	s.kept(beat, 10)
	s.left(held, 4*time.Second)
	open := s.next(subjects.OpSessionOpen)
	s.answer(acquire, refusal(410, subjects.ReasonSession, subjects.WhySuperseded))
	s.state(held, Held)
	s.sent = []sentMessage{open}
	s.opened(2)
	s.kept(s.next(subjects.OpKeep), 10)
	s.left(held, 12*time.Second)
	s.grant(s.next(subjects.OpAcquire), 11, nil)
	s.state(try, Held)
}

// What was sent before the session came back may reach the broker behind it, when the call was sent once more already. That it is
// superseded is not about the session as it is now: whatever is held would be lost, and who waits would lose his place.
func TestLateRequestEndsNoSession(t *testing.T) {
	s := newScript(t)
	held := s.begin("a")[0]
	waits := s.acquire("b", nil)
	late := s.next(subjects.OpAcquire)
	superseded := refusal(410, subjects.ReasonSession, subjects.WhySuperseded)
	for i := range 3 {
		s.do(s.m.Disconnected)
		s.pass(time.Millisecond)
		s.do(func(now int64) { s.m.Connected(now, Conn{Server: "s", CID: uint64(2 + i)}) })
		s.opened(uint64(2 + i))
		s.kept(s.next(subjects.OpKeep), 10)
		again := s.next(subjects.OpAcquire)
		s.answer(late, superseded)
		s.answer(late, superseded)
		s.quiet()
		s.state(held, Held)
		if again.req.Number != late.req.Number {
			t.Errorf("sent again as %d, it was %d", again.req.Number, late.req.Number)
		}
		late = again
	}
	s.grant(late, 11, nil)
	s.grant(s.next(subjects.OpRenew), 11, nil)
	s.state(waits, Held)

	s.acquire("c", nil) // this one is about the session as it is
	s.answer(s.next(subjects.OpAcquire), superseded)
	s.state(held, Lost)
	s.state(waits, Lost)
}

// Who is superseded loses what he held and leaves the session alone: it is another process's, and a bucket that has not heard of that one
// yet would believe its end.
func TestTheSupersededDoesNotCloseTheSession(t *testing.T) {
	s := newScript(t)
	held := s.begin("a")[0]
	s.pass(8 * time.Second)
	s.answer(s.next(subjects.OpKeep), refusal(410, subjects.ReasonSession, subjects.WhySuperseded))
	s.state(held, Lost)
	s.quiet()
}
