package machine

import (
	"testing"
	"time"

	"github.com/opencluster/oclocks/subjects"
)

// "trust until own send time + 3/4 lease; renews at 1/2; a lock is held, suspect or lost" (DESIGN, section 6).
func TestHeldSuspectLost(t *testing.T) {
	s := newScript(t)
	h := s.begin("a")[0]
	s.left(h, 12*time.Second)
	s.pass(8*time.Second - 1)
	s.quiet()
	s.pass(1)
	s.next(subjects.OpKeep)
	s.state(h, Held)
	s.pass(time.Second)
	s.state(h, Suspect)
	s.pass(3*time.Second - 1)
	s.state(h, Suspect)
	s.left(h, 1)
	s.pass(1)
	s.state(h, Lost)
	if h.Why == nil || h.Why.Reason != subjects.ReasonLost || h.Why.Why != subjects.WhyExpired {
		t.Errorf("lost because %v", h.Why)
	}
}

// The trust counts from the sending of the request, not from the arrival of its answer.
func TestGrantCountsFromSending(t *testing.T) {
	s := newScript(t)
	h := s.acquire("a", nil)
	s.opened(1)
	msg := s.next(subjects.OpAcquire)
	s.pass(500 * time.Millisecond)
	s.grant(msg, 10, nil)
	s.state(h, Held)
	s.left(h, 11500*time.Millisecond)
}

// A request that was repeated counts from its first sending: that is the one that the answer may be to.
func TestRepeatedRequestCountsFromFirstSending(t *testing.T) {
	s := newScript(t)
	h := s.acquire("a", func(c *Call) { c.Endless = false })
	s.opened(1)
	first := s.next(subjects.OpAcquire)
	s.pass(1500 * time.Millisecond)
	again := s.next(subjects.OpAcquire)
	if first.req.Number != again.req.Number {
		t.Fatalf("repeated as %d, it was %d", again.req.Number, first.req.Number)
	}
	s.grant(again, 10, nil)
	s.left(h, 10500*time.Millisecond)
}

// "A grant that was queued quotes the number of the last keep-alive that the primary saw: the client counts from that one's
// sending; without it, it renews first and counts from there."
func TestQueuedGrantCountsFromQuotedBeat(t *testing.T) {
	s := newScript(t)
	h := s.acquire("a", nil)
	s.opened(1)
	msg := s.next(subjects.OpAcquire)
	s.pass(20 * time.Second)
	var beats []sentMessage
	for _, m := range s.sent {
		if m.req.Op == subjects.OpKeep {
			beats = append(beats, m)
		}
	}
	s.sent = nil
	if len(beats) != 2 {
		t.Fatalf("%d keep-alives in 20 s of waiting, expected those of 8 s and 16 s", len(beats))
	}
	s.grant(msg, 10, func(g *subjects.Grant) { g.Waited, g.Beat = 20*time.Second, beats[1].req.Beat })
	s.state(h, Held)
	s.left(h, 8*time.Second)
}

func TestQueuedGrantWithoutBeatIsProvedFirst(t *testing.T) {
	for name, beat := range map[string]uint64{"no beat": 0, "a beat that was never sent": 7_000_000} {
		t.Run(name, func(t *testing.T) {
			s := newScript(t)
			h := s.acquire("a", nil)
			s.opened(1)
			msg := s.next(subjects.OpAcquire)
			s.pass(20 * time.Second)
			s.sent = nil
			s.grant(msg, 10, func(g *subjects.Grant) { g.Beat = beat })
			if s.state(h, Pending); s.finished(h) {
				t.Fatal("Lock returned before the lock can be trusted")
			}
			renew := s.next(subjects.OpRenew)
			if renew.req.Trusted {
				t.Error("it says that the lock has been trusted, and it was not yet")
			}
			s.pass(100 * time.Millisecond)
			s.grant(renew, 10, nil)
			if s.state(h, Held); !s.finished(h) {
				t.Fatal("Lock does not return")
			}
			s.left(h, 12*time.Second-100*time.Millisecond)
		})
	}
}

