package broker_test

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/opencluster/oclocks/broker"
	"github.com/opencluster/oclocks/conf"
	"github.com/opencluster/oclocks/internal/brokertest"
	"github.com/opencluster/oclocks/subjects"
)

// tenants is a daemon with two zones of users and nobody else.
func tenants(t *testing.T) *broker.Daemon {
	return brokertest.Start(t, brokertest.WithZones(conf.Zone{Name: "red", LockEvents: true}, conf.Zone{Name: "blue"}))
}

// login connects a new user of a zone; subject builds the simple path's subject for its own token.
func login(t *testing.T, d *broker.Daemon, zone, name string, role conf.Role) (nc *nats.Conn, user string) {
	t.Helper()
	creds, user, err := d.Auth().IssueUser(zone, name, role, 0)
	if err != nil {
		t.Fatal(err)
	}
	return connect(t, url(d), nats.UserCredentialBytes(creds), nats.CustomInboxPrefix("_INBOX."+user)), user
}

func TestZonesDoNotMeet(t *testing.T) {
	d := tenants(t)
	red, redUser := login(t, d, "red", "alice", conf.RoleAdmin)
	blue, blueUser := login(t, d, "blue", "alice", conf.RoleAdmin)
	g := ask(t, red, "locks.acquire."+redUser, "secret/name").granted()
	events, err := blue.SubscribeSync("locks.event.lock.>")
	if err != nil {
		t.Fatal(err)
	}
	// The same name is another lock there, and nothing of the first one can be seen, ended or guessed.
	if got := ask(t, blue, "locks.query."+blueUser, "secret/name").text("state"); got != "free" {
		t.Errorf("blue sees %s", got)
	}
	key, token := g.text("key"), g.text("token")
	ask(t, blue, "locks.release."+blueUser, `{"name":"secret/name","key":"`+key+`"}`).refused(404, "not_held")
	ask(t, blue, "locks.force."+blueUser, `{"name":"secret/name","token":`+token+`,"reason":"x","now":true}`).refused(404, "not_held")
	if page := ask(t, blue, "locks.list."+blueUser, ""); len(page.fields["locks"].([]any)) != 0 {
		t.Errorf("blue lists %s", page.msg.Data)
	}
	other := ask(t, blue, "locks.acquire."+blueUser, "secret/name").granted()
	ask(t, red, "locks.release."+redUser, `{"name":"secret/name","key":"`+key+`"}`)
	ask(t, blue, "locks.renew."+blueUser, `{"name":"secret/name","key":"`+other.text("key")+`"}`).granted()
	if n, _, err := events.Pending(); err != nil || n != 0 {
		t.Errorf("blue heard %d of red's events (%v)", n, err)
	}
	// A session of one zone is worth nothing in the other.
	session := ask(t, red, "locks.session-open."+redUser, "{}").text("session")
	ask(t, blue, "locks.acquire."+blueUser, fmt.Sprintf(`{"name":"x","session":%q,"request":1}`, session)).refused(410, "session")
}

func TestRoles(t *testing.T) {
	d := tenants(t)
	admin, adminUser := login(t, d, "red", "root", conf.RoleAdmin)
	user, userUser := login(t, d, "red", "bob", conf.RoleUser)
	viewer, viewerUser := login(t, d, "red", "eve", conf.RoleViewer)
	g := ask(t, user, "locks.acquire."+userUser, "r").granted()
	ask(t, viewer, "locks.query."+viewerUser, "r")
	body := `{"name":"r","token":` + g.text("token") + `,"reason":"test","now":true}`
	mayNotPublish(t, viewer, "locks.acquire."+viewerUser)
	mayNotPublish(t, viewer, "locks.release."+viewerUser)
	mayNotPublish(t, user, "locks.force."+userUser)
	mayNotPublish(t, admin, "locks.force")
	mayNotPublish(t, user, "locks.acquire") // unnamed is off where there are users
	if forced := ask(t, admin, "locks.force."+adminUser, body); forced.text("ended") != "true" {
		t.Errorf("force: %s", forced.msg.Data)
	}
}

