package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/spf13/cobra"

	"github.com/opencluster/oclocks/conf"
	"github.com/opencluster/oclocks/internal/brokertest"
	"github.com/opencluster/oclocks/internal/cli"
)

// field gives a field of a JSON line.
func field(t *testing.T, line, name string) string {
	t.Helper()
	var object map[string]any
	d := json.NewDecoder(strings.NewReader(line))
	d.UseNumber()
	if err := d.Decode(&object); err != nil {
		t.Fatalf("%v in %q", err, line)
	}
	switch v := object[name].(type) {
	case string:
		return v
	case json.Number:
		return v.String()
	}
	t.Fatalf("no field %s in %s", name, line)
	return ""
}

func TestAcquireRenewRelease(t *testing.T) {
	c := startBroker(t)
	grant := c.ok("acquire", "a", "--ttl", "30s", "--json", "--data", "7")
	key, token := field(t, grant, "key"), field(t, grant, "token")
	if field(t, grant, "ttl") != "30s" {
		t.Errorf("grant: %s", grant)
	}
	if out := c.ok("query", "a"); !regexp.MustCompile(`anyone +` + token + ` .* 30s +- +7\n`).MatchString(out) {
		t.Errorf("query: %s", out)
	}
	if out := c.ok("renew", "a", key, "--ttl", "2m", "--json"); field(t, out, "ttl") != "2m" && field(t, out, "ttl") != "2m0s" {
		t.Errorf("renewed: %s", out)
	}
	if out := c.ok("renew", "a", key, "--trusted", "90s", "--json"); field(t, out, "token") != token {
		t.Errorf("renewed by who trusts it: %s", out)
	}
	if _, errs, code := c.run("renew", "a", key, "--trusted", "0s"); code != 76 || !strings.Contains(errs, "release it by its key") {
		t.Errorf("renewed by whose trust is over: %d\n%s", code, errs)
	}
	c.ok("check", "a", "--token", token)
	if _, errs, code := c.run("acquire", "a"); code != 75 || !strings.Contains(errs, "a is held by") {
		t.Errorf("a second acquire: %d\n%s", code, errs)
	}
	if _, errs, code := c.run("acquire", "a", "-w", "0.05"); code != 75 || !strings.Contains(errs, "not acquired within 50ms") {
		t.Errorf("a second acquire that waits: %d\n%s", code, errs)
	}
	if out := c.ok("release", "a", "--key", key, "--outcome", "done"); !strings.HasPrefix(out, "released token "+token+" after ") {
		t.Errorf("released: %s", out)
	}
	if _, _, code := c.run("check", "a", "--token", token); code != 1 {
		t.Errorf("check of a token that is over: %d", code)
	}
	if _, errs, code := c.run("release", "a", key); code != 1 || !strings.Contains(errs, "oclocks-cli query a") {
		t.Errorf("released again: %d\n%s", code, errs)
	}
	if _, errs, code := c.run("release", "a", key, "--json"); code != 1 || !strings.Contains(errs, `"reason":"not_held"`) {
		t.Errorf("in JSON: %d\n%s", code, errs)
	}
	quiet := strings.Fields(c.ok("acquire", "-q", "a"))
	c.ok("release", "a", quiet[0])
	if _, errs, code := c.run("release", "a", "0123456789abcdef"); code != 1 {
		t.Errorf("a key that never was: %d\n%s", code, errs)
	}
}

func TestListFollowsPages(t *testing.T) {
	c := startBroker(t)
	script := `i=0; while [ $i -lt 30 ]; do ` + binary + ` acquire -q n/$i >/dev/null || exit 1; i=$((i+1)); done`
	c.ok("lock", "other", "--", "sh", "-c", script)
	count := func(args ...string) int { return strings.Count(c.ok(append([]string{"list"}, args...)...), "\n") }
	if n := count("-q"); n != 30 {
		t.Errorf("all: %d", n)
	}
	if n := count("--prefix", "n/1", "--json"); n != 11 {
		t.Errorf("by prefix: %d", n)
	}
	if n := count("--prefix64", "bi8y", "-q"); n != 11 {
		t.Errorf("by prefix in base64: %d", n)
	}
	if n := count("--limit", "7"); n != 8 { // with the heading
		t.Errorf("some: %d", n)
	}
	if n := count("--older-than", "1h"); n != 0 {
		t.Errorf("old ones: %d", n)
	}
	if n := count("--state", "waited"); n != 0 {
		t.Errorf("with a queue: %d", n)
	}
	if out := c.ok("top", "--once", "--prefix", "n/2"); strings.Count(out, "\n") != 3+11 {
		t.Errorf("top: %s", out)
	}
}

