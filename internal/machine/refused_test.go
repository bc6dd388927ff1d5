package machine

import (
	"slices"
	"testing"
	"time"

	"github.com/opencluster/oclocks/subjects"
)

// beatOf lets half a lease pass and gives the keep-alive of its end; what else was sent is forgotten.
func (s *script) beatOf() sentMessage {
	s.t.Helper()
	s.sent = nil
	s.pass(scriptLease / 2)
	beats := slicesOf(s.sent, subjects.OpKeep)
	if len(beats) == 0 {
		s.t.Fatal("no keep-alive was sent")
	}
	s.sent = nil
	return beats[len(beats)-1]
}

// once makes an acquire one that the broker refuses at once, or after a wait.
func once(wait time.Duration) func(c *Call) {
	return func(c *Call) { c.Endless, c.Req.Wait = false, wait }
}

// A recovery goes on from a history in which an acquire was granted that timed out in the one before, and no message tells the grant:
// it is cancelled by its number when nothing explains what is counted for a lease. (Simulator, seeds 12000016413 at 1192074 and
// 12000027040 at d5d1ff6.)
func TestGrantOfARefusedAcquireIsCancelled(t *testing.T) {
	s := newScript(t)
	s.acquire("a", once(time.Second))
	s.opened(1)
	acquire := s.next(subjects.OpAcquire)
	s.do(s.m.KeepSession)
	s.answer(acquire, refusal(408, subjects.ReasonTimeout, ""))
	if len(s.over) != 1 || s.over[0].Result.Refusal == nil {
		t.Fatalf("%d calls are over", len(s.over))
	}
	var cancelled []int
	for round := range 12 {
		beat := s.beatOf()
		s.answer(beat, s.counts(beat, "a", 99))
		if len(s.sent) == 0 {
			continue
		}
		cancel := s.next(subjects.OpCancel)
		s.quiet()
		if r := cancel.req; r.Name != "a" || r.Number != acquire.req.Number || r.Session != "token" || r.Has&subjects.HasToken != 0 {
			t.Fatalf("cancelled %+v", r)
		}
		s.answer(beat, s.counts(beat, "a", 99)) // while that is under way
		s.quiet()
		s.answer(cancel, &subjects.Cancelled{Request: "1", Was: "granted", Token: 99})
		cancelled = append(cancelled, round)
	}
	if want := []int{2, 6}; !slices.Equal(cancelled, want) {
		t.Errorf("cancelled in the rounds %v, want %v", cancelled, want)
	}
}

// givenUp takes a lock in a session that stays, and gives up before the answer. It gives what was sent of that.
func (s *script) givenUp(name string) (acquire, cancel sentMessage) {
	s.t.Helper()
	s.acquire(name, nil)
	s.opened(1)
	acquire = s.next(subjects.OpAcquire)
	s.do(s.m.KeepSession)
	s.do(func(now int64) { s.m.GiveUp(now, s.m.session.flight.head) })
	return acquire, s.next(subjects.OpCancel)
}

// What was told of an acquire that its caller gave up is no more certain.
func TestGrantOfACancelledAcquireIsCancelled(t *testing.T) {
	for _, was := range []string{"waiting", "unseen", "cancelled", "released"} {
		s := newScript(t)
		acquire, cancel := s.givenUp("a")
		s.answer(cancel, &subjects.Cancelled{Request: "1", Was: was})
		for range 3 {
			beat := s.beatOf()
			s.answer(beat, s.counts(beat, "a", 99))
		}
		if r := s.next(subjects.OpCancel).req; r.Name != "a" || r.Number != acquire.req.Number {
			t.Errorf("%s: cancelled %+v", was, r)
		}
		s.quiet()
	}
}

// An acquire that is asked for anew has had a number that may have been granted in another history.
func TestGrantOfAnEarlierNumberIsCancelled(t *testing.T) {
	s := newScript(t)
	s.acquire("a", nil)
	s.opened(1)
	first := s.next(subjects.OpAcquire)
	s.answer(first, refusal(408, subjects.ReasonTimeout, ""))
	again := s.next(subjects.OpAcquire)
	for range 3 {
		beat := s.beatOf()
		s.answer(beat, s.counts(beat, "a", 99))
	}
	if r := s.next(subjects.OpCancel).req; r.Number != first.req.Number || r.Number == again.req.Number {
		t.Errorf("cancelled %+v", r)
	}
	s.quiet()
}

