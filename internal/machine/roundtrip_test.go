package machine

import (
	"testing"
	"time"

	"github.com/opencluster/oclocks/subjects"
)

// A request is repeated when answers are overdue by what they took so far, and not before the caller's timeout while that is
// not known.
func TestPatienceFollowsTheRoundTrip(t *testing.T) {
	for name, c := range map[string]struct {
		took []time.Duration
		want time.Duration
	}{
		"nothing known":        {nil, 2 * time.Second},
		"near":                 {[]time.Duration{100 * time.Microsecond, 120 * time.Microsecond}, 200 * time.Millisecond},
		"far":                  {[]time.Duration{300 * time.Millisecond}, 900 * time.Millisecond},
		"overloaded":           {[]time.Duration{3 * time.Second}, 2 * time.Second},
		"far, and always so":   {repeat(300*time.Millisecond, 100), 300 * time.Millisecond},
		"overloaded no longer": {append(repeat(time.Second, 10), repeat(time.Millisecond, 100)...), 200 * time.Millisecond},
	} {
		var r roundTrip
		for _, d := range c.took {
			r.sample(int64(d))
		}
		if got := time.Duration(r.patience(int64(2 * time.Second))); got < c.want-time.Millisecond || got > c.want+time.Millisecond {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func repeat(d time.Duration, n int) []time.Duration {
	list := make([]time.Duration, n)
	for i := range list {
		list[i] = d
	}
	return list
}

// What was swallowed is repeated soon; a request without an id still waits for the whole timeout, since it is not repeated.
func TestSwallowedRequestIsRepeatedSoon(t *testing.T) {
	s := newScript(t)
	s.begin("a")
	s.acquire("c", func(c *Call) { c.Endless = false })
	s.acquire("d", nil)
	once := &Call{Raw: true, Req: &subjects.Request{Op: subjects.OpRelease, Name: "g", Key: 1}}
	s.do(func(now int64) { must(t, s.m.Submit(now, once)) })
	s.sent = nil
	s.pass(450 * time.Millisecond)
	asked := map[string]int{}
	for _, msg := range s.sent {
		asked[msg.req.Name]++
	}
	if asked["c"] == 0 || asked["d"] == 0 || asked["g"] != 0 || once.state == finished {
		t.Errorf("asked %v", asked)
	}
}

// A repeated request with a wait of the caller's own waits for what is left of it.
func TestRepeatedWaitIsNotLonger(t *testing.T) {
	s := newScript(t)
	c := &Call{Raw: true, Req: &subjects.Request{Op: subjects.OpAcquire, Name: "a", RequestID: "x", Wait: 3 * time.Second,
		Has: subjects.HasWait | subjects.HasRequest}}
	s.do(func(now int64) { must(t, s.m.Submit(now, c)) })
	began := s.now
	for range 10 {
		s.pass(time.Second)
		for _, msg := range s.sent {
			if left := 3*time.Second - time.Duration(s.now-began); msg.req.Wait > max(left, 0)+time.Second {
				t.Errorf("%v later it waits for %v", time.Duration(s.now-began), msg.req.Wait)
			}
		}
		s.sent = nil
	}
}
