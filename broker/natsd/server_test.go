package natsd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/opencluster/oclocks/conf"
	"github.com/opencluster/oclocks/subjects"
)

func jwtOf(t *testing.T, u user) string {
	t.Helper()
	token, err := jwt.ParseDecoratedJWT(u.creds)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// closedEvents hears of closed connections, as the broker does.
type closedEvents struct {
	t   *testing.T
	s   *Server
	sub *nats.Subscription
}

func watchClosed(t *testing.T, s *Server) *closedEvents {
	t.Helper()
	nc, err := s.ConnectSystem()
	if err != nil {
		t.Fatal(err)
	}
	sub, err := nc.SubscribeSync(DisconnectSubject)
	if err == nil {
		err = nc.Flush()
	}
	if err != nil {
		t.Fatal(err)
	}
	return &closedEvents{t, s, sub}
}

// next waits for the event of that connection.
func (w *closedEvents) next(c *raw) Closed {
	w.t.Helper()
	for {
		m, err := w.sub.NextMsg(patience)
		if err != nil {
			w.t.Fatalf("no event of connection %d: %v", c.info.CID, err)
		}
		e, ok, err := w.s.Closed(m.Subject, m.Data)
		if err != nil {
			w.t.Fatal(err)
		}
		if ok && e.CID == c.info.CID && e.Server == c.info.ID {
			return e
		}
	}
}

func TestWhoClosedAConnection(t *testing.T) {
	s, auth := start(t, conf.Zone{Name: "orders"})
	u := issue(t, auth, "orders", "u", conf.RoleUser)
	events := watchClosed(t, s)

	c := login(t, s, u, nil)
	c.conn.Close()
	if e := events.next(c); !e.ByClient || e.Zone != "orders" || e.Reason != "Client Closed" || e.Lane {
		t.Errorf("closed: %+v", e)
	}

	c = login(t, s, u, map[string]any{"name": subjects.LaneName + "x"})
	c.conn.Close()
	if e := events.next(c); !e.ByClient || !e.Lane {
		t.Errorf("a lane: %+v", e)
	}

	c = login(t, s, u, nil)
	if err := c.conn.(*net.TCPConn).SetLinger(0); err != nil { // close resets then, as for a killed client with unread data
		t.Fatal(err)
	}
	c.conn.Close()
	if e := events.next(c); !e.ByClient || e.Reason != "Read Error" {
		t.Errorf("reset: %+v", e)
	}

	c = login(t, s, u, nil)
	if _, err := c.conn.Write([]byte("PUB x 10000000\r\n")); err != nil {
		t.Fatal(err)
	}
	c.ended()
	if e := events.next(c); e.ByClient || e.Reason != "Maximum Message Payload Exceeded" {
		t.Errorf("too large: %+v", e)
	}

	c = login(t, s, u, nil)
	if err := s.ns.DisconnectClientByID(c.info.CID); err != nil {
		t.Fatal(err)
	}
	c.ended()
	if e := events.next(c); e.ByClient || e.Reason != "Kicked" {
		t.Errorf("kicked: %+v", e)
	}
}

func TestParseDisconnect(t *testing.T) {
	event := func(kind, reason string) []byte {
		var m server.DisconnectEventMsg
		m.Server.ID, m.Client.ID, m.Client.Kind, m.Reason = "NSERVER", 7, kind, reason
		data, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	const subject = "$SYS.ACCOUNT.AZONE.DISCONNECT"
	for reason := server.ClientClosed; reason.String() != "Unknown State"; reason++ {
		c, err := ParseDisconnect(subject, event("Client", reason.String()))
		want := Closed{Account: "AZONE", Server: "NSERVER", CID: 7, Reason: reason.String()}
		want.ByClient = reason == server.ClientClosed || reason == server.ReadError || reason == server.WriteError
		if err != nil || c != want {
			t.Errorf("%s: got %+v, %v", reason, c, err)
		}
	}
	if c, err := ParseDisconnect(subject, event("Leafnode", "Client Closed")); err != nil || c.ByClient {
		t.Errorf("leaf node: %+v, %v", c, err)
	}
	good := event("Client", "Client Closed")
	for _, bad := range []struct {
		subject string
		data    []byte
	}{
		{"$SYS.ACCOUNT.AZONE.CONNECT", good}, {"$SYS.ACCOUNT.AZONE", good}, {"$SYS.SERVER.AZONE.DISCONNECT", good}, {"", good},
		{subject, nil}, {subject, []byte("{}")}, {subject, good[:len(good)/2]}, {subject, []byte(`{"server":{"id":"N"},"client":{"id":"7"}}`)},
	} {
		if _, err := ParseDisconnect(bad.subject, bad.data); !errors.Is(err, ErrEvent) {
			t.Errorf("%q %q: got %v", bad.subject, bad.data, err)
		}
	}
}

func TestStartOnAnAddressInUse(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	auth, err := conf.NewAuth()
	if err != nil {
		t.Fatal(err)
	}
	for _, listen := range []string{l.Addr().String(), "nowhere", "127.0.0.1:x", "127.0.0.1:70000"} {
		began := time.Now()
		_, err := Start(within(t), Config{ServerName: "n1", Listen: listen, Auth: auth, Logger: slog.New(slog.DiscardHandler)})
		if err == nil || !strings.Contains(err.Error(), listen[len(listen)-1:]) {
			t.Errorf("%s: got %v", listen, err)
		}
		if d := time.Since(began); d > readyTimeout/2 {
			t.Errorf("%s: told only after %s", listen, d)
		}
	}
}

func TestLameDuck(t *testing.T) {
	s, auth := start(t, conf.Zone{Name: "orders"})
	u := issue(t, auth, "orders", "u", conf.RoleUser)
	own, err := s.ConnectZone("orders")
	if err != nil {
		t.Fatal(err)
	}
	own.Close()
	addr := s.Addr().String()
	c := login(t, s, u, nil)
	done := make(chan error, 1)
	go func() { done <- s.LameDuck(within(t)) }()
	line := c.line()
	for !strings.Contains(line, `"ldm":true`) {
		line = c.line()
	}
	if !strings.HasPrefix(line, "INFO ") {
		t.Errorf("got %q", line)
	}
	if _, err := s.ConnectZone("orders"); !errors.Is(err, ErrStopping) {
		t.Errorf("connect: got %v, want ErrStopping", err)
	}
	if err := s.ApplyZones(within(t), nil); !errors.Is(err, ErrStopping) {
		t.Errorf("apply: got %v, want ErrStopping", err)
	}
	if _, err := net.DialTimeout("tcp", addr, time.Second); err == nil {
		t.Error("it still listens")
	}
	c.allowed(pub("locks.query."+u.key, "", "")) // those who are there are still served
	if err := <-done; err != nil {
		t.Error(err)
	}
	c.ended()
}

func TestLameDuckIsCutShort(t *testing.T) {
	auth, err := conf.NewAuth()
	if err != nil {
		t.Fatal(err)
	}
	s := startWith(t, Config{Auth: auth, Zones: []conf.Zone{{Name: "orders"}}, LameDuck: time.Hour})
	c := login(t, s, issue(t, auth, "orders", "u", conf.RoleUser), nil)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.LameDuck(ctx) }()
	for !strings.Contains(c.line(), `"ldm":true`) {
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	c.ended()
}

func TestStats(t *testing.T) {
	s, auth := start(t, conf.Zone{Name: "a"}, conf.Zone{Name: "b"})
	listen(t, s, "a", "x")
	for range 3 {
		login(t, s, issue(t, auth, "a", "u", conf.RoleUser), nil)
	}
	if got := fmt.Sprint(s.Stats().Connections); got != "map[a:3 b:0]" {
		t.Errorf("got %s", got)
	}
	if st := s.Stats(); st.Subscriptions < 1 || st.SlowConsumers != 0 {
		t.Errorf("got %+v", st)
	}
}
