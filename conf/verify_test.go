package conf

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// verified gives one line for each finding.
func verified(t *testing.T, s *Settings, creds ...string) string {
	t.Helper()
	var out strings.Builder
	for _, f := range Verify(t.Context(), s, creds) {
		if f.OK != (f.Fix == "") {
			t.Errorf("%s: ok %t, and to do %q", f.What, f.OK, f.Fix)
		}
		fmt.Fprintf(&out, "%t %s: %s\n", f.OK, f.What, f.Detail)
	}
	return out.String()
}

func expect(t *testing.T, got string, want ...string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(got, w) {
			t.Errorf("%q is not in\n%s", w, got)
		}
	}
}

func TestVerifyOfAFreshInstallation(t *testing.T) {
	s := Default()
	s.Listen, s.HTTP, s.Data = "127.0.0.1:0", "127.0.0.1:0", filepath.Join(t.TempDir(), "data")
	expect(t, verified(t, s), "true data "+s.Data+": does not exist yet", "true keys "+s.Data+"/auth.json: none yet", "true listen 127.0.0.1:0: free", "true http 127.0.0.1:0: free")
	if _, err := os.Stat(s.Data); err == nil {
		t.Error("Verify made the directory")
	}
	s.Data, s.HTTP = "", "off"
	if got := verified(t, s); strings.Contains(got, "http") || !strings.Contains(got, "true data: no directory") {
		t.Errorf("got\n%s", got)
	}
}

func TestVerifyOfDataAndKeys(t *testing.T) {
	s := Default()
	s.Listen, s.HTTP, s.Data = "127.0.0.1:0", "off", t.TempDir()
	s.Zones = []Zone{{Name: "orders"}}
	a := openAuth(t, s.Data)
	for _, zone := range []string{"orders", "stale"} {
		if err := a.EnsureZone(zone); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := a.IssueUser("orders", "alice", RoleUser, 0); err != nil {
		t.Fatal(err)
	}
	expect(t, verified(t, s), "true data", "true keys", "true zone orders: users with valid credentials: 1", "false zone stale: has keys, but is not configured")

	if err := os.Chmod(a.File(), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(s.Data, 0o777); err != nil {
		t.Fatal(err)
	}
	expect(t, verified(t, s), "false data "+s.Data+": others can write", "false keys")
	s.Data = a.File()
	expect(t, verified(t, s), "false data "+s.Data+": is not a directory")
}

func TestVerifyOfCredentials(t *testing.T) {
	s := Default()
	s.Listen, s.HTTP, s.Data = "127.0.0.1:0", "off", t.TempDir()
	s.Zones = []Zone{{Name: "orders"}}
	a, other := openAuth(t, s.Data), openAuth(t, t.TempDir())
	file := func(auth *Auth, zone, name string) string {
		t.Helper()
		if err := auth.EnsureZone(zone); err != nil {
			t.Fatal(err)
		}
		creds, _, err := auth.IssueUser(zone, name, RoleUser, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), name+".creds")
		if err := os.WriteFile(path, creds, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	alice, bob := file(a, "orders", "alice"), file(a, "orders", "bob")
	foreign, idle := file(other, "orders", "eve"), file(a, "idle", "ida")
	if _, err := a.RevokeUser("orders", "bob"); err != nil {
		t.Fatal(err)
	}
	mixed := filepath.Join(t.TempDir(), "mixed.creds")
	a1, err1 := os.ReadFile(alice)
	b1, err2 := os.ReadFile(bob)
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	jwtPart, _, _ := strings.Cut(string(a1), "-----BEGIN USER NKEY SEED")
	_, keyPart, _ := strings.Cut(string(b1), "-----BEGIN USER NKEY SEED")
	if err := os.WriteFile(mixed, []byte(jwtPart+"-----BEGIN USER NKEY SEED"+keyPart), 0o600); err != nil {
		t.Fatal(err)
	}
	expect(t, verified(t, s, alice, bob, foreign, idle, mixed, "/absent", a.File()),
		"true credentials "+alice+": valid: alice in zone orders", "false credentials "+bob+": revoked at",
		"false credentials "+foreign+": they are of another cluster", "false credentials "+idle+": zone idle is not configured",
		"false credentials "+mixed+": the key is not that of the JWT", "false credentials /absent", "false credentials "+a.File()+": the JWT is not valid")
}

func TestVerifyOfAddressesInUse(t *testing.T) {
	answer := func(text string) string {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				fmt.Fprint(conn, text)
				conn.Close()
			}
		}()
		return l.Addr().String()
	}
	s := Default()
	s.HTTP, s.Listen = answer(""), answer("INFO {\"server_name\":\"n7\"}\r\n")
	expect(t, verified(t, s), "true listen "+s.Listen+": in use by the NATS server n7", "true http "+s.HTTP+": in use")
	s.Listen = answer("SSH-2.0-x\r\n")
	expect(t, verified(t, s), "false listen "+s.Listen+": in use\n")
	s.Listen = "192.0.2.1:4222" // an address for documentation, nobody's
	expect(t, verified(t, s), "false listen 192.0.2.1:4222: ")
}
