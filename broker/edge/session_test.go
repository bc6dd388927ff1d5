package edge

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/opencluster/oclocks/bucket"
	"github.com/opencluster/oclocks/subjects"
)

// A keep-alive and a grant promise no more than the longest lease of now, also with a token that was verified when that was longer; and a
// table keeps the hold for as long as either says, whatever the longest lease was when the table first heard of the session.
func TestNoLeaseIsLongerThanTheLongest(t *testing.T) {
	const own = 1500 * time.Millisecond // the token's
	secret := []byte(strings.Repeat("k", 32))
	s := NewSessions(secret, "z")
	token, _, err := s.tokens.mint("U", testSession())
	if err != nil {
		t.Fatal(err)
	}
	for _, first := range []time.Duration{time.Second, own, time.Minute} {
		for _, then := range []time.Duration{time.Second, own, time.Minute} {
			now, table, out := bucket.Now{}, bucket.New(bucket.Config{}), bucket.Output{}
			if err := table.Promote(now, bucket.Term{Epoch: 1, Term: 1}, 0, &out); err != nil {
				t.Fatal(err)
			}
			session, err := s.Verify("U", token)
			if err != nil {
				t.Fatal(err)
			}
			req := &subjects.Request{Op: subjects.OpAcquire, Name: "n", Session: token, Number: 1, Mode: subjects.Exclusive, Take: 1}
			table.Step(now, &bucket.Input{Kind: bucket.Request, Zone: "z", User: "U", Reply: "r", Session: session, Req: req, Key: 1}, &out)
			grant, ok := out.Effects[len(out.Effects)-1].Body.(*subjects.Grant)
			if !ok {
				t.Fatalf("not granted: %+v", out.Effects)
			}
			NewReceipts(secret).Complete("z", "N", first, grant)
			if grant.Lease != min(own, first) {
				t.Errorf("with at most %s the grant says %s", first, grant.Lease)
			}
			now.Boot += int64(grant.Lease / 2)
			session, _ = s.Verify("U", token)
			if _, _, known, refusal := table.Keep(now, "z", session, 1); !known || refusal != nil {
				t.Fatalf("kept: %t, %v", known, refusal)
			}
			promised := Promise(&session, then)
			if promised != min(own, then) {
				t.Errorf("with at most %s the keep-alive says %s", then, promised)
			}
			now.Boot += int64(promised) - 1
			for table.Next() <= now.Boot {
				table.Step(now, &bucket.Input{Kind: bucket.Tick}, &out)
			}
			if table.Usage("z").Holds != 1 {
				t.Errorf("first heard of with at most %s: the hold is over before the %s that a keep-alive has promised", first, promised)
			}
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
		session, err := node.Verify("U", opened.Session)
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
