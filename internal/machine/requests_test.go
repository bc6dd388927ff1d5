package machine

import (
	"errors"
	"testing"
	"time"

	"github.com/opencluster/oclocks/subjects"
)

// "inside a session IDs are numbers and each request says below which number the client awaits no more replies".
func TestNumbersRiseAndDoneFollows(t *testing.T) {
	s := newScript(t)
	s.acquire("a", nil)
	s.opened(1)
	s.acquire("b", nil)
	s.acquire("c", nil)
	a, b, c := s.next(subjects.OpAcquire), s.next(subjects.OpAcquire), s.next(subjects.OpAcquire)
	if a.req.Number != 1 || b.req.Number != 2 || c.req.Number != 3 || c.req.Done != 1 {
		t.Fatalf("numbers %d, %d, %d, done %d", a.req.Number, b.req.Number, c.req.Number, c.req.Done)
	}
	s.grant(a, 10, nil)
	s.grant(c, 12, nil)
	s.acquire("d", nil)
	if d := s.next(subjects.OpAcquire); d.req.Number != 4 || d.req.Done != 2 {
		t.Fatalf("number %d, done %d; 2 is awaited still", d.req.Number, d.req.Done)
	}
	s.grant(b, 11, nil)
	s.acquire("e", nil)
	if e := s.next(subjects.OpAcquire); e.req.Done != 4 {
		t.Fatalf("done %d, expected 4", e.req.Done)
	}
}

// A reply comes at least once; one is acted on.
func TestSecondReplyIsIgnored(t *testing.T) {
	s := newScript(t)
	h := s.acquire("a", nil)
	s.opened(1)
	msg := s.next(subjects.OpAcquire)
	s.grant(msg, 10, nil)
	s.grant(msg, 10, nil)
	s.answer(msg, refusal(409, subjects.ReasonHeld, ""))
	if s.state(h, Held); len(s.over) != 1 {
		t.Fatalf("finished %d times", len(s.over))
	}
}

// A waiting acquire is asked again long before its wait is over, with the same number, and soon after it was first sent.
func TestWaitingAcquireIsAttachedAgain(t *testing.T) {
	s := newScript(t)
	s.acquire("a", nil)
	s.opened(1)
	first := s.next(subjects.OpAcquire)
	last, times := s.now, 0
	for until := s.now + int64(time.Hour); s.now < until; {
		s.pass(time.Second)
		for _, m := range slicesOf(s.sent, subjects.OpAcquire) {
			if times++; m.req.Number != first.req.Number {
				t.Fatalf("asked again as %d", m.req.Number)
			}
			if silence := time.Duration(s.now - last); silence > first.req.Wait/2 {
				t.Fatalf("not asked for %v, and the wait is %v", silence, first.req.Wait)
			}
			last = s.now
		}
		s.sent = nil
	}
	if times < 50 || times > 100 {
		t.Errorf("asked %d times in an hour", times)
	}
}

func TestEndOfWaitIsNotTheCallers(t *testing.T) {
	s := newScript(t)
	h := s.acquire("a", nil)
	s.opened(1)
	first := s.next(subjects.OpAcquire)
	s.answer(first, refusal(408, subjects.ReasonTimeout, ""))
	again := s.next(subjects.OpAcquire)
	if again.req.Number == first.req.Number {
		t.Fatal("asked again under the number whose outcome is the timeout")
	}
	s.grant(again, 10, nil)
	s.state(h, Held)
}

// "ctx cancelled while waiting: cancel, so that no grant is orphaned".
func TestGivenUpAcquireIsCancelled(t *testing.T) {
	s := newScript(t)
	h := s.acquire("a", nil)
	s.opened(1)
	acquire := s.next(subjects.OpAcquire)
	s.do(func(now int64) {
		if !s.m.GiveUp(now, s.m.session.flight.head) {
			t.Error("there was nothing to give up")
		}
	})
	cancel := s.next(subjects.OpCancel)
	if cancel.req.Number != acquire.req.Number || cancel.req.Session != "token" || cancel.req.Name != "a" {
		t.Fatalf("cancel %+v", cancel.req)
	}
	s.grant(acquire, 10, nil) // it came first; the cancel releases it
	s.state(h, Pending)
	s.acquire("b", nil)
	if b := s.next(subjects.OpAcquire); b.req.Done > acquire.req.Number {
		t.Errorf("done is %d while the cancel of %d is unanswered", b.req.Done, acquire.req.Number)
	}
	s.pass(1500 * time.Millisecond)
	cancel = s.next(subjects.OpCancel) // repeated, as long as it is unanswered
	s.sent = nil
	s.answer(cancel, &subjects.Cancelled{Request: "1", Was: "granted", Token: 10})
	s.pass(5 * time.Second)
	if got := slicesOf(s.sent, subjects.OpCancel); len(got) > 0 {
		t.Error("cancelled again after the answer")
	}
	if len(s.over) != 0 {
		t.Error("somebody was told of a call that was given up")
	}
}

