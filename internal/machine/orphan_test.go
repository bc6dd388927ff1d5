package machine

import (
	"slices"
	"testing"
	"time"

	"github.com/opencluster/oclocks/subjects"
)

// counts is a node's answer to a keep-alive that counts tokens in the bucket of a name.
func (s *script) counts(beat sentMessage, name string, tokens ...uint64) *subjects.Kept {
	part := subjects.KeptBucket{Bucket: s.m.bucketOf(name), Count: len(tokens)}
	for _, token := range tokens {
		part.Hash ^= subjects.TokenHash(token)
	}
	return &subjects.Kept{Node: "n", Beat: beat.req.Beat, Lease: scriptLease, Count: part.Count, Hash: part.Hash,
		Buckets: []subjects.KeptBucket{part}}
}

// "Clients release tokens that they do not know": a recovery has undone a release. (Simulator, seed 3009 of 22 November.)
func TestRevivedHoldIsReleasedAgain(t *testing.T) {
	s := newScript(t)
	holds := s.begin("a")
	s.do(s.m.KeepSession)
	s.do(func(now int64) { s.m.Release(now, holds[0], "", ownCall("owner", &subjects.Request{})) })
	s.answer(s.next(subjects.OpRelease), &subjects.Released{Token: 10})
	s.pass(scriptLease / 2)
	beat := s.next(subjects.OpKeep)
	s.quiet()
	s.answer(beat, s.counts(beat, "a", 10))
	release := s.next(subjects.OpRelease)
	if release.req.Key != 10 || release.req.Name != "a" {
		t.Fatalf("released %q with key %d", release.req.Name, release.req.Key)
	}
	s.answer(beat, s.counts(beat, "a", 10)) // while that is under way
	s.quiet()
	s.answer(release, &subjects.Released{Token: 10})
	s.state(holds[0], Released)
	if len(s.over) != 2 { // the acquire and the first release
		t.Errorf("%d calls were told of", len(s.over))
	}
}

// A waiter that was answered long ago is granted once more: nobody wants that.
func TestGrantToNobodyIsReleased(t *testing.T) {
	s := newScript(t)
	s.acquire("a", nil)
	s.opened(1)
	acquire := s.next(subjects.OpAcquire)
	s.grant(acquire, 10, nil)
	s.do(func(now int64) { s.m.Release(now, s.m.holds[0], "", tidyCall()) })
	s.grant(acquire, 10, nil) // told twice
	release := s.next(subjects.OpRelease)
	s.quiet()
	s.answer(release, &subjects.Released{Token: 10})
	s.grant(acquire, 10, nil)
	s.quiet()
	s.grant(acquire, 11, nil)
	if again := s.next(subjects.OpRelease); again.req.Key != 11 {
		t.Errorf("released the key %d", again.req.Key)
	}
	s.grant(acquire, 11, nil) // which is under way
	s.quiet()
}

// What was lost by the word of the broker may wait for its holder's confirmation: a grant that is told again releases nothing.
func TestGrantOfForcedHoldIsNoNews(t *testing.T) {
	s := newScript(t)
	s.acquire("a", nil)
	s.opened(1)
	acquire := s.next(subjects.OpAcquire)
	s.grant(acquire, 10, nil)
	h := s.m.holds[0]
	s.do(func(now int64) { s.m.Event(now, &subjects.SessionEvent{Type: "forced", Name: "a", Token: 10}) })
	s.state(h, Lost)
	s.grant(acquire, 10, nil)
	s.pass(time.Millisecond)
	s.quiet()
	s.do(func(now int64) { s.m.Release(now, h, "", tidyCall()) })
	s.next(subjects.OpRelease)
}

// A renew that tells another token is about another grant of the same request. (Simulator, seed 6278 of 22 November.)
func TestRenewOfAnotherTokenEndsTheHold(t *testing.T) {
	s := newScript(t)
	h := s.begin("a")[0]
	s.do(func(now int64) { s.m.askRenew(now, h, false) })
	renew := s.next(subjects.OpRenew)
	s.grant(renew, 11, nil)
	s.state(h, Lost)
	if release := s.next(subjects.OpRelease); release.req.Key != 10 {
		t.Errorf("released the key %d", release.req.Key)
	}
}

// A recovery has undone a force, of which the client was told: the hold counts again, and its caller was told to stop. It is released
// when a force would have ended it, not sooner. (Simulator, seeds 3090 at 53d4c3d and 230 at a96d3fc.)
func TestRevivedForcedHoldIsReleased(t *testing.T) {
	s := newScript(t)
	h := s.begin("a")[0]
	s.do(s.m.KeepSession)
	s.do(func(now int64) { s.m.Event(now, &subjects.SessionEvent{Type: "forced", Name: "a", Token: 10}) })
	s.state(h, Lost)
	for range 2 { // sent before the whole lease is over
		s.pass(scriptLease / 2)
		beat := s.next(subjects.OpKeep)
		s.answer(beat, s.counts(beat, "a", 10))
		s.quiet()
	}
	s.pass(scriptLease / 2)
	beat := s.next(subjects.OpKeep)
	s.answer(beat, s.counts(beat, "a", 10))
	release := s.next(subjects.OpRelease)
	if release.req.Key != 10 || release.req.Name != "a" {
		t.Fatalf("released %q with key %d", release.req.Name, release.req.Key)
	}
	s.answer(release, &subjects.Released{Token: 10})
	s.answer(beat, s.counts(beat, "a", 10)) // told twice
	s.quiet()
}