// Of an acquire that was sent once and did not wait one primary only has heard: it is not remembered. Nor is what belongs to a session
// that is over, whose numbers begin anew.
func TestWhatNeedsNoCancel(t *testing.T) {
	s := newScript(t)
	s.begin("a")
	s.acquire("c", once(0))
	s.answer(s.next(subjects.OpAcquire), refusal(409, subjects.ReasonHeld, ""))
	if n := len(s.m.refused.holds); n != 0 {
		t.Errorf("%d are remembered after a refusal at once", n)
	}
	s.acquire("c", once(0))
	s.pass(2 * time.Second)
	twice := slicesOf(s.sent, subjects.OpAcquire)
	if len(twice) < 2 {
		t.Fatal("it was not repeated")
	}
	s.answer(twice[0], refusal(409, subjects.ReasonHeld, ""))
	if n := len(s.m.refused.holds); n != 1 {
		t.Errorf("%d are remembered after a repetition", n)
	}
	s.acquire("c", once(time.Minute))
	s.sent = nil
	s.do(func(now int64) { s.m.GiveUp(now, s.m.session.flight.tail) })
	s.answer(s.next(subjects.OpCancel), refusal(410, subjects.ReasonSession, subjects.WhyExpired))
	for _, h := range s.m.refused.holds {
		if s.m.counts(h) {
			t.Errorf("number %d counts in the next session", h.number)
		}
	}
}

// A number that is refused as below another process's done may be that one's, too: it is not cancelled.
func TestNumbersOfAnotherProcessAreNotCancelled(t *testing.T) {
	s := newScript(t)
	s.acquire("a", once(time.Minute))
	s.opened(1)
	for range 1 + maxRenumber {
		msg := s.next(subjects.OpAcquire)
		s.lowNumber(msg, msg.req.Number+1)
	}
	if len(s.over) != 1 || len(s.m.refused.holds) != 0 {
		t.Errorf("%d are over, %d are remembered", len(s.over), len(s.m.refused.holds))
	}
}

// As many are remembered as there is room for, the newest.
func TestRefusedAcquiresAreBounded(t *testing.T) {
	s := newScript(t)
	s.begin("a")
	var number uint64
	for range 2*maxBuried + 10 {
		s.acquire("c", once(time.Second))
		acquire := s.next(subjects.OpAcquire)
		number = acquire.req.Number
		s.answer(acquire, refusal(408, subjects.ReasonTimeout, ""))
	}
	if n := len(s.m.refused.holds); n != maxBuried {
		t.Errorf("%d are remembered", n)
	}
	last := s.m.finishedBefore(sentBeat{at: Never}, s.m.homeOf(s.m.bucketOf("c")), &s.m.refused, nil, 2*maxBuried)
	if len(last) != maxBuried || last[0].number != number || last[maxBuried-1].number != number-maxBuried+1 {
		t.Errorf("remembered are %d", len(last))
	}
}

// revivedByKey expects that a hold which a bucket counts is released by its key, and again when it is told once more.
func (s *script) revivedByKey(name string, token uint64) {
	s.t.Helper()
	for range 2 {
		beat := s.beatOf()
		s.answer(beat, s.counts(beat, name, token))
		release := s.next(subjects.OpRelease)
		s.quiet()
		if release.req.Name != name || release.req.Key != token {
			s.t.Fatalf("released %q with key %d", release.req.Name, release.req.Key)
		}
		s.answer(release, &subjects.Released{Token: token})
	}
}

// A recovery may undo the release of a grant that nobody wanted, too: one that came after its call was over,
func TestRevivedLateGrantIsReleased(t *testing.T) {
	s := newScript(t)
	s.acquire("a", once(time.Second))
	s.opened(1)
	acquire := s.next(subjects.OpAcquire)
	s.do(s.m.KeepSession)
	s.answer(acquire, refusal(408, subjects.ReasonTimeout, ""))
	s.grant(acquire, 10, nil)
	s.answer(s.next(subjects.OpRelease), &subjects.Released{Token: 10})
	s.revivedByKey("a", 10)
}