func TestForceNeedsItsRole(t *testing.T) {
	c := startBroker(t, brokertest.WithZones(conf.Zone{Name: "default", Open: true, Role: conf.RoleViewer}, conf.Zone{Name: "orders"}))
	if _, errs, code := c.run("--timeout", "10s", "acquire", "a"); code != 77 || !strings.Contains(errs, "role user") {
		t.Errorf("a viewer acquires: %d\n%s", code, errs)
	}
	credentials, _, err := c.daemon.Auth().IssueUser("orders", "alice", conf.RoleUser, 0)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "alice.creds")
	if err := os.WriteFile(file, credentials, 0o600); err != nil {
		t.Fatal(err)
	}
	token := field(t, c.ok("--creds", file, "acquire", "a", "--json"), "token")
	_, errs, code := c.run("--creds", file, "--timeout", "10s", "force", "a", "--token", token, "--reason", "x")
	if code != 77 || !strings.Contains(errs, "role admin") {
		t.Errorf("a user forces: %d\n%s", code, errs)
	}
	c.env = []string{"NATS_CREDS=" + file}
	if out := c.ok("info", "--json"); field(t, out, "zone") != "orders" {
		t.Errorf("credentials from the environment: %s", out)
	}
	if _, errs, code := c.run("--creds", "/no/such/file", "info"); code != 64 || !strings.Contains(errs, "/no/such/file") {
		t.Errorf("credentials that are not there: %d\n%s", code, errs)
	}
}

func TestSessionsByHand(t *testing.T) {
	c := startBroker(t)
	session := strings.Fields(c.ok("session", "open", "-q", "--lease", "20s"))[0]
	c.env = []string{"OCLOCKS_SESSION=" + session}
	c.ok("acquire", "a", "--session", session)
	if out := c.ok("session", "keep", "--once"); field(t, out, "count") != "1" {
		t.Errorf("kept: %s", out)
	}
	keeper := c.start("session", "keep", "--json")
	keeper.line("{")
	if out := c.ok("session", "close"); !strings.Contains(out, "1 lock released") {
		t.Errorf("closed: %s", out)
	}
	keeper.signal(syscall.SIGINT)
	if code, _, errs := keeper.end(); code != 0 {
		t.Errorf("the keeper ended with %d\n%s", code, errs)
	}
	if _, errs, code := c.run("session", "keep", "--once"); code != 76 || !strings.Contains(errs, "oclocks-cli session open") {
		t.Errorf("a session that is over: %d\n%s", code, errs)
	}
}

func TestWatch(t *testing.T) {
	c := startBroker(t)
	w := c.start("watch", "lock", "--json", "--prefix", "a/")
	// Its subscription is there once it sees the first event.
	seen := make(chan string, 1)
	go func() { seen <- w.line(`{"subject":"locks.event.lock.granted.`) }()
	for event := ""; event == ""; {
		c.ok("lock", "another", "--", "true")
		c.ok("lock", "a/1", "--", "true")
		select {
		case event = <-seen:
		default:
		}
	}
	if next := w.line(`{"subject":"locks.event.lock.released.`); strings.Contains(next, "another") {
		t.Errorf("not asked for: %s", next)
	}
	w.signal(syscall.SIGTERM)
	if code, out, errs := w.end(); code != 0 || strings.Contains(out, "another") {
		t.Errorf("ended with %d\n%s\n%s", code, out, errs)
	}
	if _, _, code := c.run("watch", "nonsense"); code != 64 {
		t.Errorf("nonsense: %d", code)
	}
}

