package natsd

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/opencluster/oclocks/conf"
	"github.com/opencluster/oclocks/subjects"
)

// These tests do what a client must not be able to do, with connections that write the protocol by hand.

func TestAUserHearsOnlyWhatIsItsOwn(t *testing.T) {
	s, auth := start(t, conf.Zone{Name: "orders"})
	mallory := issue(t, auth, "orders", "mallory", conf.RoleAdmin)
	alice := issue(t, auth, "orders", "alice", conf.RoleUser)
	zone, err := s.AccountID("orders")
	if err != nil {
		t.Fatal(err)
	}
	c := login(t, s, mallory, nil)
	for _, subject := range []string{
		">", "*", "*.>", "*.*", "locks.>", "locks.*", "locks.*.*", "locks.b.>", "locks.b.3.>", "locks.b.*.acquire.*",
		"locks.acquire", "locks.acquire.*", "locks.acquire." + alice.key, "locks.acquire." + mallory.key, "locks.keep.>",
		"locks.event.>", "locks.event.*.>", "locks.event.session.>", "locks.event.session.*.>", "locks.event.session." + alice.key + ".>",
		"locks.event.session." + alice.key + ".abc", "locks.event.session." + mallory.key, // a session's id must follow
		"_INBOX.>", "_INBOX.*", "_INBOX.*.>", "_INBOX.*.*", "_INBOX." + alice.key + ".>", "_INBOX." + alice.key + ".*",
		"_INBOX." + mallory.key, "_INBOX." + mallory.key + "x.>", "_INBOX.other", "_R_.>", "_GR_.>", "$SRV.>", "$SRV.PING", "$JS.>", "$KV.>", "$MQTT.>",
		"$SYS.>", "$SYS.ACCOUNT.>", "$SYS.ACCOUNT." + zone + ".>", "$SYS.ACCOUNT.*.DISCONNECT", "$SYS.REQ.USER.INFO",
		"b.>", "b.1.cascade", "raft.>", "node.>", "alert.>",
	} {
		c.refused("SUB " + subject + " 1\r\n")
		c.refused("SUB " + subject + " oclocks 1\r\n") // as one of the broker's queue group
	}
	for _, subject := range []string{
		"_INBOX." + mallory.key + ".>", "_INBOX." + mallory.key + ".*", "_INBOX." + mallory.key + ".x.y",
		"locks.event.server.>", "locks.event.server.up.*", "locks.event.cluster.>", "locks.event.lock.>", "locks.event.lock.granted.3",
		"locks.event.session." + mallory.key + ".>", "locks.event.session." + mallory.key + ".abc",
	} {
		c.allowed("SUB " + subject + " 2\r\n")
	}

	// None of the refused subscriptions is there in secret.
	b := listen(t, s, "orders", "nothing")
	for _, subject := range []string{
		"locks.b.3.acquire." + alice.key, "_INBOX." + alice.key + ".1", "locks.event.session." + alice.key + ".abc", "x",
	} {
		if err := b.nc.Publish(subject, []byte("secret")); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.nc.Flush(); err != nil {
		t.Fatal(err)
	}
	if out := c.do(""); len(out) != 0 {
		t.Errorf("heard %q", out)
	}
}

func TestAUserSpeaksOnlyAsItself(t *testing.T) {
	s, auth := start(t, conf.Zone{Name: "orders"})
	mallory := issue(t, auth, "orders", "mallory", conf.RoleAdmin)
	alice := issue(t, auth, "orders", "alice", conf.RoleUser)
	zone, err := s.AccountID("orders")
	if err != nil {
		t.Fatal(err)
	}
	b := listen(t, s, "orders", ">")
	c := login(t, s, mallory, nil)
	inbox := "_INBOX." + mallory.key + ".1"
	for _, subject := range []string{
		"locks.b.3.release." + alice.key, "locks.release." + alice.key, "locks.keep." + alice.key, "locks.keep.node." + alice.key,
		"locks.b.3.release.*", "locks.b.3.release.>", "locks.release.*", "locks.release.>", "locks.b.3.release.anyone", "locks.release.anyone",
		"locks.b.3.release", "locks.b.3.release." + mallory.key + ".x", "locks.b.3.x.release." + mallory.key, "locks.b.3.keep." + mallory.key,
		"locks.b.3.info." + mallory.key, "locks.b.3.release." + mallory.key + "x", "locks.b.3.release." + strings.ToLower(mallory.key),
		"locks.acquire", "locks.force", "locks.release", "locks.list", "locks", "locks.>", "locks.keep", "locks.sing." + mallory.key,
		"locks.event.x", "locks.event.session." + alice.key + ".abc", "locks.event.session." + mallory.key + ".abc", "locks.event.server.down.n1",
		"locks.event.lock.granted.3", inbox, "_INBOX." + alice.key + ".1", "_INBOX.x",
		"$SYS.REQ.SERVER.PING", "$SYS.REQ.ACCOUNT." + zone + ".CLAIMS.UPDATE", "$SYS.REQ.CLAIMS.UPDATE", "$SYS.REQ.CLAIMS.DELETE",
		"$SYS.REQ.SERVER." + s.ID() + ".KICK", "$SYS.REQ.SERVER." + s.ID() + ".RELOAD", "$SYS.ACCOUNT." + zone + ".DISCONNECT",
		"$SYS.REQ.ACCOUNT.PING.CONNZ", "$SYS.REQ.ACCOUNT." + zone + ".INFO", "$SYS.REQ.USER.AUTH",
		"b.1.cascade", "b.1.join", "raft.n1", "node.n1.x", "alert.x", "$JS.API.INFO", "$SRV.PING.other", "$SRV.INFO.oclocks.id.x",
	} {
		c.refused(pub(subject, inbox, "{}"))
		c.refused(hpub(subject, inbox, "NATS/1.0\r\nA: b\r\n\r\n", "{}"))
	}
	b.heardNothing()

	c.allowed(pub("locks.b.3.release."+mallory.key, inbox, "own"))
	if msgs := b.heard(); len(msgs) != 1 || string(msgs[0].Data) != "own" || msgs[0].Reply != inbox {
		t.Errorf("the own request did not arrive: %v", msgs)
	}
}

// A wildcard in the place of the bucket is allowed by the pattern of the permission, and must reach no bucket.
func TestAWildcardForABucketReachesNone(t *testing.T) {
	s, auth := start(t, conf.Zone{Name: "orders"})
	mallory := issue(t, auth, "orders", "mallory", conf.RoleAdmin)
	b := listen(t, s, "orders", "locks.b.3.>")
	c := login(t, s, mallory, nil)
	for _, subject := range []string{"locks.b.*.release." + mallory.key, "locks.b.>.release." + mallory.key} {
		c.do(pub(subject, "_INBOX."+mallory.key+".1", "{}")) // whether it is refused or not
	}
	b.heardNothing()
}

func TestWhatConnectSaysIsNoIdentity(t *testing.T) {
	s, auth := start(t, conf.Zone{Name: "orders"})
	mallory := issue(t, auth, "orders", "mallory", conf.RoleUser)
	alice := issue(t, auth, "orders", "alice", conf.RoleUser)
	b := listen(t, s, "orders", ">")
	for _, name := range []string{alice.key, "alice", "*", ">", subjects.Anyone, "a.b", ""} {
		for _, field := range []string{"user", "name", "nkey", "auth_token"} {
			more := map[string]any{field: name, "pass": "x"}
			c := login(t, s, mallory, more)
			c.refused(pub("locks.release."+alice.key, "", "{}"))
			c.refused(pub("locks.b.3.release."+alice.key, "", "{}"))
			c.refused("SUB _INBOX." + alice.key + ".> 1\r\n")
			b.heardNothing()
			c.allowed(pub("locks.release."+mallory.key, "", "{}"))
			if msgs := b.heard(); len(msgs) != 1 || msgs[0].Subject != "locks.release."+mallory.key {
				t.Errorf("CONNECT %s %q: %v", field, name, msgs)
			}
		}
	}
}

func TestConnectChoosesNoAccount(t *testing.T) {
	s, auth := start(t, conf.Zone{Name: "orders"}, conf.Zone{Name: "other"})
	u := issue(t, auth, "orders", "u", conf.RoleAdmin)
	other, err := s.AccountID("other")
	if err != nil {
		t.Fatal(err)
	}
	for _, account := range []string{other, "other", "SYS", "OCLOCKS", "$SYS", "$G"} {
		c := dial(t, s)
		if _, err := c.conn.Write([]byte(u.connect(t, c.info.Nonce, map[string]any{"account": account, "new_account": true}) + "PING\r\n")); err != nil {
			t.Fatal(err)
		}
		if out := c.ended(); slices.Contains(out, "PONG") {
			t.Errorf("account %s: connected", account)
		}
	}
}

// Somebody else's JWT is no use without the key that belongs to it.
func TestAJWTNeedsItsKey(t *testing.T) {
	s, auth := start(t, conf.Zone{Name: "orders"})
	mallory := issue(t, auth, "orders", "mallory", conf.RoleUser)
	alice := issue(t, auth, "orders", "alice", conf.RoleUser)
	c := dial(t, s)
	connect := mallory.connect(t, c.info.Nonce, map[string]any{"jwt": jwtOf(t, alice)})
	if _, err := c.conn.Write([]byte(connect)); err != nil {
		t.Fatal(err)
	}
	if out := c.ended(); len(out) != 1 || out[0] != "-ERR 'Authorization Violation'" {
		t.Errorf("got %q", out)
	}
}

// Headers can be forged whole, also with a bare line feed. The subject cannot, and it is what the broker goes by.
func TestForgedHeadersChangeNoSubject(t *testing.T) {
	s, auth := start(t, conf.Zone{Name: "orders"})
	mallory := issue(t, auth, "orders", "mallory", conf.RoleUser)
	alice := issue(t, auth, "orders", "alice", conf.RoleUser)
	b := listen(t, s, "orders", ">")
	c := login(t, s, mallory, nil)
	own := "locks.release." + mallory.key
	for _, header := range []string{
		"NATS/1.0\r\nA: b\nNats-Request-Info: {\"user\":\"" + alice.key + "\"}\r\n\r\n",
		"NATS/1.0\r\nNats-Request-Info: {\"acc\":\"SYS\"}\n\r\n\r\n",
		"NATS/1.0\nA: b\n\n",
		"NATS/1.0\r\nA: b\r\n\r\nPUB locks.release." + alice.key + " 2\r\n{}\r\n",
		"NATS/1.0\r\nNats-Trace-Dest: locks.release." + alice.key + "\r\n\r\n",
		"NATS/1.0\r\nNats-Trace-Dest: locks.event.session." + alice.key + ".abc\r\nNats-Trace-Only: true\r\n\r\n",
		"NATS/1.0\r\nNats-Trace-Dest: _INBOX." + alice.key + ".1\r\n\r\n",
	} {
		c.do(hpub(own, "", header, "{}"))
		for _, m := range b.heard() {
			if m.Subject != own {
				t.Errorf("header %q: arrived on %s", header, m.Subject)
			}
		}
	}
}

// The NATS server answers $SYS.REQ.USER.INFO on whatever reply subject the user names, a confused deputy. What it says
// has no reply subject, and the broker drops such requests.
func TestWhatTheServerSaysForAUserCarriesNoReply(t *testing.T) {
	s, auth := start(t, conf.Zone{Name: "orders"})
	mallory := issue(t, auth, "orders", "mallory", conf.RoleUser)
	alice := issue(t, auth, "orders", "alice", conf.RoleUser)
	b := listen(t, s, "orders", "locks.>")
	c := login(t, s, mallory, nil)
	c.allowed(pub("$SYS.REQ.USER.INFO", "locks.release."+alice.key, ""))
	m, err := b.sub.NextMsg(patience) // the server answers from another goroutine
	if err != nil {
		t.Fatal(err)
	}
	if m.Reply != "" {
		t.Errorf("it has the reply subject %q", m.Reply)
	}

	own := "_INBOX." + mallory.key + ".1"
	c.allowed("SUB " + own + " 1\r\n")
	if _, err := c.conn.Write([]byte(pub("$SYS.REQ.USER.INFO", own, ""))); err != nil {
		t.Fatal(err)
	}
	if line := c.line(); !strings.HasPrefix(line, "MSG "+own) && !strings.HasPrefix(line, "HMSG "+own) {
		t.Errorf("got %q", line)
	}
}

func TestARoleIsNotExceeded(t *testing.T) {
	unnamed := true
	s, auth := start(t, conf.Zone{Name: "orders"}, conf.Zone{Name: "loose", Unnamed: &unnamed})
	for _, role := range conf.Roles() {
		for _, zone := range []string{"orders", "loose"} {
			u := issue(t, auth, zone, "u", role)
			b := listen(t, s, zone, ">")
			c := login(t, s, u, nil)
			for op := subjects.OpAcquire; op.String() != ""; op++ {
				forms := map[string]bool{
					"locks." + op.String() + "." + u.key:     role.Allows(op),
					"locks.b.7." + op.String() + "." + u.key: role.Allows(op) && (op.OnName() || op == subjects.OpSessionClose),
					"locks." + op.String():                   zone == "loose" && role.Allows(op) && op != subjects.OpForce && op != subjects.OpKeep,
				}
				if op == subjects.OpKeep {
					forms["locks.keep.node."+u.key] = role.Allows(op)
				}
				for subject, want := range forms {
					c.do(pub(subject, "", "{}"))
					if got := len(b.heard()) == 1; got != want {
						t.Errorf("%s in %s: %s: arrived %t, want %t", role, zone, subject, got, want)
					}
				}
			}
			for _, subject := range []string{"$SRV.PING", "$SRV.INFO.oclocks", "$SRV.STATS.oclocks.id"} {
				if c.do(pub(subject, "", "")); len(b.heard()) != 1 {
					t.Errorf("%s in %s: %s did not arrive", role, zone, subject)
				}
			}
		}
	}
}

func TestZonesDoNotHearEachOther(t *testing.T) {
	shared := conf.Zone{Name: "b", SharedInboxes: true}
	s, auth := start(t, conf.Zone{Name: "a"}, shared, conf.Zone{Name: "open", Open: true, Role: conf.RoleAdmin})
	ua, ub := issue(t, auth, "a", "u", conf.RoleAdmin), issue(t, auth, "b", "u", conf.RoleAdmin)
	brokers := map[string]*broker{}
	for _, zone := range []string{"a", "b", "open"} {
		brokers[zone] = listen(t, s, zone, ">")
	}
	nodes, err := s.ConnectNodes()
	if err != nil {
		t.Fatal(err)
	}
	inNodes, err := nodes.SubscribeSync(">")
	if err != nil {
		t.Fatal(err)
	}
	listener := login(t, s, ub, nil)
	listener.allowed("SUB _INBOX.> 1\r\nSUB locks.event.server.> 2\r\nSUB locks.event.lock.> 3\r\n")

	c := login(t, s, ua, nil)
	for _, subject := range []string{"locks.b.3.acquire." + ua.key, "locks.acquire." + ua.key, "locks.force." + ua.key, "$SRV.PING", "locks.keep." + ua.key} {
		c.allowed(pub(subject, "_INBOX."+ua.key+".1", "{}"))
	}
	for _, subject := range []string{"_INBOX." + ub.key + ".1", "locks.event.server.up.n1", "locks.event.lock.granted.3", "locks.b.3.acquire." + ub.key, "b.1.cascade", "$SRV.PING", "anything"} {
		if err := brokers["a"].nc.Publish(subject, nil); err != nil { // even the broker itself stays inside the zone
			t.Fatal(err)
		}
	}
	if n := len(brokers["a"].heard()); n != 12 {
		t.Errorf("zone a heard %d messages, want 12", n)
	}
	brokers["b"].heardNothing()
	brokers["open"].heardNothing()
	if out := listener.do(""); len(out) != 0 {
		t.Errorf("a client of zone b heard %q", out)
	}
	if err := nodes.Flush(); err != nil {
		t.Fatal(err)
	}
	if n, _, err := inNodes.Pending(); n != 0 || err != nil {
		t.Errorf("the account of the nodes heard %d messages (%v)", n, err)
	}
}

func TestJetStreamIsAbsent(t *testing.T) {
	s, _ := start(t, conf.Zone{Name: "orders"})
	b := listen(t, s, "orders", "x")
	if _, err := b.nc.Request("$JS.API.INFO", nil, patience); err != nats.ErrNoResponders { //nolint:errorlint // exactly this one
		t.Errorf("got %v, want %v", err, nats.ErrNoResponders)
	}
}

func TestSharedInboxes(t *testing.T) {
	s, auth := start(t, conf.Zone{Name: "orders", SharedInboxes: true})
	u := issue(t, auth, "orders", "u", conf.RoleUser)
	c := login(t, s, u, nil)
	c.allowed("SUB _INBOX.whatever 1\r\n")
	c.refused("SUB locks.> 2\r\n")
	c.refused("SUB locks.event.session.other.> 3\r\n")
}

func TestExpiredCredentialsEnd(t *testing.T) {
	s, auth := start(t, conf.Zone{Name: "orders"})
	creds, key, err := auth.IssueUser("orders", "short", conf.RoleUser, 4*time.Second) // whole seconds, and some of them are gone until it is connected
	if err != nil {
		t.Fatal(err)
	}
	u := user{key, creds}
	events := watchClosed(t, s)
	c := login(t, s, u, nil)
	if out := c.ended(); len(out) == 0 || !strings.Contains(strings.Join(out, " "), "Expired") {
		t.Errorf("ended with %q", out)
	}
	if e := events.next(c); e.ByClient || e.Reason != server.AuthenticationExpired.String() {
		t.Errorf("event %+v", e)
	}
	denied(t, s, u)
}

func TestRevokedCredentialsEnd(t *testing.T) {
	zones := []conf.Zone{{Name: "orders"}, {Name: "other"}}
	s, auth := start(t, zones...)
	gone, stays := issue(t, auth, "orders", "gone", conf.RoleUser), issue(t, auth, "orders", "stays", conf.RoleUser)
	events := watchClosed(t, s)
	c, d := login(t, s, gone, nil), login(t, s, stays, nil)
	if _, err := auth.RevokeUser("orders", "gone"); err != nil {
		t.Fatal(err)
	}
	if err := s.ApplyZones(within(t), zones); err != nil {
		t.Fatal(err)
	}
	c.ended()
	if e := events.next(c); e.ByClient || e.Zone != "orders" || e.Reason != server.Revocation.String() {
		t.Errorf("event %+v", e)
	}
	denied(t, s, gone)
	d.allowed(pub("locks.query."+stays.key, "", "{}"))
	login(t, s, stays, nil)
}

// Credentials of another cluster do not count, and do not fall through to the open zone either.
func TestCredentialsOfAnotherOperatorAreRefused(t *testing.T) {
	s, auth := start(t, conf.Zone{Name: "orders"}, conf.Zone{Name: "open", Open: true})
	other, err := conf.NewAuth()
	if err != nil {
		t.Fatal(err)
	}
	if err := other.EnsureZone("orders"); err != nil {
		t.Fatal(err)
	}
	denied(t, s, issue(t, other, "orders", "u", conf.RoleUser))

	// Nor do those of a zone that has keys but is not served.
	if err := auth.EnsureZone("dormant"); err != nil {
		t.Fatal(err)
	}
	denied(t, s, issue(t, auth, "dormant", "u", conf.RoleUser))
}

// denied says that the server refuses the user.
func denied(t *testing.T, s *Server, u user) {
	t.Helper()
	c := dial(t, s)
	if _, err := c.conn.Write([]byte(u.connect(t, c.info.Nonce, nil))); err != nil {
		t.Fatal(err)
	}
	if out := strings.Join(c.ended(), " "); !strings.HasPrefix(out, "-ERR 'Authorization Violation'") && !strings.HasPrefix(out, "-ERR 'User Authentication ") {
		t.Errorf("got %q, want a refusal", out)
	}
}
