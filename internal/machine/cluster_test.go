package machine

import (
	"strconv"
	"testing"
	"time"

	"github.com/opencluster/oclocks/subjects"
)

// Names in buckets 0, 1, 2 and 3 of four: d, c, g, a. With d: e, old. With a: b.

func noBroker() *subjects.Refusal { return refusal(503, subjects.ReasonUnavailable, "") }

// unreachable says that nobody listens on a message's subject.
func (s *script) unreachable(msg sentMessage) {
	s.t.Helper()
	id, err := strconv.ParseUint(msg.reply[1:], 36, 64)
	if err != nil {
		s.t.Fatal(err)
	}
	if msg.reply[0] == 'k' {
		s.do(func(now int64) { s.m.KeepRefused(now, id, nobodyListens) })
		return
	}
	s.do(func(now int64) { s.m.Unreachable(now, id) })
}

func inEpoch(epoch uint64, node string) func(*subjects.Grant) {
	return func(g *subjects.Grant) { g.Epoch, g.Node = epoch, node }
}

// everybody is the subject of a keep-alive for all nodes.
var everybody = subjects.SimpleSubject(subjects.OpKeep, "u")

// The node of a hold is gone: everybody is asked at once, and the node that has the bucket now proves the hold.
func TestHoldIsFoundAtAnotherNode(t *testing.T) {
	s := newScript(t)
	h := s.begin("a")[0]
	s.pass(8 * time.Second)
	s.unreachable(s.next(subjects.OpKeep))
	beat := s.next(subjects.OpKeep)
	if beat.subject != everybody {
		t.Fatalf("asked %s", beat.subject)
	}
	s.keptAt(beat, "other", 2, 10)
	s.left(h, 12*time.Second)
	s.pass(8 * time.Second)
	if beat := s.next(subjects.OpKeep); beat.subject != subjects.KeepNodeSubject("other", "u") {
		t.Errorf("the next keep-alive went to %s", beat.subject)
	}
	s.quiet()
}

// A node that is silent, without anybody saying so, is not the only one that is asked.
func TestSilentNodeIsNotTheOnlyOneAsked(t *testing.T) {
	s := newScript(t)
	holds := s.begin("a", "c")
	s.pass(8 * time.Second)
	s.next(subjects.OpKeep) // lost
	s.pass(250 * time.Millisecond)
	beat := s.next(subjects.OpKeep)
	if beat.subject != everybody {
		t.Fatalf("asked %s", beat.subject)
	}
	s.keptAt(beat, "n", 1, 10) // the other bucket has no primary yet
	s.left(holds[0], 12*time.Second)
	s.left(holds[1], 3750*time.Millisecond)
	s.pass(250 * time.Millisecond)
	s.keptAt(s.next(subjects.OpKeep), "m", 2, 11)
	s.left(holds[1], 12*time.Second)
	s.pass(7 * time.Second)
	s.quiet()
}

// "a bucket that is in fail-over answers at nobody: claims stay held as long as the lease rule says", however many answers
// do not list it, and no longer.
func TestHoldsOutliveAFailover(t *testing.T) {
	s := newScript(t)
	holds := s.begin("a", "c")
	s.pass(8 * time.Second)
	s.next(subjects.OpKeep)
	answered := 0
	for range 15 {
		s.pass(250 * time.Millisecond)
		for _, beat := range slicesOf(s.sent, subjects.OpKeep) {
			s.keptAt(beat, "n", 1, 10)
			answered++
		}
		s.sent = slicesOf(s.sent, subjects.OpRenew)
		if st := holds[1].State(s.now); st == Lost {
			t.Fatalf("lost after %d answers of a node that has not got it", answered)
		}
	}
	if renews := slicesOf(s.sent, subjects.OpRenew); answered < 10 || len(renews) == 0 || renews[0].req.Name != "c" {
		t.Fatalf("%d answers, asked by name %d times", answered, len(renews))
	}
	s.pass(250 * time.Millisecond)
	s.state(holds[1], Lost)
	s.state(holds[0], Held)
}

