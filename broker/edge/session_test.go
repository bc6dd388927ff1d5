package edge

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/opencluster/oclocks/bucket"
	"github.com/opencluster/oclocks/subjects"
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

// No two openings of one session are alike, also where two nodes give one number: a table tells them apart by the connection, or by
// random bits where none was named. The end of another's connection, or of none, is nothing to a session that names none.
func TestOpeningsOfOneSessionAreTold(t *testing.T) {
	key := []byte(strings.Repeat("k", 32))
	leases := Leases{Default: time.Second, Max: time.Second}
	serial := byte(0)
	open := func(wall int64, req subjects.Request) (bucket.Session, string) {
		serial++
		node := NewSessions(key, "z") // another one, which has opened none before
		opened, refusal, err := node.Open(wall, NewID([SessionRawLen]byte{7: serial}), "U", &req, leases)
		if err != nil || refusal != nil {
			t.Fatal(refusal, err)
		}
		session, err := node.Verify("U", opened.Session, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		return session, opened.Secret
	}
	first, secret := open(1000, subjects.Request{})
	seen := map[bucket.Session]bool{first: true}
	for i := range uint64(2) {
		for _, named := range []subjects.Request{{}, {Server: "NSERVER"}, {Server: "NSERVER", CID: 42 + i}} {
			named.Secret = secret
			s, _ := open(990, named) // its clock is behind
			if s.ID != first.ID || s.Incarnation != first.Incarnation+1 || seen[s] {
				t.Errorf("opened as %+v after %v", s, seen)
			}
			if known := named.CID != 0; known != (s.Conn.Server != "") {
				t.Errorf("connection %+v of %+v", s.Conn, named)
			}
			seen[s] = true
		}
	}
	for _, id := range []string{"", "short", "AAECAwQFBg=", NewID([SessionRawLen]byte{}) + "A"} {
		if _, _, err := NewSessions(key, "z").Open(1, id, "U", &subjects.Request{Secret: secret}, leases); !errors.Is(err, ErrSessionID) {
			t.Errorf("id %q: %v", id, err)
		}
	}
}
