package natsd

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats.go"
	"go.uber.org/goleak"

	"github.com/opencluster/oclocks/conf"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(childEnv); dir != "" {
		if err := child(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// patience bounds every wait of these tests.
const patience = 30 * time.Second

func start(t *testing.T, zones ...conf.Zone) (*Server, *conf.Auth) {
	t.Helper()
	auth, err := conf.NewAuth()
	if err != nil {
		t.Fatal(err)
	}
	return startWith(t, Config{Auth: auth, Zones: zones}), auth
}

func startWith(t *testing.T, cfg Config) *Server {
	t.Helper()
	cfg.ServerName, cfg.Listen, cfg.Logger = "n1", "127.0.0.1:0", slog.New(slog.DiscardHandler)
	s, err := Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := s.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	return s
}

func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// user is somebody with credentials, who speaks NATS by hand.
type user struct {
	key   string
	creds []byte
}

func issue(t *testing.T, auth *conf.Auth, zone, name string, role conf.Role) user {
	t.Helper()
	creds, key, err := auth.IssueUser(zone, name, role, 0)
	if err != nil {
		t.Fatal(err)
	}
	return user{key, creds}
}

// connect is the CONNECT of the user for the server's nonce; more overrides its fields.
func (u user) connect(t *testing.T, nonce string, more map[string]any) string {
	t.Helper()
	fields := map[string]any{"verbose": false, "pedantic": false, "headers": true, "no_responders": true, "protocol": 1}
	if u.creds != nil {
		token, err := jwt.ParseDecoratedJWT(u.creds)
		if err != nil {
			t.Fatal(err)
		}
		pair, err := jwt.ParseDecoratedUserNKey(u.creds)
		if err != nil {
			t.Fatal(err)
		}
		sig, err := pair.Sign([]byte(nonce))
		if err != nil {
			t.Fatal(err)
		}
		fields["jwt"], fields["sig"] = token, base64.RawURLEncoding.EncodeToString(sig)
	}
	for k, v := range more {
		fields[k] = v
	}
	text, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	return "CONNECT " + string(text) + "\r\n"
}

// raw is a connection on which a test writes the protocol itself.
type raw struct {
	t    *testing.T
	conn net.Conn
	r    *bufio.Reader
	info struct {
		Nonce string `json:"nonce"`
		CID   uint64 `json:"client_id"`
		ID    string `json:"server_id"`
	}
}

func dial(t *testing.T, s *Server) *raw {
	t.Helper()
	conn, err := net.DialTimeout("tcp", s.Addr().String(), patience)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	c := &raw{t: t, conn: conn, r: bufio.NewReader(conn)}
	line := c.line()
	if err := json.Unmarshal([]byte(strings.TrimPrefix(line, "INFO ")), &c.info); err != nil {
		t.Fatalf("%q: %v", line, err)
	}
	return c
}

// login connects as the user.
func login(t *testing.T, s *Server, u user, more map[string]any) *raw {
	t.Helper()
	c := dial(t, s)
	if out := c.do(u.connect(t, c.info.Nonce, more)); len(out) > 0 {
		t.Fatalf("connect: %q", out)
	}
	return c
}

func (c *raw) line() string {
	c.t.Helper()
	line, err := c.r.ReadString('\n')
	if err != nil {
		c.t.Fatalf("read: %v", err)
	}
	return strings.TrimRight(line, "\r\n")
}

// do writes protocol text and gives all lines that come before the answer to a PING after it, except INFO. Whatever the
// server has to say about the text has then been said.
func (c *raw) do(text string) []string {
	c.t.Helper()
	if _, err := io.WriteString(c.conn, text+"PING\r\n"); err != nil {
		c.t.Fatalf("write: %v", err)
	}
	var lines []string
	for {
		switch line := c.line(); {
		case line == "PONG":
			return lines
		case line == "PING":
			if _, err := io.WriteString(c.conn, "PONG\r\n"); err != nil {
				c.t.Fatalf("write: %v", err)
			}
		case !strings.HasPrefix(line, "INFO "):
			lines = append(lines, line)
		}
	}
}

// refused says that do must be answered with a permissions violation.
func (c *raw) refused(text string) {
	c.t.Helper()
	out := c.do(text)
	if len(out) != 1 || !strings.HasPrefix(out[0], "-ERR 'Permissions Violation for ") {
		c.t.Errorf("%q: got %q, want a permissions violation", text, out)
	}
}

// allowed says that do must be answered with no error.
func (c *raw) allowed(text string) {
	c.t.Helper()
	for _, line := range c.do(text) {
		if strings.HasPrefix(line, "-ERR") {
			c.t.Errorf("%q: got %q, want no error", text, line)
		}
	}
}

// ended reads until the server closes the connection, and gives what it says before.
func (c *raw) ended() []string {
	c.t.Helper()
	var lines []string
	for {
		line, err := c.r.ReadString('\n')
		if err != nil {
			if errors.Is(err, os.ErrDeadlineExceeded) {
				c.t.Fatalf("the connection is still open; lines: %q", lines)
			}
			return lines
		}
		lines = append(lines, strings.TrimRight(line, "\r\n"))
	}
}

func pub(subject, reply, body string) string {
	if reply != "" {
		subject += " " + reply
	}
	return fmt.Sprintf("PUB %s %d\r\n%s\r\n", subject, len(body), body)
}

func hpub(subject, reply, header, body string) string {
	if reply != "" {
		subject += " " + reply
	}
	return fmt.Sprintf("HPUB %s %d %d\r\n%s%s\r\n", subject, len(header), len(header)+len(body), header, body)
}

// broker is a connection of the broker itself that hears whatever is published in a zone.
type broker struct {
	t   *testing.T
	nc  *nats.Conn
	sub *nats.Subscription
}

func listen(t *testing.T, s *Server, zone, subject string) *broker {
	t.Helper()
	nc, err := s.ConnectZone(zone)
	if err != nil {
		t.Fatal(err)
	}
	sub, err := nc.SubscribeSync(subject)
	if err == nil {
		err = nc.Flush()
	}
	if err != nil {
		t.Fatal(err)
	}
	return &broker{t, nc, sub}
}

// heard are the messages that have arrived. What a client published before a PONG to it is among them.
func (b *broker) heard() []*nats.Msg {
	b.t.Helper()
	if err := b.nc.Flush(); err != nil {
		b.t.Fatal(err)
	}
	var msgs []*nats.Msg
	for {
		n, _, err := b.sub.Pending()
		if err != nil {
			b.t.Fatal(err)
		}
		if n == 0 {
			return msgs
		}
		m, err := b.sub.NextMsg(patience)
		if err != nil {
			b.t.Fatal(err)
		}
		msgs = append(msgs, m)
	}
}

// heardNothing says that nothing has arrived.
func (b *broker) heardNothing() {
	b.t.Helper()
	for _, m := range b.heard() {
		b.t.Errorf("arrived: %s reply %q: %q", m.Subject, m.Reply, m.Data)
	}
}