func TestPingInfoServers(t *testing.T) {
	c := startBroker(t)
	node := c.daemon.Node()
	if out := c.ok("ping", node, "-c", "2", "--every", "1ms"); strings.Count(out, node+" answered in") != 2 {
		t.Errorf("ping: %s", out)
	}
	if out := c.ok("servers", "-q"); strings.TrimSpace(out) != c.url {
		t.Errorf("servers: %s, the broker is at %s", out, c.url)
	}
	if out := c.ok("info"); !strings.Contains(out, node) {
		t.Errorf("info: %s", out)
	}
	if _, errs, code := c.run("ping", "nobody"); code != 64 || !strings.Contains(errs, "nobody") {
		t.Errorf("a node that is not there: %d\n%s", code, errs)
	}
}

func TestNoBroker(t *testing.T) {
	c := &tool{t: t, url: "nats://127.0.0.1:1"}
	for _, args := range [][]string{{"query", "a"}, {"lock", "a", "--", "true"}, {"ping", "--wait", "150ms"}, {"top", "--once"}} {
		if _, errs, code := c.run(args...); code != 69 || !strings.Contains(errs, "oclocks-daemon") {
			t.Errorf("%v: %d\n%s", args, code, errs)
		}
	}
	if _, errs, code := c.run("query", "a", "--json"); code != 69 || !strings.Contains(errs, `"reason":"unavailable"`) {
		t.Errorf("in JSON: %d\n%s", code, errs)
	}
}

// A NATS server of somebody's own is likely to be at the usual address.
func TestNATSWithoutABroker(t *testing.T) {
	plain, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: -1, NoLog: true, NoSigs: true})
	if err != nil {
		t.Fatal(err)
	}
	plain.Start()
	t.Cleanup(func() { plain.Shutdown(); plain.WaitForShutdown() })
	if !plain.ReadyForConnections(patience) {
		t.Fatal("the NATS server does not start")
	}
	c := &tool{t: t, url: plain.ClientURL()}
	for _, args := range [][]string{{"query", "a"}, {"lock", "a", "--", "true"}} {
		_, errs, code := c.run(append([]string{"--timeout", "3s"}, args...)...) // in which it has to connect
		if code != 69 || !strings.Contains(errs, "no lock broker") || !strings.Contains(errs, c.url) || !strings.Contains(errs, "oclocks-daemon") {
			t.Errorf("%v: %d\n%s", args, code, errs)
		}
	}
	if _, errs, code := c.run("--timeout", "3s", "query", "a", "--json"); code != 69 || !strings.Contains(errs, `"reason":"unavailable"`) {
		t.Errorf("in JSON: %d\n%s", code, errs)
	}
}

func TestWrongUsage(t *testing.T) {
	c := &tool{t: t, url: "nats://127.0.0.1:1"}
	for _, line := range []string{
		"nonsense", "lock", "lock a b", "lock a --", "lock -n -w 1s a", "lock -w soon a", "lock --slots 0 --take 2 a", "lock --take 4 --slots 3 a",
		"lock -s --slots 3 a", "lock --drain timed a", "lock --drain now a", "lock --data {x a", "lock --name64 ! -- true", "lock -E 256 a",
		"release a", "release a xyz", "release a 0123456789abcdef b", "renew a 1", "force a", "force a --token x --reason y", "check a",
		"query", "query a b", "list x", "list --state odd", "list --limit -1", "session x", "session close", "top --every 1ms", "ping -c 0",
		"--timeout 0 ping", "query --nonsense a",
	} {
		if out, errs, code := c.run(strings.Fields(line)...); code != 64 || errs == "" || out != "" {
			t.Errorf("%s: exit code %d\n%s%s", line, code, out, errs)
		}
	}
}

