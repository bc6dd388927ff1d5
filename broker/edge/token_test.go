package edge

import (
	"strings"
	"testing"
	"time"

	"github.com/opencluster/oclocks/bucket"
	"github.com/opencluster/oclocks/subjects"
)

func testSession() bucket.Session {
	return bucket.Session{ID: "AAECAwQFBgc", Incarnation: 7, Lease: 1500 * time.Millisecond, Conn: ConnOf("NSERVER", 42)}
}

func TestSessionTokenRoundTrip(t *testing.T) {
	secret := []byte(strings.Repeat("k", 32))
	tok := newTokens(secret, "payments")
	for _, s := range []bucket.Session{testSession(), {ID: "AAECAwQFBgc", Incarnation: 1, Lease: time.Minute, Conn: bucket.Conn{CID: 1 << 63}}} {
		token, back, err := tok.mint("UALICE", s)
		if err != nil {
			t.Fatal(err)
		}
		if !subjects.ValidToken(token) || !strings.HasPrefix(token, s.ID) {
			t.Errorf("token %q is not one NATS token that begins with the id", token)
		}
		got, err := newTokens(secret, "payments").verify("UALICE", token)
		if err != nil || got != s {
			t.Errorf("verify = %+v, %v; want %+v", got, err, s)
		}
		id, incarnation, err := tok.comeBack("UALICE", back)
		if err != nil || id != s.ID || incarnation != s.Incarnation {
			t.Errorf("comeBack = %q, %d, %v", id, incarnation, err)
		}
	}
}

// Every token but the one that was made, for its user, in its zone, in its cluster, is refused.
func TestSessionTokenForgeries(t *testing.T) {
	tok := newTokens([]byte(strings.Repeat("k", 32)), "payments")
	token, secret, err := tok.mint("UALICE", testSession())
	if err != nil {
		t.Fatal(err)
	}
	type attempt struct {
		tok         *tokens
		user, token string
	}
	attempts := []attempt{
		{tok, "UBOB", token},
		{newTokens([]byte(strings.Repeat("k", 32)), "billing"), "UALICE", token},
		{newTokens([]byte(strings.Repeat("x", 32)), "payments"), "UALICE", token},
		{tok, "UALICE", secret},
		{tok, "UALICE", ""},
		{tok, "UALICE", token[:subjects.SessionIDLen]},
		{tok, "UALICE", token + "A"},
		{tok, "UALICE", token + "\n"},
	}
	for i := range token {
		flipped := []byte(token)
		if flipped[i] == 'A' {
			flipped[i] = 'B'
		} else {
			flipped[i] = 'A'
		}
		attempts = append(attempts, attempt{tok, "UALICE", string(flipped)})
	}
	for _, a := range attempts {
		if s, err := a.tok.verify(a.user, a.token); err == nil {
			t.Errorf("user %s, token %q: accepted as %+v", a.user, a.token, s)
		}
		if _, _, err := a.tok.comeBack(a.user, a.token); err == nil && a.token != secret {
			t.Errorf("user %s, %q: accepted as a secret", a.user, a.token)
		}
	}
}