func TestRefusedCancelReleasesTheGrant(t *testing.T) {
	for _, grantFirst := range []bool{true, false} {
		s := newScript(t)
		s.acquire("a", nil)
		s.opened(1)
		acquire := s.next(subjects.OpAcquire)
		s.do(func(now int64) { s.m.GiveUp(now, s.m.session.flight.head) })
		cancel := s.next(subjects.OpCancel)
		if grantFirst {
			s.grant(acquire, 10, nil)
		}
		s.answer(cancel, refusal(403, subjects.ReasonDenied, ""))
		if !grantFirst {
			s.grant(acquire, 10, nil)
		}
		if release := s.next(subjects.OpRelease); release.req.Key != 10 {
			t.Errorf("released %d", release.req.Key)
		}
	}
}

// An acquire whose cancel is refused is not forgotten: its answer may have been lost. (Simulator, seed 32 of 22 November.)
func TestRefusedCancelGoesOnAsking(t *testing.T) {
	given := func() *script {
		s := newScript(t)
		s.acquire("a", nil)
		s.opened(1)
		s.next(subjects.OpAcquire)
		s.do(func(now int64) { s.m.GiveUp(now, s.m.session.flight.head) })
		s.answer(s.next(subjects.OpCancel), refusal(403, subjects.ReasonDenied, ""))
		return s
	}
	s := given()
	s.pass(3 * time.Second)
	acquire := s.next(subjects.OpAcquire)
	s.sent = nil
	s.grant(acquire, 10, nil)
	s.next(subjects.OpRelease)

	s = given()
	s.do(s.m.Close)
	s.answer(s.next(subjects.OpSessionClose), &subjects.SessionClosed{})
	if !s.m.Idle() {
		t.Error("not idle at the end")
	}

	s = newScript(t)
	s.acquire("a", nil)
	s.opened(1)
	s.next(subjects.OpAcquire)
	s.do(func(now int64) { s.m.GiveUp(now, s.m.session.flight.head) })
	cancel := s.next(subjects.OpCancel)
	s.do(s.m.Close)
	s.answer(cancel, refusal(403, subjects.ReasonDenied, ""))
	s.answer(s.next(subjects.OpSessionClose), &subjects.SessionClosed{})
	if !s.m.Idle() {
		t.Error("not idle after a cancel that was refused while closing")
	}
}

// Who comes back as the session of an earlier process numbers its requests above that one's: with the same numbers it would be
// answered what that one was. (Simulator, seed 32 of 22 November.)
func TestNumbersAreAboveThoseOfEarlierProcesses(t *testing.T) {
	number := func(secret string, firstBeat, incarnation uint64) uint64 {
		s := newScript(t)
		s.m = New(Config{User: "u", Buckets: 4, Timeout: time.Second, Secret: secret, FirstBeat: firstBeat, MaxCalls: 50})
		s.acquire("a", nil)
		s.opened(incarnation)
		if secret != "" {
			s.next(subjects.OpKeep)
		}
		first := s.next(subjects.OpAcquire).req
		if first.Done != first.Number {
			t.Errorf("done is %d before %d, of which nobody awaits an answer", first.Done, first.Number)
		}
		s.pass(time.Millisecond)
		s.do(func(now int64) {
			s.m.Disconnected(now)
			s.m.Connected(now, Conn{})
		})
		s.opened(incarnation + 1)
		s.next(subjects.OpKeep)
		if again := s.next(subjects.OpAcquire).req; again.Number != first.Number {
			t.Errorf("number %d is %d over another connection", first.Number, again.Number)
		}
		return first.Number
	}
	const ms = uint64(1780272000000) // when the session was opened, Unix milliseconds
	first := number("", 16_000, ms)
	if first != 1 {
		t.Errorf("a new session begins with number %d", first)
	}
	second, again, slow := number("s", 32_000, ms+1), number("s", 32_000, ms+2), number("s", 48_000, ms+2)
	if second < 1<<50 || again <= second || slow <= again || slow >= 1<<53 {
		t.Errorf("numbers %d, %d, %d", second, again, slow)
	}
}