// Holds that have been asked for by name in vain are proved by one answer that lists their bucket.
func TestListedBucketEndsTheDoubt(t *testing.T) {
	s := newScript(t)
	h := s.begin("a")[0]
	s.pass(8 * time.Second)
	s.pass(time.Second)
	if len(slicesOf(s.sent, subjects.OpRenew)) == 0 {
		t.Fatal("not asked for by name")
	}
	beats := slicesOf(s.sent, subjects.OpKeep)
	s.keptAt(beats[len(beats)-1], "m", 2, 10)
	if left := h.Left(s.now); left < 11*time.Second {
		t.Fatalf("trusted for %v", left)
	}
}

// A bucket that has moved: the answer that lists it counts, whichever node gives it, and what the old node leaves out is
// not lost.
func TestMovedBucketIsNotLost(t *testing.T) {
	s := newScript(t)
	holds := s.begin("a", "c")
	s.pass(8 * time.Second)
	s.kept(s.next(subjects.OpKeep), 10) // c has moved
	s.left(holds[0], 12*time.Second)
	s.left(holds[1], 4*time.Second)
	s.quiet()
	s.pass(250 * time.Millisecond)
	s.keptAt(s.next(subjects.OpKeep), "m", 2, 11)
	s.left(holds[1], 12*time.Second)
	s.sent = nil
	s.pass(8 * time.Second)
	asked := map[string]bool{}
	for _, beat := range slicesOf(s.sent, subjects.OpKeep) {
		asked[beat.subject] = true
	}
	if !asked[subjects.KeepNodeSubject("n", "u")] || !asked[subjects.KeepNodeSubject("m", "u")] {
		t.Errorf("asked %v", asked)
	}
}

// Two buckets have changed places, and their holds have the same token: by its total a node would seem to have what it had.
func TestTwinTokensInMovedBuckets(t *testing.T) {
	for name, tells := range map[string]bool{"by bucket": true, "by total": false} {
		t.Run(name, func(t *testing.T) {
			s := newScript(t)
			a := s.acquire("a", nil)
			s.opened(1)
			s.grant(s.next(subjects.OpAcquire), 10, inEpoch(1, "n"))
			s.acquire("c", nil)
			s.grant(s.next(subjects.OpAcquire), 10, inEpoch(1, "m"))
			s.pass(8 * time.Second)
			toN := s.next(subjects.OpKeep)
			if toN.subject != subjects.KeepNodeSubject("n", "u") {
				t.Fatalf("asked %s", toN.subject)
			}
			if tells { // n has c's bucket now
				part := subjects.KeptBucket{Bucket: 1, Epoch: 2, Count: 1, Hash: subjects.TokenHash(10)}
				s.answer(toN, &subjects.Kept{Node: "n", Beat: toN.req.Beat, Count: 1, Hash: part.Hash, Lease: scriptLease,
					Buckets: []subjects.KeptBucket{part}})
			} else {
				s.total(toN, "n", 10)
			}
			s.left(a, 4*time.Second)
		})
	}
}