// A recovery has gone on from a history in which the request of a released hold had another token, which no message has told: its
// key releases that, when nothing explains it for a lease; then less often. (Simulator, seeds 37 at 0038cfa and 900000 at 7f0f2cd.)
func TestUnknownGrantIsReleasedByItsKey(t *testing.T) {
	s := newScript(t)
	holds := s.begin("a", "c")
	s.do(func(now int64) { s.m.Release(now, holds[0], "", ownCall("owner", &subjects.Request{})) })
	s.answer(s.next(subjects.OpRelease), &subjects.Released{Token: 10})
	var released []int
	for round := range 12 {
		s.pass(scriptLease / 2)
		beat := s.next(subjects.OpKeep)
		a, c := s.counts(beat, "a", 99), s.counts(beat, "c", holds[1].Grant.Token)
		a.Buckets, a.Count, a.Hash = append(a.Buckets, c.Buckets...), a.Count+c.Count, a.Hash^c.Hash
		s.answer(beat, a)
		if len(s.sent) == 0 {
			continue
		}
		release := s.next(subjects.OpRelease)
		s.quiet()
		if release.req.Key != 10 || release.req.Name != "a" {
			t.Fatalf("released %q with key %d", release.req.Name, release.req.Key)
		}
		s.answer(release, &subjects.Released{Token: 99})
		released = append(released, round)
	}
	if want := []int{2, 6}; !slices.Equal(released, want) {
		t.Errorf("released in the rounds %v, want %v", released, want)
	}
	s.state(holds[1], Held)
}

// A recovery has undone the cancel of an acquire that was granted, whose key the client has never heard: it is cancelled again, with
// the token that the answer to the first cancel has told. (Simulator, seed 12000018280 at d5d1ff6.)
func TestRevivedGrantIsCancelledAgain(t *testing.T) {
	s := newScript(t)
	cancelled := &subjects.Cancelled{Request: "1", Was: "granted", Token: 10}
	s.acquire("a", nil)
	s.opened(1)
	acquire := s.next(subjects.OpAcquire)
	s.do(s.m.KeepSession)
	s.do(func(now int64) { s.m.GiveUp(now, s.m.session.flight.head) })
	s.answer(s.next(subjects.OpCancel), cancelled)
	for range 2 { // it may be lost in another recovery
		s.pass(scriptLease / 2)
		beat := s.next(subjects.OpKeep)
		s.quiet()
		s.answer(beat, s.counts(beat, "a", 10))
		again := s.next(subjects.OpCancel)
		if r := again.req; r.Number != acquire.req.Number || r.Name != "a" || r.Token != 10 || r.Session != "token" {
			t.Fatalf("cancelled %+v", r)
		}
		s.answer(beat, s.counts(beat, "a", 10)) // while that is under way
		s.quiet()
		s.answer(again, cancelled)
	}
	s.grant(acquire, 10, nil) // its key comes after all
	if release := s.next(subjects.OpRelease); release.req.Key != 10 {
		t.Errorf("released the key %d", release.req.Key)
	}
}

// What is to be cancelled again ends with its session.
func TestCancelAgainEndsWithTheSession(t *testing.T) {
	s := newScript(t)
	s.acquire("a", nil)
	s.opened(1)
	s.next(subjects.OpAcquire)
	s.do(s.m.KeepSession)
	s.do(func(now int64) { s.m.GiveUp(now, s.m.session.flight.head) })
	s.answer(s.next(subjects.OpCancel), &subjects.Cancelled{Request: "1", Was: "granted", Token: 10})
	s.pass(scriptLease / 2)
	beat := s.next(subjects.OpKeep)
	s.answer(beat, s.counts(beat, "a", 10))
	s.answer(s.next(subjects.OpCancel), refusal(410, subjects.ReasonSession, subjects.WhyExpired))
	s.sent = nil
	s.pass(scriptLease)
	if got := slicesOf(s.sent, subjects.OpCancel); len(got) > 0 {
		t.Errorf("cancelled %+v", got[0].req)
	}
}

// A grant was not trusted yet when its connection broke, and the broker ended it; the acquire was asked for anew. A recovery has undone
// that end: it is released by the key of the first grant, or the acquire would wait for its own session's hold for ever. (Simulator,
// seed 12000012783 at 1192074.)
func TestRevivedUntrustedHoldIsReleased(t *testing.T) {
	s := newScript(t)
	h := s.acquire("a", nil)
	s.opened(1)
	first := s.next(subjects.OpAcquire)
	s.pass(9 * scriptLease / 16) // too long ago to be trusted when it is granted
	s.sent = nil
	s.grant(first, 10, nil)
	s.state(h, Pending)
	renew := s.next(subjects.OpRenew)
	s.answer(renew, refusal(410, subjects.ReasonLost, subjects.WhyDisconnected))
	again := s.next(subjects.OpAcquire)
	if again.req.Number == first.req.Number {
		t.Fatal("asked for again with the same number")
	}
	s.state(h, Pending)
	s.sent = nil
	for range 2 { // it may be undone once more
		s.pass(scriptLease / 2)
		beats := slicesOf(s.sent, subjects.OpKeep)
		beat := beats[len(beats)-1]
		s.sent = nil // the acquire is repeated, too
		s.answer(beat, s.counts(beat, "a", 10))
		release := s.next(subjects.OpRelease)
		s.quiet()
		if release.req.Key != 10 || release.req.Name != "a" {
			t.Fatalf("released %q with key %d", release.req.Name, release.req.Key)
		}
		s.answer(beat, s.counts(beat, "a", 10)) // while that is under way
		s.quiet()
		s.answer(release, &subjects.Released{Token: 10})
	}
	s.grant(again, 11, nil) // of long ago
	s.grant(s.next(subjects.OpRenew), 11, nil)
	s.state(h, Held)
}