// Two processes that come back to one session in the same millisecond do not number their requests alike, and who comes back later
// is above both.
func TestNumbersOfTwoProcessesAtOnce(t *testing.T) {
	number := func(seed, firstBeat, incarnation uint64) uint64 {
		s := newScript(t)
		s.m = New(Config{User: "u", Buckets: 4, Timeout: time.Second, Secret: "s", FirstBeat: firstBeat, Seed: seed, MaxCalls: 50})
		s.acquire("a", nil)
		s.opened(incarnation)
		s.next(subjects.OpKeep)
		return s.next(subjects.OpAcquire).req.Number
	}
	const ms = uint64(1780272000000)
	one, other, later := number(7_001, 16*ms, ms), number(7_002, 16*ms, ms), number(7_000, 16*ms+16, ms+1)
	if one == other || later <= max(one, other) {
		t.Errorf("numbers %d, %d, and %d later", one, other, later)
	}
}

// 421: "the client asks again", where the map of the refusal says.
func TestMovedIsAskedThere(t *testing.T) {
	s := newScript(t)
	s.acquire("a", nil)
	s.opened(1)
	first := s.next(subjects.OpAcquire)
	moved := refusal(421, subjects.ReasonMoved, "")
	moved.Map = &subjects.Map{Change: 7, Primary: make([]string, 64)}
	s.answer(first, moved)
	again := s.next(subjects.OpAcquire)
	want := subjects.HotSubject(subjects.BucketOf("a", 64), subjects.OpAcquire, "u")
	if again.subject != want || again.req.Number != first.req.Number {
		t.Fatalf("asked %s as %d, expected %s as %d", again.subject, again.req.Number, want, first.req.Number)
	}
	s.answer(again, moved) // the same map: no hurry
	s.quiet()
	s.pass(100 * time.Millisecond)
	s.next(subjects.OpAcquire)
}

// A cluster that hides its servers tells no map: info tells the number of buckets.
func TestMovedWithoutMapAsksForInfo(t *testing.T) {
	s := newScript(t)
	s.acquire("a", nil)
	s.opened(1)
	moved := refusal(421, subjects.ReasonMoved, "")
	moved.Map = &subjects.Map{Change: 7}
	s.answer(s.next(subjects.OpAcquire), moved)
	s.answer(s.next(subjects.OpInfo), &subjects.Info{Protocol: 1, Buckets: 16, Map: subjects.Map{Change: 7}})
	s.pass(100 * time.Millisecond)
	if again := s.next(subjects.OpAcquire); again.subject != subjects.HotSubject(subjects.BucketOf("a", 16), subjects.OpAcquire, "u") {
		t.Fatalf("asked %s", again.subject)
	}
}

// 503 and no responders: the same request again, ever less often, and at least retry_after later.
func TestUnavailableIsRepeated(t *testing.T) {
	s := newScript(t)
	s.acquire("a", nil)
	s.opened(1)
	msg := s.next(subjects.OpAcquire)
	number := msg.req.Number
	for range 20 {
		s.answer(msg, refusal(503, subjects.ReasonUnavailable, subjects.WhyNoQuorum))
		s.quiet()
		s.pass(1250 * time.Millisecond)
		s.sent = slicesOf(s.sent, subjects.OpAcquire)
		msg = s.next(subjects.OpAcquire)
		if s.sent = nil; msg.req.Number != number {
			t.Fatalf("repeated as %d", msg.req.Number)
		}
	}
	told := refusal(503, subjects.ReasonUnavailable, subjects.WhyRecovery)
	told.RetryAfter = 3 * time.Second
	s.answer(msg, told)
	s.pass(3*time.Second - 1)
	if got := slicesOf(s.sent, subjects.OpAcquire); len(got) > 0 {
		t.Fatal("asked before retry_after")
	}
	s.pass(time.Second)
	s.next(subjects.OpAcquire)
}

