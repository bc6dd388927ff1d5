package edge

import (
	"strings"
	"testing"
	"time"
)

// A keep-alive promises no more than the longest lease of now, also with a token that was verified when that was longer.
func TestNoLeaseIsLongerThanTheLongest(t *testing.T) {
	s := NewSessions([]byte(strings.Repeat("k", 32)), "z")
	token, _, err := s.tokens.mint("U", testSession()) // a lease of 1.5 s
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ longest, want time.Duration }{
		{time.Minute, 1500 * time.Millisecond}, {time.Second, time.Second}, {time.Minute, 1500 * time.Millisecond},
	} {
		got, err := s.Verify("U", token, c.longest)
		if err != nil || got.Lease != c.want {
			t.Errorf("with at most %s the lease is %s, want %s (%v)", c.longest, got.Lease, c.want, err)
		}
	}
}