// A grant that turns out to be lost already is nobody's loss: the acquire goes on, under a new number.
func TestDisprovedGrantIsAskedForAgain(t *testing.T) {
	s := newScript(t)
	h := s.acquire("a", nil)
	s.opened(1)
	first := s.next(subjects.OpAcquire)
	s.pass(20 * time.Second)
	s.sent = nil
	s.grant(first, 10, nil)
	s.answer(s.next(subjects.OpRenew), refusal(410, subjects.ReasonLost, subjects.WhyExpired))
	again := s.next(subjects.OpAcquire)
	if again.req.Number <= first.req.Number {
		t.Errorf("asked again as %d after %d", again.req.Number, first.req.Number)
	}
	s.grant(again, 11, nil)
	s.state(h, Held)
}

func TestAnsweredBeatExtends(t *testing.T) {
	s := newScript(t)
	h := s.begin("a")[0]
	s.pass(8 * time.Second)
	beat := s.next(subjects.OpKeep)
	if beat.subject != subjects.KeepNodeSubject("n", "u") {
		t.Errorf("sent to %s", beat.subject)
	}
	s.pass(300 * time.Millisecond)
	late := s.next(subjects.OpKeep) // asked again
	if late.req.Beat <= beat.req.Beat {
		t.Errorf("beat %d after %d", late.req.Beat, beat.req.Beat)
	}
	s.kept(beat, 10)
	s.left(h, 12*time.Second-300*time.Millisecond)
	s.pass(200 * time.Millisecond)
	s.kept(late, 10)
	s.pass(7500*time.Millisecond - 1)
	s.quiet()
	s.pass(1)
	s.next(subjects.OpKeep)
}

// "On a mismatch nothing is extended until renew of each hold of that node has told which is lost."
func TestMismatchExtendsNothing(t *testing.T) {
	s := newScript(t)
	holds := s.begin("a", "b")
	s.pass(8 * time.Second)
	s.kept(s.next(subjects.OpKeep), 10)
	s.left(holds[0], 4*time.Second)
	s.left(holds[1], 4*time.Second)
	for range 2 {
		renew := s.next(subjects.OpRenew)
		if !renew.req.Trusted {
			t.Error("it does not say that the lock has been trusted without a break")
		}
		switch renew.req.Name {
		case "a":
			s.grant(renew, 10, nil)
		case "b":
			s.answer(renew, refusal(410, subjects.ReasonLost, subjects.WhyForced))
		}
	}
	s.state(holds[0], Held)
	s.left(holds[0], 12*time.Second)
	s.state(holds[1], Lost)
	if holds[1].Why.Why != subjects.WhyForced {
		t.Errorf("lost because %v", holds[1].Why)
	}
}

// What was under way when the keep-alive was sent may be counted or not. What the answer does not prove is not extended.
func TestAnswerMayCountWhatIsUnderWay(t *testing.T) {
	s := newScript(t)
	holds := s.begin("a", "b")
	s.pass(8 * time.Second)
	beat := s.next(subjects.OpKeep)
	var young [2]*Hold
	for i := range young {
		young[i] = s.acquire([]string{"c", "d"}[i], nil)
		s.grant(s.next(subjects.OpAcquire), uint64(20+i), nil)
	}
	s.do(func(now int64) { s.m.Release(now, holds[1], "", tidyCall()) })
	s.next(subjects.OpRelease)
	s.pass(100 * time.Millisecond)
	s.kept(beat, 10, 11, 21) // b is not released yet, d is granted, c is not
	s.left(holds[0], 12*time.Second-100*time.Millisecond)
	s.left(young[0], 12*time.Second-100*time.Millisecond) // by its own grant
	s.state(holds[1], Released)
	for _, m := range s.sent {
		if m.req.Op == subjects.OpRenew {
			t.Errorf("asked for %s, though the answer is explained", m.req.Name)
		}
	}
}

// A grant that arrives after the keep-alive was sent is not proved lost by an answer that does not count it.
func TestLateGrantIsNotStable(t *testing.T) {
	s := newScript(t)
	s.begin("a")
	s.pass(8 * time.Second)
	beat := s.next(subjects.OpKeep)
	h := s.acquire("c", nil)
	s.grant(s.next(subjects.OpAcquire), 20, nil)
	s.pass(50 * time.Millisecond)
	s.kept(beat, 10)
	s.left(h, 12*time.Second-50*time.Millisecond)
	s.quiet()
}

// Tokens are unique in a bucket only: a total that counts a token once does not say which of two holds has it.
func TestSameTokenTwiceProvesNothing(t *testing.T) {
	s := newScript(t)
	h := s.begin("a")[0]
	s.pass(8 * time.Second)
	beat := s.next(subjects.OpKeep)
	s.acquire("c", nil)
	s.grant(s.next(subjects.OpAcquire), 10, nil)
	s.total(beat, "n", 10)
	s.left(h, 4*time.Second)
	if renew := s.next(subjects.OpRenew); renew.req.Name != "a" {
		t.Errorf("asked for %s", renew.req.Name)
	}
}