// After a reconnect the session comes back before anything else of it is sent, and the nodes hear of it first.
func TestReconnectBringsTheSessionBackFirst(t *testing.T) {
	s := newScript(t)
	held := s.begin("a")[0]
	s.acquire("b", nil)
	waiting := s.next(subjects.OpAcquire)
	s.pass(3 * time.Second)
	s.sent = nil
	s.do(s.m.Disconnected)
	s.acquire("c", nil)
	s.pass(time.Second)
	s.quiet()
	s.do(func(now int64) { s.m.Connected(now, Conn{Server: "s2", CID: 9}) })
	open := s.next(subjects.OpSessionOpen)
	if open.req.Secret != "secret" || open.req.Server != "s2" || open.req.CID != 9 {
		t.Fatalf("session-open %+v", open.req)
	}
	s.quiet()
	s.sent = append(s.sent, open)
	s.opened(2)
	s.kept(s.next(subjects.OpKeep), 10)
	if again := s.next(subjects.OpAcquire); again.req.Number != waiting.req.Number {
		t.Errorf("asked again as %d", again.req.Number)
	}
	if c := s.next(subjects.OpAcquire); c.req.Name != "c" {
		t.Errorf("then %s", c.req.Name)
	}
	s.left(held, 12*time.Second)
}

// "410 session: all its claims are lost, a new session is opened for later locks"; who waits goes on waiting in it.
func TestEndOfSession(t *testing.T) {
	s := newScript(t)
	held := s.begin("a")[0]
	static := s.acquire("static", func(c *Call) {
		c.Req.Kind, c.Req.TTL, c.Req.Has = subjects.Static, time.Hour, subjects.HasTTL
	})
	s.grant(s.next(subjects.OpAcquire), 11, nil)
	waits := s.acquire("b", nil)
	s.next(subjects.OpAcquire)
	s.pass(8 * time.Second)
	beats := slicesOf(s.sent, subjects.OpKeep)
	s.sent = nil
	s.answer(beats[0], refusal(410, subjects.ReasonSession, subjects.WhyExpired))
	s.state(held, Lost)
	s.state(static, Held)
	s.state(waits, Pending)
	if closed := s.next(subjects.OpSessionClose); closed.req.Session != "token" {
		t.Errorf("closed %q", closed.req.Session)
	}
	if open := s.next(subjects.OpSessionOpen); open.req.Secret != "" {
		t.Error("the new session is to be another one")
	} else {
		s.sent = append(s.sent, open)
	}
	s.opened(5)
	again := s.next(subjects.OpAcquire)
	if again.req.Name != "b" || again.req.Number != 1 {
		t.Fatalf("asked for %q as %d", again.req.Name, again.req.Number)
	}
	s.grant(again, 12, nil)
	s.state(waits, Held)
}

func TestRequestWithoutIDIsNotRepeated(t *testing.T) {
	s := newScript(t)
	c := &Call{Raw: true, Req: &subjects.Request{Op: subjects.OpRelease, Name: "a", Key: 1}}
	s.do(func(now int64) { must(t, s.m.Submit(now, c)) })
	s.next(subjects.OpRelease)
	s.pass(2 * time.Second)
	s.quiet()
	if !errors.Is(c.Result.Err, ErrUnknown) {
		t.Errorf("result %+v", c.Result)
	}
}

func TestForbiddenSubjectEndsTheCall(t *testing.T) {
	s := newScript(t)
	c := &Call{Raw: true, Req: &subjects.Request{Op: subjects.OpForce, Name: "a", Token: 1, RequestID: "x"}}
	other := &Call{Raw: true, Req: &subjects.Request{Op: subjects.OpQuery, Name: "a"}}
	s.do(func(now int64) { must(t, s.m.Submit(now, c)) })
	s.do(func(now int64) { must(t, s.m.Submit(now, other)) })
	s.do(func(now int64) { s.m.Forbidden(now, s.sent[0].subject) })
	if !errors.Is(c.Result.Err, ErrForbidden) || other.state == finished {
		t.Errorf("results %+v, %+v", c.Result, other.Result)
	}
}