// one whose cancel was refused,
func TestRevivedTidiedGrantIsReleased(t *testing.T) {
	s := newScript(t)
	acquire, cancel := s.givenUp("a")
	s.answer(cancel, refusal(403, subjects.ReasonDenied, ""))
	s.grant(acquire, 10, nil)
	s.answer(s.next(subjects.OpRelease), &subjects.Released{Token: 10})
	s.revivedByKey("a", 10)
}

// one that was told while its cancel was under way, which says in another history that there was none,
func TestRevivedGrantOfACancelIsReleased(t *testing.T) {
	s := newScript(t)
	acquire, cancel := s.givenUp("a")
	s.grant(acquire, 10, nil)
	s.answer(cancel, &subjects.Cancelled{Request: "1", Was: "unseen"})
	s.revivedByKey("a", 10)
}

// and one whose proof was refused. Its Hold has begun anew by the time that the release is answered, which ends nothing of that.
func TestRevivedUnprovedHoldIsReleased(t *testing.T) {
	s := newScript(t)
	h := s.acquire("a", nil)
	s.opened(1)
	first := s.next(subjects.OpAcquire)
	s.pass(9 * scriptLease / 16)
	s.sent = nil
	s.grant(first, 10, nil)
	s.state(h, Pending)
	s.answer(s.next(subjects.OpRenew), refusal(400, subjects.ReasonBadRequest, ""))
	release, again := s.next(subjects.OpRelease), s.next(subjects.OpAcquire)
	s.grant(again, 11, nil)
	s.state(h, Held)
	s.do(func(now int64) { s.m.Release(now, h, "", ownCall("owner", &subjects.Request{})) })
	own := s.next(subjects.OpRelease)
	s.answer(release, &subjects.Released{Token: 10})
	if h.releasing == nil || h.goneAt != 0 {
		t.Fatal("the hold is taken for released by the release of another one")
	}
	s.answer(own, &subjects.Released{Token: 11})
	s.do(s.m.KeepSession)
	s.revivedByKey("a", 10)
}

// A program that goes on trying a lock which its own session has, by its first try, which a recovery has granted, does not crowd that
// try out: its number is cancelled in the first round, and each round comes to its end.
func TestTriesDoNotCrowdOutTheFirst(t *testing.T) {
	for _, wait := range []time.Duration{time.Second, 200 * time.Millisecond, 100 * time.Millisecond} {
		s := newScript(t)
		s.acquire("a", once(wait))
		s.opened(1)
		first := s.next(subjects.OpAcquire)
		s.do(s.m.KeepSession)
		s.answer(first, refusal(408, subjects.ReasonTimeout, ""))
		cancelled, most, tries := -1, 0, int(16*scriptLease/wait)
		for try := range tries {
			s.acquire("a", once(wait))
			s.pass(wait)
			for len(s.sent) > 0 {
				msg := s.sent[0]
				s.sent = s.sent[1:]
				switch msg.req.Op {
				case subjects.OpKeep:
					s.answer(msg, s.counts(msg, "a", 99))
					most = max(most, len(slicesOf(s.sent, subjects.OpCancel)))
				case subjects.OpCancel:
					if msg.req.Number == first.req.Number && cancelled < 0 {
						cancelled = try
					}
					s.answer(msg, &subjects.Cancelled{Request: "1", Was: "unseen"})
				case subjects.OpAcquire:
					s.answer(msg, refusal(408, subjects.ReasonTimeout, ""))
				default:
					t.Fatal(msg.req.Op)
				}
			}
		}
		if cancelled < 0 || cancelled > int(2*scriptLease/wait) {
			t.Errorf("a try each %s: the first one is cancelled at try %d of %d", wait, cancelled, tries)
		}
		if most > maxChecking {
			t.Errorf("a try each %s: %d cancels at a time", wait, most)
		}
		o := s.m.homeOf(s.m.bucketOf("a")).odd
		if o.wait < int64(2*scriptLease) {
			t.Errorf("a try each %s: no round has come to its end", wait)
		}
	}
}