// A difference that requests under way may explain is looked into only for holds that need a proof by now.
func TestBlurredMismatchWaits(t *testing.T) {
	s := newScript(t)
	s.begin("old")
	s.pass(6 * time.Second)
	young := s.acquire("d", nil) // in the same bucket
	s.grant(s.next(subjects.OpAcquire), 20, nil)
	s.pass(2 * time.Second)
	s.acquire("c", nil) // under way
	s.sent = slicesOf(s.sent, subjects.OpKeep)
	s.kept(s.next(subjects.OpKeep), 10, 20, 99)
	renew := s.next(subjects.OpRenew)
	if renew.req.Name != "old" {
		t.Errorf("asked for %s", renew.req.Name)
	}
	s.quiet()
	s.left(young, 10*time.Second)
}

func slicesOf(sent []sentMessage, op subjects.Op) (kept []sentMessage) {
	for _, m := range sent {
		if m.req.Op == op {
			kept = append(kept, m)
		}
	}
	return kept
}

// What the client has lost by its own clock it releases, but not before the lease is over: its caller, who is being told
// only now, may be at work still.
func TestLostToTimeIsReleasedAfterTheLease(t *testing.T) {
	s := newScript(t)
	h := s.begin("a")[0]
	s.pass(12 * time.Second)
	s.state(h, Lost)
	s.pass(4*time.Second - 1)
	if got := slicesOf(s.sent, subjects.OpRelease); len(got) > 0 {
		t.Fatal("released before the lease was over")
	}
	s.pass(1)
	if got := slicesOf(s.sent, subjects.OpRelease); len(got) != 1 || got[0].req.Key != 10 {
		t.Fatalf("after the lease: %d releases", len(got))
	}
}

// Its caller may release it before: that confirms that it has stopped.
func TestLostLockIsReleasedByItsCaller(t *testing.T) {
	s := newScript(t)
	h := s.begin("a")[0]
	s.pass(12 * time.Second)
	s.sent = nil
	s.do(func(now int64) { s.m.Release(now, h, "", ownCall("caller", &subjects.Request{})) })
	s.answer(s.next(subjects.OpRelease), &subjects.Released{Token: 10})
	s.pass(10 * time.Second)
	if got := slicesOf(s.sent, subjects.OpRelease); len(got) > 0 {
		t.Fatal("released twice")
	}
}

// A static lock's time limit is renewed at its half, and repeated quickly.
func TestStaticIsRenewedAtHalf(t *testing.T) {
	s := newScript(t)
	h := s.acquire("a", func(c *Call) {
		c.Req.Kind, c.Req.TTL, c.Req.Has = subjects.Static, 8*time.Second, subjects.HasTTL
	})
	s.opened(1)
	s.grant(s.next(subjects.OpAcquire), 10, nil)
	s.left(h, 6*time.Second)
	s.pass(4 * time.Second)
	renew := s.next(subjects.OpRenew)
	s.pass(1500 * time.Millisecond)
	s.state(h, Suspect)
	again := s.next(subjects.OpRenew)
	s.grant(again, 10, func(g *subjects.Grant) { g.TTL, g.Lease = 8*time.Second, 8*time.Second })
	if renew.req.Number != again.req.Number {
		t.Errorf("the renewal was repeated as %d, it was %d", again.req.Number, renew.req.Number)
	}
	s.left(h, 4500*time.Millisecond)
	s.pass(4500 * time.Millisecond)
	s.state(h, Lost)
}

// Silence of a connection whose grace is short ends the trust soon.
func TestShortGraceCutsTheTrust(t *testing.T) {
	s := newScript(t)
	short := s.acquire("a", func(c *Call) { c.Req.Grace, c.Req.Has = 4*time.Second, subjects.HasGrace })
	s.opened(1)
	s.grant(s.next(subjects.OpAcquire), 10, nil)
	long := s.acquire("b", nil)
	s.grant(s.next(subjects.OpAcquire), 11, nil)
	s.do(s.m.Disconnected)
	s.left(short, 3*time.Second)
	s.left(long, 12*time.Second)
	s.do(func(now int64) { s.m.Connected(now, Conn{Server: "s", CID: 2}) })
	s.opened(2)
	s.kept(s.next(subjects.OpKeep), 10, 11) // the broker has taken it back
	s.left(short, 12*time.Second)
}

