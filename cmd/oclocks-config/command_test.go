package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/opencluster/oclocks/conf"
)

// tool runs the command in a directory of its own.
type tool struct {
	t   *testing.T
	dir string
}

func newTool(t *testing.T) *tool {
	dir := t.TempDir()
	t.Chdir(dir)
	for key, value := range map[string]string{
		"OCLOCKS_CONFIG": filepath.Join(dir, "oclocks.yaml"), "OCLOCKS_DATA": filepath.Join(dir, "data"), "XDG_CONFIG_HOME": filepath.Join(dir, "xdg"),
		"OCLOCKS_LISTEN": "127.0.0.1:0", "OCLOCKS_HTTP": "off",
	} {
		t.Setenv(key, value)
	}
	return &tool{t, dir}
}

// run gives what the command prints.
func (c *tool) run(args ...string) (string, error) {
	var out bytes.Buffer
	cmd := command()
	cmd.SetArgs(args)
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	err := cmd.ExecuteContext(c.t.Context())
	return out.String(), err
}

// does says that the command succeeds and prints all of want.
func (c *tool) does(args string, want ...string) string {
	c.t.Helper()
	out, err := c.run(strings.Fields(args)...)
	if err != nil {
		c.t.Errorf("%s: %v", args, err)
	}
	for _, w := range want {
		if !strings.Contains(out, w) {
			c.t.Errorf("%s: %q is not in\n%s", args, w, out)
		}
	}
	return out
}

// fails says that the command's error holds all of want.
func (c *tool) fails(args string, want ...string) {
	c.t.Helper()
	_, err := c.run(strings.Fields(args)...)
	for _, w := range want {
		if err == nil || !strings.Contains(err.Error(), w) {
			c.t.Errorf("%s: got %v, want %q", args, err, w)
		}
	}
}

func (c *tool) file(name string) string {
	c.t.Helper()
	content, err := os.ReadFile(filepath.Join(c.dir, name))
	if err != nil {
		c.t.Fatal(err)
	}
	return string(content)
}