func TestNobodyActsForAnother(t *testing.T) {
	d := tenants(t)
	alice, aliceUser := login(t, d, "red", "alice", conf.RoleUser)
	mallory, malloryUser := login(t, d, "red", "mallory", conf.RoleAdmin)
	g := ask(t, alice, "locks.acquire."+aliceUser, "a").granted()
	session := ask(t, alice, "locks.session-open."+aliceUser, "{}")
	bucket := subjects.BucketOf("a", 32)
	for _, subject := range []string{
		"locks.release." + aliceUser, subjects.HotSubject(bucket, subjects.OpRelease, aliceUser),
		"locks.release.*", "locks.b.*.release." + aliceUser, "locks.release.anyone", "locks.keep." + aliceUser,
		"locks.event.lock.released.3", "_INBOX." + aliceUser + ".x", "b.3.cascade", "$SYS.REQ.SERVER.PING",
		"$SYS.ACCOUNT." + aliceUser + ".DISCONNECT", "raft.x", "node.x.y", "alert.x", "$OCLOCKS.forward.1",
	} {
		mayNotPublish(t, mallory, subject)
	}
	for _, subject := range []string{
		">", "locks.>", "locks.b.>", "locks.acquire.*", "locks.b.3.acquire.*", "_INBOX.>", "_INBOX." + aliceUser + ".>",
		"_INBOX.*.>", "locks.event.session." + aliceUser + ".>", "locks.event.session.*.>", "$SYS.>", "$SRV.>", "$OCLOCKS.>", "$OCLOCKS.forward.1",
	} {
		mayNotSubscribe(t, mallory, subject)
	}
	// Alice's session and its secret are worth nothing in Mallory's hands.
	ask(t, mallory, "locks.acquire."+malloryUser, fmt.Sprintf(`{"name":"b","session":%q,"request":1}`, session.text("session"))).refused(410, "session")
	ask(t, mallory, "locks.session-open."+malloryUser, fmt.Sprintf(`{"secret":%q}`, session.text("secret"))).refused(403, "denied")
	// Nor does the broker publish for Mallory: not into Alice's inbox, not as a request.
	victim, err := alice.SubscribeSync("_INBOX." + aliceUser + ".victim")
	if err != nil {
		t.Fatal(err)
	}
	if err := alice.Flush(); err != nil {
		t.Fatal(err)
	}
	for _, reply := range []string{"_INBOX." + aliceUser + ".victim", "locks.release." + aliceUser, "locks.event.cluster.down", "_INBOX.x"} {
		if err := mallory.PublishRequest("locks.query."+malloryUser, reply, []byte("a")); err != nil {
			t.Fatal(err)
		}
	}
	ask(t, mallory, "locks.query."+malloryUser, "a")
	ask(t, alice, "locks.renew."+aliceUser, `{"name":"a","key":"`+g.text("key")+`"}`).granted()
	if n, _, err := victim.Pending(); err != nil || n != 0 {
		t.Errorf("the broker published %d messages into another's inbox (%v)", n, err)
	}
}

// A name that a client gives itself in CONNECT, and headers that it forges, prove nothing.
func TestForgedConnectAndHeaders(t *testing.T) {
	d := brokertest.Start(t)
	held := ask(t, connect(t, url(d)), "locks.acquire", "f").granted()
	for _, name := range []string{"*", ">", "root", "UABC", "a.b", "anyone\r\nSUB > 1"} {
		raw := dialRaw(t, d, name)
		raw.send("SUB _INBOX.raw.> 1\r\n")
		raw.send("PUB locks.release.root _INBOX.raw.1 2\r\n{}\r\n")
		raw.expect("-ERR 'Permissions Violation")
		raw.send("PUB locks.force _INBOX.raw.1 2\r\n{}\r\n")
		raw.expect("-ERR 'Permissions Violation")
		head := "NATS/1.0\nNats-Request-Info: {\"user\":\"root\",\"acc\":\"x\"}\nOclocks-User: root\r\n\r\n"
		raw.send(fmt.Sprintf("HPUB locks.query.anyone _INBOX.raw.2 %d %d\r\n%sf\r\n", len(head), len(head)+1, head))
		if got := raw.expect("MSG _INBOX.raw.2"); strings.Contains(got, "root") {
			t.Errorf("a forged header got through: %s", got)
		}
		// Half a request, then the connection ends: nothing happens.
		raw.send("PUB locks.release.anyone _INBOX.raw.3 100\r\n{\"name\":\"f\",\"key\":\"" + held.text("key"))
		raw.conn.Close()
	}
	nc := connect(t, url(d))
	ask(t, nc, "locks.renew", `{"name":"f","key":"`+held.text("key")+`"}`).granted()
}

