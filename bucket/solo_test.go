package bucket

import (
	"fmt"
	"testing"
	"time"

	"github.com/opencluster/oclocks/subjects"
)

// solo is a primary alone, without the checks of a world, which cost too much where thousands of requests are made.
type solo struct {
	*Table
	t   *testing.T
	now Now
	out Output
}

func newSolo(t *testing.T, cfg Config, recoverUntil int64) *solo {
	s := &solo{Table: New(cfg), t: t, now: Now{Boot: int64(time.Hour), Wall: 1 << 40}}
	if err := s.Promote(s.now, Term{Epoch: 1, Term: 1}, recoverUntil, &s.out); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *solo) feed(in *Input) []Effect {
	s.t.Helper()
	s.out.Effects = nil
	s.Step(s.now, in, &s.out)
	if err := s.Err(); err != nil {
		s.t.Fatal(err)
	}
	return s.out.Effects
}

func (s *solo) ask(session string, req subjects.Request) []Effect {
	s.t.Helper()
	in := &Input{Kind: Request, Zone: "z", User: "u", Reply: "_INBOX.r", Req: &req, Key: 7}
	if session != "" {
		in.Session = Session{ID: session, Incarnation: 1, Lease: 10 * time.Second}
	}
	return s.feed(in)
}

// A session that waits for a lock which it holds itself, far back among very many, ends with all the table has.
func TestSessionEndsWithTheWholeTable(t *testing.T) {
	s := newSolo(t, Config{}, 0)
	const n = 1100 // more than a chunk of locks
	for i := range n {
		s.ask("s", subjects.Request{Op: subjects.OpAcquire, Name: fmt.Sprintf("n%d", i)})
	}
	s.ask("s", subjects.Request{Op: subjects.OpAcquire, Name: fmt.Sprintf("n%d", n-1), Wait: time.Minute})
	s.ask("s", subjects.Request{Op: subjects.OpSessionClose})
	if got := s.Usage("z"); got != (Usage{}) {
		t.Fatalf("left: %+v", got)
	}
}

// A stop takes all waiters from very many locks that nobody holds.
func TestStopEmptiesTheWholeTable(t *testing.T) {
	s := newSolo(t, Config{}, int64(2*time.Hour))
	for i := range 1100 {
		s.ask("", subjects.Request{Op: subjects.OpAcquire, Name: fmt.Sprintf("n%d", i), Wait: time.Minute})
	}
	s.feed(&Input{Kind: Stop})
	if got := s.Usage("z"); got != (Usage{}) {
		t.Fatalf("left: %+v", got)
	}
}

// Numbers need not rise: one that is below those of outcomes which make room for it cannot be remembered and is refused.
func TestNumberBelowWhatIsForgottenForIt(t *testing.T) {
	s := newSolo(t, Config{}, 0)
	for i := range maxOutcomes + 10 {
		s.ask("s", subjects.Request{Op: subjects.OpRelease, Name: "n", Key: 1, Number: uint64(1_000_000 + i)})
	}
	e := s.ask("s", subjects.Request{Op: subjects.OpAcquire, Name: "n", Number: 5})
	if len(e) != 1 {
		t.Fatalf("effects: %s", drawEffects(e))
	}
	if r, ok := e[0].Body.(*subjects.Refusal); !ok || r.Code != 400 {
		t.Fatalf("answer: %s", drawEffects(e))
	}
}

// Cancelled requests that were never seen are remembered too, and count as outcomes.
func TestCancelsOfASessionAreLimited(t *testing.T) {
	s := newSolo(t, Config{}, 0)
	for i := range maxOutcomes {
		s.ask("s", subjects.Request{Op: subjects.OpCancel, Name: "n", Number: uint64(1 + i)})
	}
	e := s.ask("s", subjects.Request{Op: subjects.OpCancel, Name: "n", Number: maxOutcomes + 1})
	if r, ok := e[0].Body.(*subjects.Refusal); !ok || r.Code != 429 {
		t.Fatalf("answer: %s", drawEffects(e))
	}
}

// A short wait is over when it says, not after a second.
func TestShortWait(t *testing.T) {
	s := newSolo(t, Config{}, 0)
	s.ask("", subjects.Request{Op: subjects.OpAcquire, Name: "n"})
	s.ask("", subjects.Request{Op: subjects.OpAcquire, Name: "n", Wait: 50 * time.Millisecond})
	s.now.Boot += int64(51 * time.Millisecond)
	e := s.feed(&Input{Kind: Tick})
	if len(e) != 1 {
		t.Fatalf("effects after the wait: %s", drawEffects(e))
	}
	if r, ok := e[0].Body.(*subjects.Refusal); !ok || r.Code != 408 {
		t.Fatalf("answer: %s", drawEffects(e))
	}
}

// A grant that is told again after a renew for a shorter time promises no more than the hold has.
func TestGrantToldAgainAfterAShorterRenew(t *testing.T) {
	s := newSolo(t, Config{}, 0)
	acquire := subjects.Request{Op: subjects.OpAcquire, Name: "n", RequestID: "a", TTL: time.Minute, Has: subjects.HasTTL}
	s.ask("", acquire)
	s.ask("", subjects.Request{Op: subjects.OpRenew, Name: "n", Key: 7, TTL: time.Second, Has: subjects.HasTTL})
	e := s.ask("", acquire)
	g, ok := e[0].Body.(*subjects.Grant)
	if !ok || g.TTL != time.Second || g.Lease != time.Second {
		t.Fatalf("answer: %s", drawEffects(e))
	}
}