// Everything that can grow has a limit.
func TestCallsAreLimited(t *testing.T) {
	s := newScript(t)
	for {
		c := &Call{Raw: true, Req: &subjects.Request{Op: subjects.OpQuery, Name: "a"}}
		var err error
		s.do(func(now int64) { err = s.m.Submit(now, c) })
		if errors.Is(err, ErrTooMany) {
			break
		}
		must(t, err)
		if len(s.sent) > 50 {
			t.Fatal("more than MaxCalls are under way")
		}
	}
}

// Close releases static holds one by one, and the rest with the session, which is closed last.
func TestCloseTidiesUp(t *testing.T) {
	s := newScript(t)
	held := s.begin("a")[0]
	static := s.acquire("static", func(c *Call) { c.Req.Kind = subjects.Static })
	s.grant(s.next(subjects.OpAcquire), 11, nil)
	waits := s.acquire("b", nil)
	s.next(subjects.OpAcquire)
	s.do(s.m.Close)
	s.state(held, Released)
	s.state(static, Released)
	if !s.finished(waits) {
		t.Error("who waits is not told")
	}
	release := s.next(subjects.OpRelease)
	s.quiet()
	s.answer(release, &subjects.Released{Token: 11})
	if s.m.Idle() {
		t.Error("idle before the session is closed")
	}
	s.answer(s.next(subjects.OpSessionClose), &subjects.SessionClosed{})
	if !s.m.Idle() {
		t.Error("not idle at the end")
	}
	if err := s.m.Submit(s.now, &Call{Req: &subjects.Request{Op: subjects.OpAcquire, Name: "x"}}); !errors.Is(err, ErrClosing) {
		t.Errorf("Submit after Close: %v", err)
	}
}

// A release that waits for a session when the client is closed goes on, and so does the opening. (Simulator, seed 5006 of 22 November.)
func TestCloseWhileASessionIsOpened(t *testing.T) {
	s := newScript(t)
	static := s.acquire("static", func(c *Call) { c.Req.Kind = subjects.Static })
	s.opened(1)
	s.grant(s.next(subjects.OpAcquire), 11, nil)
	s.acquire("a", nil)
	s.answer(s.next(subjects.OpAcquire), refusal(410, subjects.ReasonSession, subjects.WhyExpired))
	s.answer(s.next(subjects.OpSessionClose), &subjects.SessionClosed{})
	open := s.next(subjects.OpSessionOpen)
	s.do(s.m.Close)
	s.state(static, Released)
	s.quiet()
	s.answer(open, &subjects.Opened{Session: "again", Secret: "other", User: "u", TTL: scriptLease, Lease: scriptLease, Node: "n",
		Incarnation: 2, Events: "locks.event.session.u.id2"})
	s.answer(s.next(subjects.OpRelease), &subjects.Released{Token: 11})
	s.answer(s.next(subjects.OpSessionClose), &subjects.SessionClosed{})
	if !s.m.Idle() {
		t.Errorf("not idle at the end: %s", s.m.Describe(s.now))
	}

	s = newScript(t)
	s.acquire("a", nil)
	s.next(subjects.OpSessionOpen)
	s.do(s.m.Close)
	if !s.m.Idle() {
		t.Errorf("not idle, and nothing is needed any more: %s", s.m.Describe(s.now))
	}
}

// Events end holds at once; others do not concern them.
func TestEventsEndHolds(t *testing.T) {
	s := newScript(t)
	holds := s.begin("a", "b")
	s.do(func(now int64) {
		s.m.Event(now, &subjects.SessionEvent{Type: "lost", Name: "a", Token: 99, Why: subjects.WhyExpired})
		s.m.Event(now, &subjects.SessionEvent{Type: "recall", Name: "a", Token: 10})
	})
	s.state(holds[0], Held)
	s.do(func(now int64) {
		s.m.Event(now, &subjects.SessionEvent{Type: "lost", Name: "a", Token: 10, Why: subjects.WhyExpired})
		s.m.Event(now, &subjects.SessionEvent{Type: "forced", Name: "b", Token: 11, Why: subjects.WhyForced})
	})
	s.state(holds[0], Lost)
	s.state(holds[1], Lost)
	s.pass(30 * time.Second)
	if got := slicesOf(s.sent, subjects.OpRelease); len(got) > 0 {
		t.Error("a forced hold was confirmed without its caller")
	}
	s.sent = nil
	s.do(func(now int64) { s.m.Release(now, holds[1], "", ownCall("caller", &subjects.Request{})) })
	s.next(subjects.OpRelease)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