// While nobody listens for a bucket, one small request asks, every few milliseconds; the others wait, and are sent in their
// order when it is answered. So is what was sent before, which may have died with the old primary.
func TestVacantBucketIsProbed(t *testing.T) {
	s := newScript(t)
	s.begin("d")
	waits := s.acquire("a", nil)
	early := s.next(subjects.OpAcquire) // reached the old primary, which died
	tries := []*Hold{s.acquire("b", func(c *Call) { c.Endless = false }), s.acquire("a", func(c *Call) { c.Endless = false })}
	s.unreachable(s.next(subjects.OpAcquire))
	s.unreachable(s.next(subjects.OpAcquire))
	s.quiet()
	probes := 0
	for range 1200 {
		s.pass(time.Millisecond)
		for _, msg := range s.sent {
			if msg.req.Op != subjects.OpCheck || msg.subject != subjects.HotSubject(3, subjects.OpCheck, "u") {
				t.Fatalf("sent %s", msg.subject)
			}
			probes++
		}
		for _, msg := range s.sent {
			s.sent = nil
			s.unreachable(msg)
		}
	}
	if probes < 50 || probes > 150 {
		t.Errorf("%d probes in 1.2 s", probes)
	}
	late := s.acquire("b", nil)
	s.quiet()
	elsewhere := s.acquire("e", nil)
	s.grant(s.next(subjects.OpAcquire), 20, nil)
	s.state(elsewhere, Held)
	s.pass(25 * time.Millisecond)
	s.answer(s.next(subjects.OpCheck), &subjects.Checked{})
	for _, want := range []string{"a", "b", "a", "b"} {
		if got := s.next(subjects.OpAcquire); got.req.Name != want {
			t.Fatalf("sent %q, expected %q", got.req.Name, want)
		} else if want == "a" && got.req.Number == early.req.Number {
			s.grant(got, 10, nil)
		}
	}
	s.quiet()
	s.state(waits, Held)
	for _, h := range append(tries, late) {
		s.state(h, Pending)
	}
	s.pass(time.Second - 1)
	if got := slicesOf(s.sent, subjects.OpCheck); len(got) > 0 {
		t.Error("the bucket is probed still")
	}
}

// Who gives up in a vacancy leaves it at once if no broker has seen the request, and then nobody probes.
func TestVacancyEndsWithItsLastCall(t *testing.T) {
	s := newScript(t)
	s.begin("d")
	c := &Call{Raw: true, Req: &subjects.Request{Op: subjects.OpQuery, Name: "a"}}
	s.do(func(now int64) { must(t, s.m.Submit(now, c)) })
	s.unreachable(s.next(subjects.OpQuery))
	s.pass(2 * time.Millisecond)
	probe := s.next(subjects.OpCheck)
	if why := c.Why(); why == nil || why.Code != 503 {
		t.Errorf("it waits because %v", why)
	}
	s.do(func(now int64) { s.m.GiveUp(now, c) })
	s.unreachable(probe)
	s.pass(time.Second)
	s.quiet()
	if s.m.Calls() != 0 || len(s.m.vacant) != 0 {
		t.Errorf("%d calls and %d vacancies are left", s.m.Calls(), len(s.m.vacant))
	}
}

// A broker that has no primary for the bucket says so: that is no answer to the probe.
func TestProbeOutlastsUnavailable(t *testing.T) {
	s := newScript(t)
	s.begin("d")
	s.acquire("a", nil)
	s.unreachable(s.next(subjects.OpAcquire))
	s.pass(2 * time.Millisecond)
	s.answer(s.next(subjects.OpCheck), noBroker())
	s.quiet()
	s.pass(5 * time.Millisecond)
	s.answer(s.next(subjects.OpCheck), refusal(503, subjects.ReasonUnavailable, subjects.WhyRecovery))
	s.next(subjects.OpAcquire)
}

// A node is gone: what was sent to it is sent again as soon as somebody answers for its buckets, and nothing else is.
func TestServerDownIsFollowed(t *testing.T) {
	s := newScript(t)
	holds := s.begin("d", "a")
	s.pass(time.Millisecond)
	s.acquire("e", nil) // of n
	waits := s.next(subjects.OpAcquire)
	s.do(func(now int64) { s.m.Release(now, holds[1], "", tidyCall()) }) // of n
	release := s.next(subjects.OpRelease)
	s.pass(100 * time.Millisecond)
	s.do(func(now int64) { s.m.ServerDown(now, "m") })
	s.quiet()
	s.do(func(now int64) { s.m.ServerDown(now, "n") })
	first, second := s.next(subjects.OpCheck), s.next(subjects.OpCheck)
	s.quiet()
	s.unreachable(first)
	s.unreachable(second)
	s.sent = nil
	s.pass(2 * time.Millisecond)
	first, second = s.next(subjects.OpCheck), s.next(subjects.OpCheck)
	if first.req.Name != "e" {
		first, second = second, first
	}
	s.unreachable(second)
	s.answer(first, &subjects.Checked{})
	if again := s.next(subjects.OpAcquire); again.req.Number != waits.req.Number {
		t.Errorf("asked as %d", again.req.Number)
	}
	s.pass(0) // the other bucket is asked for at once, whatever its turn was
	s.answer(s.next(subjects.OpCheck), &subjects.Checked{})
	if again := s.next(subjects.OpRelease); again.req.Number != release.req.Number {
		t.Errorf("released as %d", again.req.Number)
	}
	s.quiet()
}

