package conf

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nkeys"
)

func TestWhatIsInAJoinToken(t *testing.T) {
	a, err := NewAuth()
	if err != nil {
		t.Fatal(err)
	}
	urls := []string{"nats://10.0.0.1:4222", "tls://[::1]:4222"}
	text, err := NewJoinToken(a, urls, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	token, err := ParseJoinToken("\n " + text + " \n")
	if err != nil {
		t.Fatal(err)
	}
	if key, err := a.CurveKey(); err != nil || token.Key != key {
		t.Errorf("the cluster's key: %v", err)
	}
	if left := time.Until(token.Expires()); left > time.Hour || left < time.Hour-time.Minute {
		t.Errorf("expires in %s", left)
	}
	if err := token.CheckExpiry(time.Now()); err != nil {
		t.Error(err)
	}
	if err := token.CheckExpiry(token.Expires()); !errors.Is(err, ErrExpired) {
		t.Errorf("got %v", err)
	}
	allowed := token.claims.Permissions
	if len(allowed.Pub.Allow) != 1 || allowed.Pub.Allow[0] != "enroll" || len(allowed.Sub.Allow) != 1 || allowed.Sub.Allow[0] != "_INBOX."+token.ID()+".>" || allowed.Resp != nil {
		t.Errorf("permissions: %+v", allowed)
	}

	message := []byte("hello")
	sig, err := token.Credentials().Pair.Sign(message)
	if err != nil {
		t.Fatal(err)
	}
	if id, expires, err := a.CheckJoinToken(token.JWT, message, sig, time.Now()); err != nil || id != token.ID() || !expires.Equal(token.Expires()) {
		t.Errorf("got %s, %s, %v", id, expires, err)
	}
	other, err := NewAuth()
	if err != nil {
		t.Fatal(err)
	}
	daemon, err := a.NodesUser() // a daemon's own user is no join token
	if err != nil {
		t.Fatal(err)
	}
	daemonSig, err := daemon.Pair.Sign(message)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		auth    *Auth
		jwt     string
		message string
		sig     []byte
		at      time.Time
		want    error
	}{
		"another cluster":  {other, token.JWT, "hello", sig, time.Now(), ErrToken},
		"another message":  {a, token.JWT, "hullo", sig, time.Now(), ErrToken},
		"no signature":     {a, token.JWT, "hello", nil, time.Now(), ErrToken},
		"a daemon's user":  {a, daemon.JWT, "hello", daemonSig, time.Now(), ErrToken},
		"no JWT":           {a, "x", "hello", sig, time.Now(), ErrToken},
		"its time is over": {a, token.JWT, "hello", sig, token.Expires(), ErrExpired},
	} {
		if _, _, err := c.auth.CheckJoinToken(c.jwt, []byte(c.message), c.sig, c.at); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestJoinTokensThatAreNotMade(t *testing.T) {
	a, err := NewAuth()
	if err != nil {
		t.Fatal(err)
	}
	good := []string{"nats://10.0.0.1:4222"}
	for name, c := range map[string]struct {
		urls []string
		life time.Duration
	}{
		"too short": {good, time.Second}, "too long": {good, 8 * 24 * time.Hour}, "no address": {nil, time.Hour},
		"all addresses": {[]string{"nats://0.0.0.0:4222"}, time.Hour}, "http": {[]string{"http://a:1"}, time.Hour},
		"with a password": {[]string{"nats://a:b@c:1"}, time.Hour}, "no host": {[]string{"nats://:4222"}, time.Hour},
		"too many": {make([]string, 33), time.Hour},
	} {
		if _, err := NewJoinToken(a, c.urls, c.life); err == nil {
			t.Errorf("%s: is made", name)
		}
	}
}

// A file of an earlier version has no curve key, and gets one that stays.
func TestTheCurveKeyOfAnOlderFile(t *testing.T) {
	dir := t.TempDir()
	a := openAuth(t, dir)
	if err := a.change(func(s *authState) error { s.Curve = ""; return nil }); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(a.File())
	if err != nil || strings.Contains(string(content), "curve") {
		t.Fatalf("the file is not an older one: %v", err)
	}
	old := openAuth(t, dir)
	key, err := old.CurveKey()
	if err != nil {
		t.Fatal(err)
	}
	if again, err := openAuth(t, dir).CurveKey(); err != nil || again != key {
		t.Errorf("got %s, %v, want %s", again, err, key)
	}
	if err := a.Reload(); err != nil { // who has not seen it before takes it
		t.Error(err)
	}
	pair, err := nkeys.CreateCurveKeys()
	if err != nil {
		t.Fatal(err)
	}
	public, err := pair.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := old.Seal([]byte("x"), public)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := pair.Open(sealed, key); err != nil || string(got) != "x" {
		t.Errorf("got %q, %v", got, err)
	}
	back, err := pair.Seal([]byte("y"), key)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := a.Open(back, public); err != nil || string(got) != "y" {
		t.Errorf("got %q, %v", got, err)
	}
}

// Whatever is missing of what Enter writes, the directory belongs to no cluster, and Enter can be tried again.
func TestEnterThatIsCutShort(t *testing.T) {
	a, err := NewAuth()
	if err != nil {
		t.Fatal(err)
	}
	authority, err := NewAuthority("shop")
	if err != nil {
		t.Fatal(err)
	}
	m, err := a.Membership(authority, map[string][]string{newNodeID(): {"10.0.0.1:6222"}})
	if err != nil {
		t.Fatal(err)
	}
	files := []string{"auth.json", "routes.json", "tls/node.pem", "tls/ca.pem"}
	for n := range files {
		dir := t.TempDir()
		node, err := NodeID(dir)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := m.Enter(dir, node); err != nil {
			t.Fatal(err)
		}
		for _, file := range files[n:] {
			if err := os.Remove(filepath.Join(dir, file)); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := OpenIdentity(dir, node); !errors.Is(err, ErrNotFound) {
			t.Errorf("%d files: got %v", n, err)
		}
		if _, err := m.Enter(dir, node); err != nil {
			t.Errorf("%d files, again: %v", n, err)
		}
		if _, err := OpenIdentity(dir, node); err != nil {
			t.Error(err)
		}
		if _, err := m.Enter(dir, node); !errors.Is(err, ErrExists) {
			t.Errorf("once more: %v", err)
		}
	}
	for name, bad := range map[string]Membership{
		"no keys": {Authority: m.Authority}, "no authority": {Auth: m.Auth},
		"a wrong address": {Auth: m.Auth, Authority: m.Authority, Routes: map[string][]string{newNodeID(): {"x"}}},
		"a wrong node":    {Auth: m.Auth, Authority: m.Authority, Routes: map[string][]string{"../x": {"a:1"}}},
	} {
		dir := t.TempDir()
		if _, err := bad.Enter(dir, newNodeID()); err == nil {
			t.Errorf("%s: is taken", name)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("%s: left %v, %v", name, left, err)
		}
	}
}

func TestSavedRoutes(t *testing.T) {
	dir := t.TempDir()
	if known, err := SavedRoutes(dir); err != nil || len(known) != 0 {
		t.Errorf("got %v, %v", known, err)
	}
	id := newNodeID()
	if err := SaveRoutes(dir, map[string][]string{id: {"10.0.0.1:6222"}}); err != nil {
		t.Fatal(err)
	}
	if known, err := SavedRoutes(dir); err != nil || len(known) != 1 || known[id][0] != "10.0.0.1:6222" {
		t.Errorf("got %v, %v", known, err)
	}
	for _, content := range []string{"{", `{"x":["a:1"]}`, `{"` + id + `":["a"]}`} {
		if err := os.WriteFile(filepath.Join(dir, "routes.json"), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := SavedRoutes(dir); err == nil {
			t.Errorf("%s: is taken", content)
		}
	}
}

func FuzzParseJoinToken(f *testing.F) {
	a, err := NewAuth()
	if err != nil {
		f.Fatal(err)
	}
	text, err := NewJoinToken(a, []string{"nats://10.0.0.1:4222"}, time.Hour)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add(tokenPrefix + "e30")
	f.Fuzz(func(t *testing.T, text string) {
		token, err := ParseJoinToken(text)
		if err != nil {
			if !errors.Is(err, ErrToken) {
				t.Errorf("got %v", err)
			}
			return
		}
		if token.ID() == "" || len(token.URLs) == 0 || token.Credentials().Pair == nil {
			t.Errorf("got %+v", token)
		}
	})
}