// A session that comes back with a shorter lease, since the longest was made shorter: from its first message on the broker may count
// by that one, and after a fail-over it does. So the trust does too, even if nothing is ever answered.
func TestShorterLeaseOfTheSessionCutsTheTrust(t *testing.T) {
	const shorter = 4 * time.Second
	for _, answered := range []subjects.Op{subjects.OpNone, subjects.OpKeep, subjects.OpRenew} {
		s := newScript(t)
		h := s.begin("a")[0]
		s.do(s.m.Disconnected)
		s.left(h, 12*time.Second)
		s.do(func(now int64) { s.m.Connected(now, Conn{Server: "s", CID: 2}) })
		s.answer(s.next(subjects.OpSessionOpen), &subjects.Opened{
			Session: "token", Secret: "secret", User: "u", TTL: shorter, Lease: shorter, Node: "n", Incarnation: 2,
		})
		s.left(h, 3*time.Second)
		beat := s.next(subjects.OpKeep)
		switch answered {
		case subjects.OpNone:
			s.pass(3 * time.Second)
			s.state(h, Lost)
			continue
		case subjects.OpKeep:
			hash := subjects.TokenHash(10)
			s.answer(beat, &subjects.Kept{Node: "n", Beat: beat.req.Beat, Lease: shorter, Count: 1, Hash: hash, Buckets: []subjects.KeptBucket{
				{Bucket: h.home.bucket, Count: 1, Hash: hash},
			}})
		case subjects.OpRenew: // of a broker that lists nothing
			s.do(func(now int64) { s.m.Renew(now, h, ownCall(nil, &subjects.Request{})) })
			renew := s.next(subjects.OpRenew)
			s.pass(time.Millisecond)
			s.grant(renew, 10, nil)
			s.left(h, 3*time.Second-time.Millisecond)
			continue
		}
		s.left(h, 3*time.Second)
		s.pass(2 * time.Second)
		s.left(h, time.Second)
	}
}

// A renewal tells a shorter lease, since the longest was made shorter: it counts from then on, as that of a keep-alive does.
func TestRenewalTellsTheLease(t *testing.T) {
	s := newScript(t)
	h := s.begin("a")[0]
	s.pass(time.Second)
	s.do(func(now int64) { s.m.Renew(now, h, ownCall(nil, &subjects.Request{})) })
	s.grant(s.next(subjects.OpRenew), 10, func(g *subjects.Grant) { g.Lease = 4 * time.Second })
	s.left(h, 3*time.Second)
}

// A grant that was asked for over an earlier connection, and comes over the next one, may have ended with the first. It is proved before
// it is trusted, unless it quotes a keep-alive that was sent since. The answer to a renewal of before counts for nothing either.
func TestGrantOfAnEarlierConnectionIsProvedFirst(t *testing.T) {
	for _, quoted := range []bool{false, true} {
		s := newScript(t)
		h := s.acquire("a", func(c *Call) { c.Req.Grace, c.Req.Has = 0, subjects.HasGrace })
		s.opened(1)
		asked := s.next(subjects.OpAcquire)
		s.pass(100 * time.Millisecond)
		s.do(s.m.Disconnected)
		s.do(func(now int64) { s.m.Connected(now, Conn{Server: "s", CID: 2}) })
		s.opened(2)
		beat := s.next(subjects.OpKeep)
		s.next(subjects.OpAcquire) // again
		s.grant(asked, 10, func(g *subjects.Grant) {
			if quoted {
				g.Beat = beat.req.Beat
			}
		})
		if quoted {
			s.left(h, 12*time.Second)
			continue
		}
		s.state(h, Pending)
		renew := s.next(subjects.OpRenew)
		s.pass(100 * time.Millisecond)
		s.do(s.m.Disconnected)
		s.do(func(now int64) { s.m.Connected(now, Conn{Server: "s", CID: 3}) })
		s.opened(3)
		s.grant(renew, 10, nil)
		if s.state(h, Pending); s.finished(h) {
			t.Fatal("Lock returned before the lock can be trusted")
		}
		for _, again := range slicesOf(s.sent, subjects.OpRenew) {
			s.grant(again, 10, nil)
		}
		s.state(h, Held)
		s.left(h, 12*time.Second)
	}
}