func TestWrongUsageSaysWhereToRead(t *testing.T) {
	c := &tool{t: t, url: "nats://127.0.0.1:1"}
	for _, x := range []struct{ line, says string }{
		{"lock --tll 3 a", "unknown flag: --tll\n  see: oclocks-cli lock --help\n"},
		{"lock --ttl soon a", `: "soon" is no duration`},
		{"session open x", "see: oclocks-cli session open --help\n"},
		{"lokc a", "see: oclocks-cli --help\n"},
		{"check a", "say --token TOKEN\n"},
	} {
		if _, errs, code := c.run(strings.Fields(x.line)...); code != 64 || !strings.Contains(errs, x.says) || strings.Contains(errs, "wrong usage") {
			t.Errorf("%s: %d\n%s", x.line, code, errs)
		}
	}
}

func TestOutputThatCannotBeWritten(t *testing.T) {
	c := startBroker(t)
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer full.Close()
	cmd := c.command("info")
	cmd.Stdout = full
	if code := exitCode(t, cmd.Run()); code != 74 {
		t.Errorf("exit code %d", code)
	}
}

func TestCompletion(t *testing.T) {
	c := startBroker(t)
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if out := c.ok("completion", shell); !strings.Contains(out, "oclocks-cli") {
			t.Errorf("%s: %s", shell, out)
		}
	}
	c.ok("acquire", "orders/1", "-q")
	if out := c.ok("__complete", "query", "ord"); !strings.HasPrefix(out, "orders/1\n") {
		t.Errorf("names: %s", out)
	}
	for line, want := range map[string]string{"lock --drain": "timed\n", "acquire --acks": "majority\n", "list --state": "waited\n"} {
		if out := c.ok(append(append([]string{"__complete"}, strings.Fields(line)...), "")...); !strings.Contains(out, want) {
			t.Errorf("%s: %s", line, out)
		}
	}
	if out := c.ok("__complete", "watch", ""); !strings.Contains(out, "session\n") {
		t.Errorf("families: %s", out)
	}
}

// TestHelp holds every command to a short and a long text and to examples that begin with a command line of its own.
func TestHelp(t *testing.T) {
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		if cmd.Name() == "help" || cmd.Name() == "completion" {
			return
		}
		if cmd.Short == "" || cmd.Long == "" || cmd.Example == "" || strings.HasSuffix(cmd.Short, ".") {
			t.Errorf("%s: its help is not whole", cmd.CommandPath())
		}
		if !strings.Contains(cmd.Example, cmd.CommandPath()) {
			t.Errorf("%s: it is not in its own examples", cmd.CommandPath())
		}
		for line := range strings.Lines(cmd.Long + "\n" + cmd.Example) {
			if n := len([]rune(strings.TrimSuffix(line, "\n"))); n > 124 {
				t.Errorf("%s: a line of %d characters: %s", cmd.CommandPath(), n, line)
			}
		}
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	visit(command(&cli.App{}))
}

// TestExamples runs what the help texts show, line by line, as a user would type it.
func TestExamples(t *testing.T) {
	c := startBroker(t)
	root := command(&cli.App{})
	for _, path := range []string{"", "acquire", "query", "list", "info", "servers", "ping", "top", "session"} {
		cmd, _, err := root.Find(strings.Fields(path))
		if err != nil {
			t.Fatal(err)
		}
		script := strings.ReplaceAll(cmd.Example, "oclocks-cli top\n", "") // has no end
		sh := c.command()
		sh.Path, sh.Args = "/bin/bash", []string{"bash", "-e", "-c", script}
		sh.Env = append(sh.Env, "PATH="+filepath.Dir(binary)+":"+os.Getenv("PATH"))
		var out bytes.Buffer
		sh.Stdout, sh.Stderr = &out, &out
		sh.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		if err := sh.Start(); err != nil {
			t.Fatal(err)
		}
		guard := time.AfterFunc(patience, func() { _ = syscall.Kill(-sh.Process.Pid, syscall.SIGKILL) })
		code := exitCode(t, sh.Wait())
		guard.Stop()
		if code != 0 {
			t.Errorf("the examples of %q end with %d:\n%s\n%s", path, code, script, out.String())
		}
	}
}