func TestZones(t *testing.T) {
	c := newTool(t)
	c.fails("zone list", "oclocks-config zone add NAME for a daemon alone")
	if err := os.WriteFile("oclocks.yaml", []byte("# nothing yet\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c.does("zone list", "default  as admin", "No zone is configured")
	c.does("zone add orders --holds 5 --lock-events", "Zone orders is in", "SIGHUP", "user add --zone orders NAME")
	c.does("zone add play --open --role viewer --unnamed=false")
	c.does("zone list", "orders  no         no       own      yes     5", "play    as viewer  no       shared   no      10000000")
	var zones []map[string]any
	if err := json.Unmarshal([]byte(c.does("zone list --json")), &zones); err != nil || len(zones) != 2 || zones[1]["role"] != "viewer" {
		t.Errorf("got %v, %v", zones, err)
	}
	c.fails("zone add orders", "zone orders: exists already")
	c.fails("zone add a.b", "expected 1 to 64")
	c.fails("zone add a b", "accepts 1 arg", "oclocks-config zone add NAME")
	c.fails("zone add more --open", "zone play is open too")
	c.fails("zone add more --role admin", "not open")

	c.does("user add --zone orders alice")
	c.does("zone remove orders", "removed", "SIGHUP")
	if file := c.file("oclocks.yaml"); strings.Contains(file, "orders") {
		t.Errorf("the file is\n%s", file)
	}
	c.fails("user list --zone orders", "not found")
	c.fails("zone remove orders", "not found")
	c.fails("zone remove play", "is the last one")

	c.does("zone add kept")
	c.does("user add --zone kept bob")
	c.does("zone remove --keep-keys kept")
	c.does("user list --zone kept", "bob")
}

// seed is what a user's private key looks like; a public one may well have SU in it.
var seed = regexp.MustCompile(`\bSU[A-Z2-7]{56}\b`)

func TestUsers(t *testing.T) {
	c := newTool(t)
	c.does("zone add orders")
	c.fails("user list", "is that the daemon's data directory?")
	out := c.does("user add --zone orders --expires 24h alice", "alice, user in zone orders", "orders-alice.creds", "inbox prefix  _INBOX.U",
		"NATS_CREDS=orders-alice.creds oclocks-cli", "--inbox-prefix _INBOX.U", "req locks.acquire.U")
	if !strings.Contains(c.file("orders-alice.creds"), "BEGIN NATS USER JWT") || seed.MatchString(out) {
		t.Errorf("printed\n%s", out)
	}
	c.does("user add --zone orders --role viewer --out v.creds --context look victor", "nats/context/look.json", "nats --context look req locks.query.U")
	var context conf.NATSContext
	if err := json.Unmarshal([]byte(c.file("xdg/nats/context/look.json")), &context); err != nil {
		t.Fatal(err)
	}
	if context.Creds != filepath.Join(c.dir, "v.creds") || !strings.HasPrefix(context.InboxPrefix, "_INBOX.U") {
		t.Errorf("got %+v", context)
	}

	c.fails("user add --zone orders alice", "choose another file with --out")
	c.fails("user add --zone order x", "zone order is not configured")
	c.fails("user add x", `"zone" not set`)
	c.fails("user add --zone orders --role root x", `"root" is not a role`)
	c.fails("user add --zone orders anyone", "choose another")
	c.fails("user add --zone orders --expires 1ms x", "at least 1s")

	c.does("user list", "orders  alice   user    valid", "orders  victor  viewer  valid")
	c.does("user revoke --zone orders alice", "Revoked: alice U", "SIGHUP")
	c.does("user list --zone orders", "alice   user    revoked")
	c.fails("user revoke --zone orders alice", "not found")
	var users []conf.User
	if err := json.Unmarshal([]byte(c.does("user list --json")), &users); err != nil || len(users) != 2 {
		t.Errorf("got %v, %v", users, err)
	}
	t.Setenv("OCLOCKS_DATA", "")
	c.fails("user list", "name a directory with --data")
}

func TestSettings(t *testing.T) {
	c := newTool(t)
	c.does("set max_lease 30s", "next start")
	c.does("get max_lease", "30s\n")
	c.does("get --session-lease 5s", "max_lease:", "30s", "session_lease:", "5s", "listen:", "127.0.0.1:0")
	c.fails("set max_leas 1s", "did you mean max_lease?")
	c.fails("set buckets 3", "power of two")
	c.fails("get lisen", "did you mean listen?")
	t.Setenv("OCLOCKS_CONFIG", "")
	c.fails("set max_lease 30s", "--config FILE")
	c.fails("zone add x", "--config FILE")
}

func TestVerify(t *testing.T) {
	c := newTool(t)
	c.does("zone add orders")
	c.does("user add --zone orders alice")
	c.does("user add --zone orders bob")
	c.does("verify orders-alice.creds", "ok    configuration: valid", "ok    data ", "ok    keys ", "ok    zone orders", "ok    credentials orders-alice.creds", "ok    listen")
	c.does("user revoke --zone orders bob")
	c.fails("verify orders-bob.creds", "one check failed")
	c.fails("verify orders-bob.creds absent.creds", "2 checks failed")
	if out, err := c.run("verify", "orders-bob.creds"); err == nil || !strings.Contains(out, "FAIL  credentials orders-bob.creds: revoked at") {
		t.Errorf("got %v\n%s", err, out)
	}
	if err := os.WriteFile("oclocks.yaml", []byte("lisen: x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c.fails("verify", "oclocks.yaml:1: lisen: there is no such key: did you mean listen?")
}

func TestCompletion(t *testing.T) {
	c := newTool(t)
	c.does("zone add orders")
	c.does("user add --zone orders alice")
	for args, want := range map[string]string{
		"zone remove ":               "orders",
		"user add --zone ":           "orders",
		"user add --role ":           "viewer",
		"user revoke --zone orders ": "alice",
		"set ":                       "max_lease",
		"get ":                       "listen",
		"":                           "verify",
		"completion ":                "zsh",
	} {
		if out, err := c.run(append([]string{"__complete"}, strings.Split(args, " ")...)...); err != nil || !strings.Contains(out, want) {
			t.Errorf("%q: %v\n%s", args, err, out)
		}
	}
	c.does("--version", "oclocks-config version")
}