// A higher epoch in a grant tells that the bucket has changed hands: what is unanswered is sent again, once.
func TestHigherEpochSendsAgain(t *testing.T) {
	s := newScript(t)
	s.acquire("a", nil)
	s.opened(1)
	s.grant(s.next(subjects.OpAcquire), 10, inEpoch(3, "n"))
	s.acquire("b", nil)
	waits := s.next(subjects.OpAcquire)
	s.pass(100 * time.Millisecond)
	s.acquire("b", func(c *Call) { c.Endless = false })
	s.acquire("a", func(c *Call) { c.Endless = false })
	one, two := s.next(subjects.OpAcquire), s.next(subjects.OpAcquire)
	s.grant(one, 11, inEpoch(4, "m"))
	if again := s.next(subjects.OpAcquire); again.req.Number != waits.req.Number {
		t.Errorf("asked as %d", again.req.Number)
	}
	s.quiet() // two was sent at this very moment
	s.pass(time.Millisecond)
	s.grant(two, 12, inEpoch(3, "n")) // a repeated reply: its epoch was
	s.quiet()
	s.pass(8 * time.Second)
	for _, beat := range slicesOf(s.sent, subjects.OpKeep) {
		if beat.subject == subjects.KeepNodeSubject("n", "u") {
			t.Error("the node of the older epoch is asked")
		}
	}
}

// Maps do not go back: a node that is behind tells an older one. If it is all that is told, it is the truth.
func TestOlderMapIsNotBelieved(t *testing.T) {
	s := newScript(t)
	s.m.Locate(s.now, &subjects.Info{Buckets: 4, Map: subjects.Map{Change: 9}})
	s.acquire("a", nil)
	s.opened(1)
	older := refusal(421, subjects.ReasonMoved, "")
	older.Map = &subjects.Map{Change: 7, Primary: make([]string, 2)}
	times := 0
	for s.m.buckets == 4 {
		if times++; times > 100 {
			t.Fatal("never believed")
		}
		s.answer(s.next(subjects.OpAcquire), older)
		if s.m.buckets == 4 {
			s.quiet() // no hurry
		}
		s.pass(300 * time.Millisecond)
	}
	if times < 10 {
		t.Errorf("believed after %d times", times)
	}
	newer := refusal(421, subjects.ReasonMoved, "")
	newer.Map = &subjects.Map{Change: 8, Primary: make([]string, 8)}
	s.sent = slicesOf(s.sent, subjects.OpAcquire)
	s.answer(s.next(subjects.OpAcquire), newer)
	if again := s.next(subjects.OpAcquire); again.subject != subjects.HotSubject(subjects.BucketOf("a", 8), subjects.OpAcquire, "u") {
		t.Errorf("asked %s", again.subject)
	}
}

// The number of buckets is doubled: the holds are where they were, under other numbers.
func TestDoubledBuckets(t *testing.T) {
	s := newScript(t)
	holds := s.begin("a", "b", "c")
	s.pass(time.Second)
	s.acquire("g", func(c *Call) { c.Endless = false })
	moved := refusal(421, subjects.ReasonMoved, "")
	moved.Map = &subjects.Map{Change: 7, Primary: make([]string, 64)}
	s.answer(s.next(subjects.OpAcquire), moved)
	s.grant(s.next(subjects.OpAcquire), 20, nil)
	s.pass(7 * time.Second)
	s.kept(s.next(subjects.OpKeep), 10, 11, 12, 20)
	for _, h := range holds {
		s.left(h, 12*time.Second)
		if want := subjects.BucketOf(h.Grant.Name, 64); h.home.bucket != want || h.home.node != "n" {
			t.Errorf("%s is thought to be in %d at %q", h.Grant.Name, h.home.bucket, h.home.node)
		}
	}
	s.quiet()
}

