package conf

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"
)

func openAuth(t *testing.T, dir string) *Auth {
	t.Helper()
	a, err := OpenAuth(dir)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestAuthIsKept(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "data")
	a := openAuth(t, dir)
	if err := a.EnsureZone("orders"); err != nil {
		t.Fatal(err)
	}
	_, key, err := a.IssueUser("orders", "alice", RoleUser, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]fs.FileMode{a.File(): 0o600, dir: 0o700} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: mode %v, %v", path, info.Mode(), err)
		}
	}

	b := openAuth(t, dir)
	if !bytes.Equal(a.Secret(), b.Secret()) || len(a.Secret()) != SecretLen {
		t.Error("another secret")
	}
	idA, err1 := a.AccountID("orders")
	idB, err2 := b.AccountID("orders")
	if idA != idB || errors.Join(err1, err2) != nil {
		t.Errorf("account %s and %s: %v", idA, idB, errors.Join(err1, err2))
	}
	users, err := b.Users("orders")
	if err != nil || len(users) != 1 || users[0].Key != key || users[0].Name != "alice" || users[0].Role != RoleUser || users[0].Zone != "orders" {
		t.Errorf("users %+v, %v", users, err)
	}
	if d := users[0].Expires.Sub(users[0].Issued); d != time.Hour {
		t.Errorf("expires after %s", d)
	}
	if entries, err := os.ReadDir(dir); len(entries) != 1 || err != nil {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

func TestAuthInMemory(t *testing.T) {
	a, err := NewAuth()
	if err != nil {
		t.Fatal(err)
	}
	b, err := NewAuth()
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(a.Secret(), b.Secret()) {
		t.Error("two have one secret")
	}
	if err := errors.Join(a.EnsureZone("z"), a.EnsureZone("z"), a.Reload()); err != nil {
		t.Error(err)
	}
	if got := a.Zones(); !slices.Equal(got, []string{"z"}) || a.File() != "" {
		t.Errorf("zones %v, file %q", got, a.File())
	}
}

// What one process changes, another does not undo, and learns by Reload.
func TestTwoProcessesChangeTheFile(t *testing.T) {
	dir := t.TempDir()
	daemon, config := openAuth(t, dir), openAuth(t, dir)
	if err := daemon.EnsureZone("orders"); err != nil {
		t.Fatal(err)
	}
	_, key, err := config.IssueUser("orders", "alice", RoleUser, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := daemon.EnsureZone("other"); err != nil {
		t.Fatal(err)
	}
	if users, err := daemon.Users("orders"); len(users) != 1 || err != nil {
		t.Errorf("after a change of its own the daemon knows %v, %v", users, err)
	}
	if _, err := config.RevokeUser("orders", key); err != nil {
		t.Fatal(err)
	}
	if err := daemon.Reload(); err != nil {
		t.Fatal(err)
	}
	if users, err := daemon.Users("orders"); err != nil || users[0].Status(time.Now()) != "revoked" {
		t.Errorf("after Reload: %+v, %v", users, err)
	}
}

func TestManyChangesAtOnce(t *testing.T) {
	dir := t.TempDir()
	if err := openAuth(t, dir).EnsureZone("z"); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range 8 {
		a := openAuth(t, dir)
		wg.Go(func() {
			for j := range 5 {
				if _, _, err := a.IssueUser("z", fmt.Sprintf("u%d-%d", i, j), RoleUser, 0); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if users, err := openAuth(t, dir).Users("z"); len(users) != 40 || err != nil {
		t.Errorf("%d users, %v", len(users), err)
	}
}

func TestManyOpenAtOnce(t *testing.T) {
	dir := t.TempDir()
	var secrets [8][]byte
	var wg sync.WaitGroup
	for i := range secrets {
		wg.Go(func() {
			a, err := OpenAuth(dir)
			if err != nil {
				t.Error(err)
				return
			}
			secrets[i] = a.Secret()
		})
	}
	wg.Wait()
	for _, s := range secrets {
		if !bytes.Equal(s, secrets[0]) {
			t.Error("not all have the same keys")
		}
	}
}

func TestAnAuthFileThatOthersReadIsRefused(t *testing.T) {
	a := openAuth(t, t.TempDir())
	for _, mode := range []fs.FileMode{0o640, 0o604, 0o644, 0o660} {
		if err := os.Chmod(a.File(), mode); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenAuth(a.dir); !errors.Is(err, ErrUnsafeFile) || !strings.Contains(err.Error(), "chmod 600") {
			t.Errorf("%04o: got %v", mode, err)
		}
	}
}

func TestADamagedAuthFileIsRefusedAndKept(t *testing.T) {
	a := openAuth(t, t.TempDir())
	if err := a.EnsureZone("z"); err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile(a.File())
	if err != nil {
		t.Fatal(err)
	}
	account := a.current().Zones["z"].Account
	for name, bad := range map[string][]byte{
		"empty": nil, "half": good[:len(good)/2], "no JSON": []byte("x"), "other version": bytes.Replace(good, []byte(`"version": 1`), []byte(`"version": 2`), 1),
		"no operator":  bytes.Replace(good, []byte(`"operator"`), []byte(`"x"`), 1),
		"wrong key":    bytes.Replace(good, []byte(a.current().System), []byte(a.current().Operator), 1),
		"broken key":   bytes.Replace(good, []byte(account), []byte(account[:20]), 1),
		"short secret": bytes.Replace(good, []byte(`"secret": "`), []byte(`"secret": "", "x": "`), 1),
		"bad zone":     bytes.Replace(good, []byte(`"z": {`), []byte(`"z.*": {`), 1),
		"null zone":    bytes.Replace(good, []byte(`"z": {`), []byte(`"y": null, "z": {`), 1),
	} {
		if err := os.WriteFile(a.File(), bad, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, err := range []error{a.Reload(), a.EnsureZone("other")} {
			if err == nil || strings.Contains(err.Error(), account[:20]) {
				t.Errorf("%s: got %v", name, err)
			}
		}
		if _, err := OpenAuth(a.dir); err == nil {
			t.Errorf("%s: opened", name)
		}
		if now, err := os.ReadFile(a.File()); !bytes.Equal(now, bad) || err != nil {
			t.Errorf("%s: the file was changed (%v)", name, err)
		}
	}
	if id, err := a.AccountID("z"); err != nil || id == "" { // what was read before still counts
		t.Errorf("got %q, %v", id, err)
	}
}

func TestReloadOfAnotherOperator(t *testing.T) {
	a, other := openAuth(t, t.TempDir()), openAuth(t, t.TempDir())
	content, err := os.ReadFile(other.File())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(a.File(), content, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := a.Reload(); err == nil || !strings.Contains(err.Error(), "restart") {
		t.Errorf("got %v", err)
	}
}

func TestIssueUser(t *testing.T) {
	a, err := NewAuth()
	if err != nil {
		t.Fatal(err)
	}
	if err := a.EnsureZone("z"); err != nil {
		t.Fatal(err)
	}
	creds, key, err := a.IssueUser("z", "alice", RoleUser, 0)
	if err != nil {
		t.Fatal(err)
	}
	token, err := jwt.ParseDecoratedJWT(creds)
	if err != nil {
		t.Fatal(err)
	}
	claims, err := jwt.DecodeUserClaims(token)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := jwt.ParseDecoratedUserNKey(creds)
	if err != nil {
		t.Fatal(err)
	}
	if pub, err := pair.PublicKey(); pub != key || err != nil || claims.Subject != key || claims.Name != "alice" || claims.Expires != 0 {
		t.Errorf("key %s, claims %+v", key, claims)
	}
	if !claims.HasEmptyPermissions() {
		t.Error("the credentials hold permissions; they belong into the scope of the signing key")
	}
	if account, err := a.AccountID("z"); claims.IssuerAccount != account || claims.Issuer == account || err != nil {
		t.Errorf("issued by %s of %s", claims.Issuer, claims.IssuerAccount)
	}
	for _, c := range []struct {
		zone, name string
		role       Role
		ttl        time.Duration
		is         error
	}{
		{"nowhere", "alice", RoleUser, 0, ErrNotFound}, {"z", "*", RoleUser, 0, nil}, {"z", "anyone", RoleUser, 0, nil},
		{"z", "alice", "root", 0, nil}, {"z", "alice", "", 0, nil}, {"z", "alice", RoleUser, time.Millisecond, nil}, {"z", "alice", RoleUser, -time.Hour, nil},
	} {
		if _, _, err := a.IssueUser(c.zone, c.name, c.role, c.ttl); err == nil || c.is != nil && !errors.Is(err, c.is) {
			t.Errorf("%+v: got %v", c, err)
		}
	}
}

func TestUsersAreLimited(t *testing.T) {
	a, err := NewAuth()
	if err != nil {
		t.Fatal(err)
	}
	past := time.Now().Add(-time.Hour)
	err = a.change(func(s *authState) error {
		if err := s.ensureZone("z"); err != nil {
			return err
		}
		s.Zones["z"].Users = slices.Repeat([]User{{Name: "x", Expires: past}}, MaxUsers)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := a.IssueUser("z", "alice", RoleUser, 0); err != nil { // the expired ones make room
		t.Fatal(err)
	}
	err = a.change(func(s *authState) error {
		s.Zones["z"].Users = slices.Repeat([]User{{Name: "x", Revoked: past}}, MaxUsers)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := a.IssueUser("z", "alice", RoleUser, 0); !errors.Is(err, ErrTooMany) {
		t.Errorf("got %v", err)
	}
	if token, err := a.AccountJWT(Zone{Name: "z"}); err != nil || len(token) > 1<<20 {
		t.Errorf("an account with that many is %d bytes, %v", len(token), err)
	}
}

func TestRevokeUser(t *testing.T) {
	a, err := NewAuth()
	if err != nil {
		t.Fatal(err)
	}
	if err := a.EnsureZone("z"); err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, name := range []string{"alice", "alice", "bob"} {
		_, key, err := a.IssueUser("z", name, RoleUser, 0)
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, key)
	}
	if got, err := a.RevokeUser("z", "alice"); len(got) != 2 || err != nil {
		t.Errorf("got %v, %v", got, err)
	}
	if got, err := a.RevokeUser("z", keys[2]); len(got) != 1 || err != nil || got[0].Name != "bob" {
		t.Errorf("got %v, %v", got, err)
	}
	for _, again := range []string{"alice", keys[0], "carol", "", "*", strings.Repeat("U", 56)} {
		if _, err := a.RevokeUser("z", again); !errors.Is(err, ErrNotFound) {
			t.Errorf("%q: got %v", again, err)
		}
	}
	if _, err := a.RevokeUser("nowhere", "alice"); !errors.Is(err, ErrNotFound) {
		t.Errorf("got %v", err)
	}
	seed, err := newSeed(nkeys.PrefixByteUser)
	if err != nil {
		t.Fatal(err)
	}
	lost, err := publicKey(seed) // issued, but not in the list: from a backup that was put back
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.RevokeUser("z", lost); err != nil {
		t.Error(err)
	}

	token, err := a.AccountJWT(Zone{Name: "z"})
	if err != nil {
		t.Fatal(err)
	}
	claims, err := jwt.DecodeAccountClaims(token)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range append(keys, lost) {
		if !claims.Revocations.IsRevoked(key, time.Now().Add(-time.Minute)) {
			t.Errorf("%s is not revoked in the account", key)
		}
	}
}

func TestRemoveZone(t *testing.T) {
	a, err := NewAuth()
	if err != nil {
		t.Fatal(err)
	}
	if err := a.RemoveZone("z"); !errors.Is(err, ErrNotFound) {
		t.Errorf("got %v", err)
	}
	if err := a.EnsureZone("z"); err != nil {
		t.Fatal(err)
	}
	before, err := a.AccountID("z")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(a.RemoveZone("z"), a.EnsureZone("z")); err != nil {
		t.Fatal(err)
	}
	if after, err := a.AccountID("z"); before == after || err != nil {
		t.Errorf("the account is %s again, %v", after, err)
	}
	for _, name := range []string{"", "*", "SYS", "a.b"} {
		if err := a.EnsureZone(name); err == nil {
			t.Errorf("zone %q has keys", name)
		}
	}
}

// The permissions of each kind of user, as NATS gets them: whoever changes them sees here what that means.
func TestPermissions(t *testing.T) {
	yes := true
	for _, c := range []struct {
		zone     Zone
		role     Role
		token    string
		pub, sub string
	}{
		{Zone{}, RoleViewer, "U", viewerPub, userSub},
		{Zone{}, RoleUser, "U", viewerPub + userPub, userSub},
		{Zone{}, RoleAdmin, "U", viewerPub + userPub + adminPub, userSub},
		{Zone{SharedInboxes: true}, RoleViewer, "U", viewerPub, strings.Replace(userSub, "_INBOX.U.>", "_INBOX.>", 1)},
		{Zone{Unnamed: &yes}, RoleViewer, "U", viewerPub + viewerUnnamed, userSub + " _INBOX.anyone.>"},
		{Zone{Unnamed: &yes}, RoleAdmin, "U", viewerPub + userPub + adminPub + viewerUnnamed + userUnnamed, userSub + " _INBOX.anyone.>"},
		{Zone{Open: true}, RoleViewer, "anyone", strings.ReplaceAll(viewerPub, ".U ", ".anyone ") + viewerUnnamed,
			strings.Replace(strings.Replace(userSub, "_INBOX.U.>", "_INBOX.>", 1), ".U.", ".anyone.", 1)},
	} {
		p := c.zone.permissions(c.role, c.token)
		got, want := slices.Sorted(slices.Values(p.Pub.Allow)), slices.Sorted(strings.FieldsSeq(c.pub+common))
		if !slices.Equal(got, want) {
			t.Errorf("%+v %s may publish\n%s\nwant\n%s", c.zone, c.role, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		if got, want := slices.Sorted(slices.Values(p.Sub.Allow)), slices.Sorted(strings.FieldsSeq(c.sub)); !slices.Equal(got, want) {
			t.Errorf("%+v %s may subscribe to %v, want %v", c.zone, c.role, got, want)
		}
		if p.Resp != nil || len(p.Pub.Deny) != 0 || len(p.Sub.Deny) != 0 || p.BearerToken {
			t.Errorf("%+v %s: %+v", c.zone, c.role, p)
		}
	}
}

const (
	viewerPub = `locks.query.U locks.list.U locks.check.U locks.info.U locks.servers.U locks.ping.U locks.cluster.U locks.b.*.query.U locks.b.*.check.U `
	userPub   = `locks.acquire.U locks.release.U locks.renew.U locks.cancel.U locks.reclaim.U locks.session-open.U locks.session-close.U
		locks.keep.U locks.keep.*.U locks.b.*.acquire.U locks.b.*.release.U locks.b.*.renew.U locks.b.*.cancel.U locks.b.*.reclaim.U locks.b.*.session-close.U `
	adminPub      = `locks.force.U locks.b.*.force.U `
	viewerUnnamed = `locks.query locks.list locks.check locks.info locks.servers locks.ping locks.cluster `
	userUnnamed   = `locks.acquire locks.release locks.renew locks.cancel locks.reclaim locks.session-open locks.session-close `
	common        = `$SYS.REQ.USER.INFO $SRV.PING $SRV.PING.oclocks $SRV.PING.oclocks.* $SRV.INFO $SRV.INFO.oclocks $SRV.INFO.oclocks.*
		$SRV.STATS $SRV.STATS.oclocks $SRV.STATS.oclocks.*`
	userSub = `_INBOX.U.> locks.event.server.> locks.event.cluster.> locks.event.lock.> locks.event.session.U.>`
)

func TestTheFileHoldsWhatItSays(t *testing.T) {
	a := openAuth(t, t.TempDir())
	if err := a.EnsureZone("z"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := a.IssueUser("z", "alice", RoleUser, 0); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(a.File())
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(content, []byte(`"SU`)) {
		t.Error("it keeps the seed of a user")
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(content, &fields); err != nil || len(fields) != 7 {
		t.Errorf("got %v, %v", fields, err)
	}
}
