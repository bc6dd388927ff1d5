package interop

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/opencluster/oclocks/conf"
	"github.com/opencluster/oclocks/internal/brokertest"
)

// patience bounds every wait of these tests; nothing that works comes near it.
const patience = time.Minute

// stock is the stock nats CLI with the flags that somebody would give it.
type stock struct {
	t      *testing.T
	binary string
	flags  []string
	home   string // so that no context of whoever runs the tests counts
}

func newStock(t *testing.T, flags ...string) *stock {
	t.Helper()
	return &stock{t: t, binary: natsCLI(t), flags: flags, home: t.TempDir()}
}

func (s *stock) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, s.binary, append(args, s.flags...)...)
	cmd.Env = append(os.Environ(), "HOME="+s.home, "XDG_CONFIG_HOME="+s.home, "NATS_URL=", "NATS_CONTEXT=", "NATS_CREDS=")
	return cmd
}

// run runs the CLI to its end and gives all that it printed.
func (s *stock) run(args ...string) string {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	out, err := s.command(ctx, args...).CombinedOutput()
	if err != nil {
		s.t.Fatalf("nats %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// request does `nats req --raw` and decodes the reply.
func (s *stock) request(args ...string) reply {
	s.t.Helper()
	return decode(s.t, []byte(s.run(append([]string{"req", "--raw"}, args...)...)))
}

// reply has the fields of grants, queries, releases and refusals that these tests look at.
type reply struct {
	Granted  bool
	Released bool
	Name     string
	Key      string
	Token    uint64
	Mode     string
	Waited   string
	State    string
	Holders  []struct {
		User  string
		Token uint64
		Key   string
	}
	Queue []struct{ User string }
	Error struct {
		Code   int
		Reason string
		Queue  int
	}
}

func decode(t *testing.T, text []byte) reply {
	t.Helper()
	var r reply
	if err := json.Unmarshal(bytes.TrimSpace(text), &r); err != nil {
		t.Fatalf("the reply is not JSON: %v\n%s", err, text)
	}
	return r
}

func TestNatsCLITakesAndReleases(t *testing.T) {
	daemon := brokertest.Start(t)
	cli := newStock(t, "--server", daemon.URL())

	grant := cli.request("locks.acquire", "orders/4711")
	if !grant.Granted || grant.Name != "orders/4711" || len(grant.Key) != 16 || grant.Token == 0 {
		t.Fatalf("acquire: %+v", grant)
	}
	held := cli.request("locks.query", "orders/4711")
	if held.State != "held" || len(held.Holders) != 1 || held.Holders[0].Token != grant.Token || held.Holders[0].Key != "" {
		t.Errorf("query while it is held: %+v", held)
	}

	refused := cli.run("req", "locks.acquire", "orders/4711")
	for _, want := range []string{"Nats-Service-Error-Code: 409", "Nats-Service-Error: ", `"reason":"held"`} {
		if !strings.Contains(refused, want) {
			t.Errorf("the refusal has no %s:\n%s", want, refused)
		}
	}
	wrong := cli.request("locks.release", `{"name":"orders/4711","key":"0000000000000001"}`)
	if wrong.Error.Code != 403 {
		t.Errorf("release with a wrong key: %+v", wrong)
	}

	released := cli.request("locks.release", fmt.Sprintf(`{"name":"orders/4711","key":%q}`, grant.Key))
	if !released.Released || released.Token != grant.Token {
		t.Errorf("release: %+v", released)
	}
	if free := cli.request("locks.query", "orders/4711"); free.State != "free" {
		t.Errorf("query after the release: %+v", free)
	}
	options := cli.request("locks.acquire", "orders/4712", "-H", "Oclocks-Mode:shared", "-H", "Oclocks-Ttl:5s")
	if !options.Granted || options.Mode != "shared" {
		t.Errorf("acquire with options in headers: %+v", options)
	}
}

func TestNatsCLIWaits(t *testing.T) {
	daemon := brokertest.Start(t)
	cli := newStock(t, "--server", daemon.URL())
	grant := cli.request("locks.acquire", "orders/4711")

	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	waiting := cli.command(ctx, "req", "--raw", "locks.acquire", "orders/4711", "-H", "Oclocks-Wait:50s", "--timeout", "55s")
	var out, stderr bytes.Buffer
	waiting.Stdout, waiting.Stderr = &out, &stderr
	if err := waiting.Start(); err != nil {
		t.Fatal(err)
	}
	conn := connect(t, daemon.URL())
	waitForQueue(t, conn, "locks.query", "orders/4711", 1)

	released := cli.request("locks.release", fmt.Sprintf(`{"name":"orders/4711","key":%q}`, grant.Key))
	begin := time.Now()
	if !released.Released {
		t.Fatalf("release: %+v", released)
	}
	if err := waiting.Wait(); err != nil {
		t.Fatalf("the waiting acquire: %v\n%s", err, stderr.Bytes())
	}
	// Its wait had most of 50 s to go.
	if after := time.Since(begin); after > 20*time.Second {
		t.Errorf("the waiter was answered %v after the release", after)
	}
	second := decode(t, out.Bytes())
	if !second.Granted || second.Token <= grant.Token || second.Waited == "" {
		t.Errorf("the grant after the wait: %+v", second)
	}
}

func TestNatsCLIListsTheService(t *testing.T) {
	daemon := brokertest.Start(t)
	cli := newStock(t, "--server", daemon.URL())
	cli.request("locks.acquire", "orders/4711")
	for _, args := range [][]string{{"service", "ls"}, {"service", "info", "oclocks"}, {"service", "stats", "oclocks"}, {"micro", "ls"}} {
		if out := cli.run(args...); !strings.Contains(out, "oclocks") {
			t.Errorf("nats %s does not show oclocks:\n%s", strings.Join(args, " "), out)
		}
	}
}

func TestNatsCLIWithCredentials(t *testing.T) {
	daemon := brokertest.Start(t, brokertest.WithZones(conf.Zone{Name: "shop"}))
	creds, user, err := daemon.Auth().IssueUser("shop", "till-1", conf.RoleUser, 0)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "till-1.creds")
	if err := os.WriteFile(file, creds, 0o600); err != nil {
		t.Fatal(err)
	}
	cli := newStock(t, "--server", daemon.URL(), "--creds", file, "--inbox-prefix", "_INBOX."+user)

	grant := cli.request("locks.acquire."+user, "orders/4711")
	if !grant.Granted {
		t.Fatalf("acquire: %+v", grant)
	}
	held := cli.request("locks.query."+user, "orders/4711")
	if len(held.Holders) != 1 || held.Holders[0].User != user {
		t.Errorf("query: %+v, the holder should be %s", held, user)
	}
	released := cli.request("locks.release."+user, fmt.Sprintf(`{"name":"orders/4711","key":%q}`, grant.Key))
	if !released.Released {
		t.Errorf("release: %+v", released)
	}
	if out := cli.run("service", "ls"); !strings.Contains(out, "oclocks") {
		t.Errorf("nats service ls:\n%s", out)
	}
}

// connect is a plain NATS connection for looking at what the software under test has done.
func connect(t *testing.T, url string, opts ...nats.Option) *nats.Conn {
	t.Helper()
	conn, err := nats.Connect(url, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	return conn
}

// waitForQueue returns when that many wait for the lock.
func waitForQueue(t *testing.T, conn *nats.Conn, subject, name string, length int) {
	t.Helper()
	deadline := time.After(patience)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		msg, err := conn.Request(subject, []byte(name), patience)
		if err != nil {
			t.Fatalf("query %s: %v", name, err)
		}
		if r := decode(t, msg.Data); len(r.Queue) == length {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("nobody queued for %s: %s", name, msg.Data)
		}
	}
}
