package machine

import (
	"testing"
	"time"

	"github.com/opencluster/oclocks/subjects"
)

// inStep has the keep-alives of all clients begin at the same moments, as far as their clocks agree.
func (w *world) inStep(yes bool) {
	for _, c := range w.clients {
		c.m.cfg.InStep = yes
	}
}

// beatsIn lets a time pass and gives when rounds began; each keep-alive is answered with a token.
func (s *script) beatsIn(d time.Duration, token uint64) (at []int64) {
	s.t.Helper()
	for end := s.now + int64(d); s.now < end; {
		s.pass(100 * time.Millisecond)
		for len(s.sent) > 0 {
			s.kept(s.next(subjects.OpKeep), token)
			at = append(at, s.now)
		}
	}
	return at
}

// Whenever sessions in step begin, their rounds come at the same moments, half a lease apart, and the first one not before a quarter of the
// lease is over. One that is not in step, or has another phase, keeps its own time.
func TestRoundsInStep(t *testing.T) {
	const phase = int64(time.Hour) - int64(700*time.Millisecond)
	for _, late := range []time.Duration{0, 100 * time.Millisecond, 3 * time.Second, 7900 * time.Millisecond} {
		for _, inStep := range []bool{true, false} {
			s := newScript(t)
			s.m.cfg.InStep, s.m.cfg.Phase = inStep, phase
			s.now += int64(late)
			begun := s.now
			h := s.acquire("a", nil)
			s.opened(1)
			s.grant(s.next(subjects.OpAcquire), 10, nil)
			s.state(h, Held)
			at := s.beatsIn(2*scriptLease, 10)
			if len(at) < 3 {
				t.Fatalf("%d keep-alives in two leases", len(at))
			}
			for i, then := range at {
				if i > 0 && then-at[i-1] != int64(scriptLease/2) {
					t.Errorf("late by %v, in step %v: rounds are %v apart", late, inStep, time.Duration(then-at[i-1]))
				}
				if inStep && (then-phase)%int64(scriptLease/stepsOfLease) != 0 {
					t.Errorf("late by %v: a round begins %v after a moment", late, time.Duration((then-phase)%int64(scriptLease/stepsOfLease)))
				}
			}
			first := time.Duration(at[0] - begun)
			if first > scriptLease/2 || first <= scriptLease/4 || !inStep && first != scriptLease/2 {
				t.Errorf("late by %v, in step %v: the first round begins after %v", late, inStep, first)
			}
		}
	}
}