// A wall clock that is centuries off makes no change that cannot be read again.
func TestWallClockFarOff(t *testing.T) {
	w := newWorld(t, Config{})
	w.now.Wall = -1
	acquire := subjects.Request{Op: subjects.OpAcquire, Name: "n"}
	w.step(&Input{Kind: Request, Zone: "z", User: "u", Reply: "_INBOX.r", Req: &acquire, Key: 7})
	w.now.Wall = 1 << 50
	release := subjects.Request{Op: subjects.OpRelease, Name: "n", Key: 7}
	w.step(&Input{Kind: Request, Zone: "z", User: "u", Reply: "_INBOX.r", Req: &release})
}

// A hold is called durable if its lease is no longer than a recovery waits for. That may become shorter: then the next renewal
// says so, and the session's lease that a later grant quotes.
func TestDurableAsLongAsARecoveryWaits(t *testing.T) {
	s := newSolo(t, Config{Journaled: true, Limits: Limits{MaxLease: time.Minute}}, 0)
	durable := func(effects []Effect) bool {
		t.Helper()
		for _, e := range effects {
			if g, ok := e.Body.(*subjects.Grant); ok {
				return g.Durable
			}
		}
		t.Fatalf("no grant: %+v", effects)
		return false
	}
	static := subjects.Request{Op: subjects.OpAcquire, Name: "static", Kind: subjects.Static, TTL: 30 * time.Second, Has: subjects.HasTTL}
	renew := subjects.Request{Op: subjects.OpRenew, Name: "static", Key: 7}
	if !durable(s.ask("", static)) || !durable(s.ask("", renew)) || !durable(s.ask("s", subjects.Request{Op: subjects.OpAcquire, Name: "a"})) {
		t.Fatal("a lease of 30 s, or 10 s, is not durable where a recovery waits for a minute")
	}
	s.SetMaxLease(5 * time.Second)
	if durable(s.ask("", renew)) || durable(s.ask("s", subjects.Request{Op: subjects.OpAcquire, Name: "b"})) {
		t.Fatal("a lease of 30 s, or 10 s, is durable where a recovery waits for 5 s")
	}
	s.SetMaxLease(10 * time.Minute)
	if !durable(s.ask("", renew)) {
		t.Fatal("a lease of 30 s is not durable where a recovery waits for 10 min")
	}
}

// In a recovery an answer may extend a trust, and never begins one: a grant that its client has not heard of is told when the
// recovery is over, and a renew by who has lost his trust is refused until then.
func TestARecoveryBeginsNoTrust(t *testing.T) {
	s := newSolo(t, Config{}, 0)
	acquire := subjects.Request{Op: subjects.OpAcquire, Name: "n", Kind: subjects.Static, TTL: time.Minute, Has: subjects.HasTTL, RequestID: "once"}
	s.ask("", acquire)
	s.Demote()
	end := s.now.Boot + int64(20*time.Second)
	if err := s.Promote(s.now, Term{Epoch: 2, Term: 9}, end, &s.out); err != nil {
		t.Fatal(err)
	}
	granted := func(req subjects.Request) bool {
		t.Helper()
		effects := s.ask("", req)
		for _, e := range effects {
			switch body := e.Body.(type) {
			case *subjects.Grant:
				return true
			case *subjects.Refusal:
				if body.Why != subjects.WhyRecovery || body.RetryAfter <= 0 {
					t.Fatalf("refused as %+v", body)
				}
				return false
			}
		}
		t.Fatalf("no answer: %+v", effects)
		return false
	}
	renew := subjects.Request{Op: subjects.OpRenew, Name: "n", Key: 7}
	trusted := renew
	trusted.Trusted = true
	if granted(acquire) || granted(renew) || !granted(trusted) {
		t.Fatal("in the recovery a repeated acquire or a renew is granted, or one by who trusts is not")
	}
	trusted.RequestID = "again"
	repeated := trusted
	repeated.Trusted = false
	for range 2 {
		if !granted(trusted) {
			t.Fatal("in the recovery a repeated renew by who trusts is refused")
		}
	}
	if granted(repeated) {
		t.Fatal("in the recovery a repeated renew by who does not trust any more is granted")
	}
	s.now.Boot = end
	s.feed(&Input{Kind: Tick})
	if !granted(acquire) || !granted(renew) {
		t.Fatal("after the recovery a repeated acquire or a renew is refused")
	}
}

// Who renews, or repeats the acquire, through a recovery that takes longer than the time limit is refused, and has the lock after it.
func TestAskingThroughARecoveryKeepsTheHold(t *testing.T) {
	for _, op := range []subjects.Op{subjects.OpRenew, subjects.OpAcquire} {
		s := newSolo(t, Config{}, 0)
		ask := subjects.Request{Op: subjects.OpAcquire, Name: "n", Kind: subjects.Static, TTL: 10 * time.Second, Has: subjects.HasTTL, RequestID: "once"}
		s.ask("", ask)
		s.Demote()
		end := s.now.Boot + int64(25*time.Second)
		if err := s.Promote(s.now, Term{Epoch: 2, Term: 9}, end, &s.out); err != nil {
			t.Fatal(err)
		}
		if op == subjects.OpRenew {
			ask = subjects.Request{Op: op, Name: "n", Key: 7}
		}
		for range 5 {
			for range 6 {
				s.now.Boot += int64(time.Second)
				s.feed(&Input{Kind: Tick})
			}
			effects := s.ask("", ask)
			_, granted := effects[len(effects)-1].Body.(*subjects.Grant)
			if granted != (s.now.Boot >= end) {
				t.Fatalf("%v: %v before the end of the recovery: %+v", op, time.Duration(end-s.now.Boot), effects)
			}
		}
	}
}