// mayNotPublish checks that the server refuses the publication.
func mayNotPublish(t *testing.T, nc *nats.Conn, subject string) {
	t.Helper()
	expectViolation(t, nc, "publish to "+subject, func() error { return nc.PublishRequest(subject, nc.NewInbox(), []byte(`{"name":"r"}`)) })
}

func mayNotSubscribe(t *testing.T, nc *nats.Conn, subject string) {
	t.Helper()
	expectViolation(t, nc, "subscribe to "+subject, func() error {
		_, err := nc.SubscribeSync(subject)
		return err
	})
	expectViolation(t, nc, "subscribe in the broker's group to "+subject, func() error {
		_, err := nc.QueueSubscribeSync(subject, "oclocks")
		return err
	})
}

// expectViolation waits for the permission error that the action must bring; it comes before the answer to a flush.
func expectViolation(t *testing.T, nc *nats.Conn, what string, action func() error) {
	t.Helper()
	errs := make(chan error, 16)
	nc.SetErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { errs <- err })
	if err := action(); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatalf("%s: flush: %v", what, err)
	}
	select {
	case err := <-errs:
		if !strings.Contains(strings.ToLower(err.Error()), "permissions violation") {
			t.Errorf("%s: %v", what, err)
		}
	case <-time.After(patience):
		t.Errorf("%s was allowed", what)
	}
}

// rawConn speaks the NATS protocol by hand.
type rawConn struct {
	t    *testing.T
	conn net.Conn
	in   *bufio.Reader
}

func dialRaw(t *testing.T, d *broker.Daemon, user string) *rawConn {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(url(d), "nats://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	r := &rawConn{t, conn, bufio.NewReader(conn)}
	r.expect("INFO")
	r.send(fmt.Sprintf("CONNECT {\"verbose\":false,\"headers\":true,\"no_responders\":true,\"user\":%q,\"pass\":\"x\",\"lang\":\"raw\"}\r\nPING\r\n", user))
	r.expect("PONG")
	return r
}

func (r *rawConn) send(text string) {
	r.t.Helper()
	if _, err := r.conn.Write([]byte(text)); err != nil {
		r.t.Fatal(err)
	}
}

// expect reads lines until one begins with prefix and returns it with the next.
func (r *rawConn) expect(prefix string) string {
	r.t.Helper()
	for {
		line, err := r.in.ReadString('\n')
		if err != nil {
			r.t.Fatalf("waiting for %q: %v", prefix, err)
		}
		if !strings.HasPrefix(line, prefix) {
			continue
		}
		if strings.HasPrefix(prefix, "MSG") {
			next, err := r.in.ReadString('\n')
			if err != nil {
				r.t.Fatal(err)
			}
			return line + next
		}
		return line
	}
}

// Where unnamed requests are allowed among users, they are answered in the inbox that all of them share, and in no other.
func TestUnnamedAmongUsers(t *testing.T) {
	unnamed := true
	d := brokertest.Start(t, brokertest.WithZones(conf.Zone{Name: "red", Unnamed: &unnamed}))
	creds, user, err := d.Auth().IssueUser("red", "alice", conf.RoleUser, 0)
	if err != nil {
		t.Fatal(err)
	}
	victim, _ := login(t, d, "red", "victim", conf.RoleUser)
	inbox, err := victim.SubscribeSync(victim.NewInbox())
	if err != nil {
		t.Fatal(err)
	}
	nc := connect(t, url(d), nats.UserCredentialBytes(creds), nats.CustomInboxPrefix("_INBOX.anyone"))
	if err := victim.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := nc.PublishRequest("locks.query", inbox.Subject, []byte("u")); err != nil {
		t.Fatal(err)
	}
	ask(t, nc, "locks.acquire", "u").granted()
	if n, _, err := inbox.Pending(); err != nil || n != 0 {
		t.Errorf("%d answers in another's inbox (%v)", n, err)
	}
	mayNotPublish(t, nc, "locks.force")
	mayNotSubscribe(t, nc, "_INBOX."+user+"x.>")
}