// A session that comes back asks everybody first: what broke the connection may have moved buckets.
func TestSessionComesBackAtAnotherNode(t *testing.T) {
	s := newScript(t)
	h := s.begin("a")[0]
	s.pass(time.Second)
	s.do(s.m.Disconnected)
	s.do(func(now int64) { s.m.Connected(now, Conn{Server: "m", CID: 2}) })
	s.opened(2)
	beat := s.next(subjects.OpKeep)
	if beat.subject != everybody {
		t.Errorf("asked %s", beat.subject)
	}
	s.keptAt(beat, "m", 2, 10)
	s.left(h, 12*time.Second)
}

// A node that has nothing lists nothing, and that is no word about what is elsewhere.
func TestEmptyAnswerSaysNothing(t *testing.T) {
	s := newScript(t)
	h := s.begin("a")[0]
	s.pass(8 * time.Second)
	s.total(s.next(subjects.OpKeep), "n")
	s.quiet()
	s.pass(250 * time.Millisecond)
	s.keptAt(s.next(subjects.OpKeep), "m", 2, 10)
	s.left(h, 12*time.Second)
}

// The number of buckets is doubled while a request is on its way, and nobody listens where it went: the half that has its name now is
// probed. Who wants a name of the other half does not wait for that.
func TestVacancyIsOfTheBucketThatHasTheNameNow(t *testing.T) {
	s := newScript(t)
	s.begin("d")
	var names [2]string // of one bucket of 4: of its lower and of its upper half
	for i := 0; names[0] == "" || names[1] == ""; i++ {
		name := "n" + strconv.Itoa(i)
		if b := subjects.BucketOf(name, 8); b%4 == subjects.BucketOf("a", 4) {
			names[b/4] = name
		}
	}
	s.acquire(names[1], nil)
	before := s.next(subjects.OpAcquire)
	s.do(func(now int64) { s.m.Locate(now, &subjects.Info{Buckets: 8, Map: subjects.Map{Change: 9}}) })
	s.unreachable(before)
	s.acquire(names[0], nil)
	other := s.next(subjects.OpAcquire)
	if other.req.Name != names[0] {
		t.Fatalf("sent %q, expected %q", other.req.Name, names[0])
	}
	s.pass(25 * time.Millisecond)
	probe := s.next(subjects.OpCheck)
	if want := subjects.HotSubject(subjects.BucketOf(names[1], 8), subjects.OpCheck, "u"); probe.subject != want {
		t.Fatalf("%s is probed, expected %s", probe.subject, want)
	}
	s.answer(probe, &subjects.Checked{})
	if again := s.next(subjects.OpAcquire); again.req.Name != names[1] {
		t.Errorf("sent %q, expected %q", again.req.Name, names[1])
	}
	s.quiet()
}

// A closed client waits for nothing but the probe of a vacant bucket, and what that is answered is a map with another number of buckets,
// which ends all vacancies: the session is closed then. (Simulator, seed 13400006540.)
func TestCloseWhileAProbeIsToldOfMoreBuckets(t *testing.T) {
	s := newScript(t)
	s.begin("a")
	waits := s.acquire("b", nil)
	s.unreachable(s.next(subjects.OpAcquire))
	s.pass(25 * time.Millisecond)
	probe := s.next(subjects.OpCheck)
	s.do(s.m.Close)
	if !s.finished(waits) || s.m.Idle() || s.m.Calls() != 1 {
		t.Fatalf("it does not wait for the probe: %s", s.m.Describe(s.now))
	}
	s.quiet()
	moved := refusal(421, subjects.ReasonMoved, "")
	moved.Map = &subjects.Map{Change: 9, Primary: make([]string, 8)}
	s.answer(probe, moved)
	s.answer(s.next(subjects.OpSessionClose), &subjects.SessionClosed{})
	if !s.m.Idle() {
		t.Errorf("not idle at the end: %s", s.m.Describe(s.now))
	}
	s.quiet()
}