// asksByKeyAndNumber expects that what a bucket counts for a lease and nothing explains is asked for by the key of the hold that is over,
// and by its acquire's number when that key opens nothing.
func (s *script) asksByKeyAndNumber(name string, key, number uint64) {
	s.t.Helper()
	for range 3 {
		beat := s.beatOf()
		s.answer(beat, s.counts(beat, name, 99))
	}
	release := s.next(subjects.OpRelease)
	s.quiet()
	if release.req.Name != name || release.req.Key != key {
		s.t.Fatalf("released %q with key %d", release.req.Name, release.req.Key)
	}
	s.answer(release, refusal(403, subjects.ReasonDenied, ""))
	cancel := s.next(subjects.OpCancel)
	s.quiet()
	if r := cancel.req; r.Name != name || r.Number != number || r.Session != "token" || r.Has&subjects.HasToken != 0 {
		s.t.Fatalf("cancelled %+v", r)
	}
	s.answer(cancel, &subjects.Cancelled{Request: "1", Was: "granted", Token: 99})
	s.quiet()
}

// A recovery goes on from a history in which another copy of an acquire was granted, with another key, than the one of which the client
// was told: that key opens nothing there. (Simulator, seeds 13300003921 and 13300003708 at bb40604.) The client has released its hold,
func TestOtherGrantOfAReleasedHoldIsCancelled(t *testing.T) {
	s := newScript(t)
	h := s.acquire("a", nil)
	s.opened(1)
	acquire := s.next(subjects.OpAcquire)
	s.do(s.m.KeepSession)
	s.grant(acquire, 10, nil)
	s.state(h, Held)
	s.release(h)
	s.asksByKeyAndNumber("a", 10, acquire.req.Number)
}

// or was told that it is lost before it could trust it: its call goes on with another number, which is not cancelled.
func TestOtherGrantOfAnUnprovedHoldIsCancelled(t *testing.T) {
	s := newScript(t)
	s.acquire("a", nil)
	s.opened(1)
	acquire := s.next(subjects.OpAcquire)
	s.do(s.m.KeepSession)
	s.pass(9 * scriptLease / 16)
	s.sent = nil
	s.grant(acquire, 10, nil)
	s.answer(s.next(subjects.OpRenew), refusal(403, subjects.ReasonDenied, ""))
	if again := s.next(subjects.OpAcquire); again.req.Number == acquire.req.Number {
		t.Fatal("it begins anew with the old number")
	}
	s.asksByKeyAndNumber("a", 10, acquire.req.Number)
}

// or gave its call up.
func TestOtherGrantOfACancelledAcquireIsCancelled(t *testing.T) {
	s := newScript(t)
	acquire, cancel := s.givenUp("a")
	s.grant(acquire, 10, nil)
	s.answer(cancel, &subjects.Cancelled{Request: "1", Was: "granted", Token: 10})
	s.asksByKeyAndNumber("a", 10, acquire.req.Number)
}

// A key that was known tells all; and in another session the number is another request's.
func TestNoCancelAfterAKeyThatIsKnown(t *testing.T) {
	for _, told := range []*subjects.Refusal{nil, refusal(410, subjects.ReasonLost, ""), refusal(410, subjects.ReasonSession, subjects.WhyExpired)} {
		s := newScript(t)
		h := s.acquire("a", nil)
		s.opened(1)
		s.do(s.m.KeepSession)
		s.grant(s.next(subjects.OpAcquire), 10, nil)
		s.release(h)
		for range 3 {
			beat := s.beatOf()
			s.answer(beat, s.counts(beat, "a", 99))
		}
		release := s.next(subjects.OpRelease)
		if told == nil {
			s.answer(release, &subjects.Released{Token: 10})
		} else {
			s.answer(release, told)
		}
		if n := len(slicesOf(s.sent, subjects.OpCancel)); n != 0 {
			t.Errorf("%v: %d cancels", told, n)
		}
	}
}
