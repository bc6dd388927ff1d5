package natsd

import (
	"errors"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/opencluster/oclocks/conf"
	"github.com/opencluster/oclocks/subjects"
)

func TestTheOpenZone(t *testing.T) {
	open := conf.Zone{Name: "default", Open: true, Role: conf.RoleAdmin}
	s, auth := start(t, open, conf.Zone{Name: "orders"})
	alice := issue(t, auth, "orders", "alice", conf.RoleUser)
	inOrders, b := listen(t, s, "orders", ">"), listen(t, s, "default", "locks.>")

	nobody := user{key: subjects.Anyone}
	for name, more := range map[string]map[string]any{
		"nothing": nil, "a name": {"user": alice.key, "pass": "x"}, "a token": {"auth_token": "x"}, "no JWT": {"jwt": "eyJ.x.y", "sig": "x"},
	} {
		c := login(t, s, nobody, more)
		sent := 0
		allowed := func(text string) { sent++; c.allowed(text) }
		for _, op := range conf.RoleAdmin.Ops() {
			allowed(pub("locks."+op.String()+".anyone", "_INBOX.1", "{}"))
			if op.OnName() {
				allowed(pub("locks.b.3."+op.String()+".anyone", "_INBOX.1", "{}"))
			}
			unnamed := pub("locks."+op.String(), "_INBOX.1", "{}")
			if op == subjects.OpForce || op == subjects.OpKeep {
				c.refused(unnamed)
			} else {
				allowed(unnamed)
			}
		}
		if n := len(b.heard()); n != sent {
			t.Errorf("with %s: %d requests of %d arrived", name, n, sent)
		}
		c.allowed("SUB _INBOX.> 1\r\nSUB locks.event.session.anyone.> 2\r\nSUB locks.event.lock.> 3\r\n")
		for _, subject := range []string{">", "locks.>", "locks.b.>", "locks.acquire.anyone", "$SYS.>", "locks.event.session.>"} {
			c.refused("SUB " + subject + " 4\r\n")
		}
		for _, subject := range []string{"locks.release." + alice.key, "locks.release.*", "locks.event.x", "_INBOX.1", "$SYS.REQ.SERVER.PING", "b.1.cascade"} {
			c.refused(pub(subject, "_INBOX.1", "{}"))
		}
		b.heardNothing()
	}
	inOrders.heardNothing()

	// Credentials win over being nobody.
	c := login(t, s, alice, nil)
	c.refused(pub("locks.acquire.anyone", "", "{}"))
	b.heardNothing()
}

func TestAnOpenZoneHasItsRole(t *testing.T) {
	s, _ := start(t, conf.Zone{Name: "default", Open: true})
	c := login(t, s, user{}, nil)
	c.allowed(pub("locks.acquire.anyone", "", ""))
	c.refused(pub("locks.force.anyone", "", ""))
	no := false
	if err := s.ApplyZones(within(t), []conf.Zone{{Name: "default", Open: true, Role: conf.RoleViewer, Unnamed: &no}}); err != nil {
		t.Fatal(err)
	}
	c.ended() // its permissions have changed
	c = login(t, s, user{}, nil)
	c.allowed(pub("locks.query.anyone", "", ""))
	c.refused(pub("locks.acquire.anyone", "", ""))
	c.refused(pub("locks.query", "", ""))
}

func TestWithoutAnOpenZoneNobodyComesIn(t *testing.T) {
	s, _ := start(t, conf.Zone{Name: "orders"})
	denied(t, s, user{})
}

func TestAZoneIsClosedAndOpenedAgain(t *testing.T) {
	no := false // so that the permissions of the named users stay the same
	open := conf.Zone{Name: "default", Open: true, Unnamed: &no}
	s, auth := start(t, open)
	u := issue(t, auth, "default", "u", conf.RoleUser)
	named, c := login(t, s, u, nil), login(t, s, user{}, nil)
	if err := s.ApplyZones(within(t), []conf.Zone{{Name: "default", Unnamed: &no}}); err != nil {
		t.Fatal(err)
	}
	c.ended()
	denied(t, s, user{})
	named.allowed("") // with credentials one stays
	if err := s.ApplyZones(within(t), []conf.Zone{open}); err != nil {
		t.Fatal(err)
	}
	login(t, s, user{}, nil).allowed(pub("locks.acquire.anyone", "", ""))

	// Another zone is the open one.
	before := login(t, s, user{}, nil)
	other := []conf.Zone{{Name: "default", Unnamed: &no}, {Name: "other", Open: true, Unnamed: &no}}
	if err := s.ApplyZones(within(t), other); err != nil {
		t.Fatal(err)
	}
	before.ended()
	named.allowed("")
	b := listen(t, s, "other", "locks.>")
	login(t, s, user{}, nil).allowed(pub("locks.acquire.anyone", "", ""))
	if n := len(b.heard()); n != 1 {
		t.Errorf("%d requests arrived in the new open zone", n)
	}
}

func TestAZoneIsOpenedWhereNoneWas(t *testing.T) {
	s, auth := start(t, conf.Zone{Name: "orders"})
	named := login(t, s, issue(t, auth, "orders", "u", conf.RoleUser), nil)
	denied(t, s, user{})
	if err := s.ApplyZones(within(t), []conf.Zone{{Name: "orders"}, {Name: "default", Open: true}}); err != nil {
		t.Fatal(err)
	}
	login(t, s, user{}, nil).allowed(pub("locks.acquire.anyone", "", ""))
	named.allowed("")
}

func TestZonesComeAndGo(t *testing.T) {
	a, b := conf.Zone{Name: "a"}, conf.Zone{Name: "b"}
	s, auth := start(t, a)
	ua := issue(t, auth, "a", "u", conf.RoleUser)
	if _, err := s.ConnectZone("b"); !errors.Is(err, ErrNoZone) {
		t.Errorf("zone b before: got %v, want ErrNoZone", err)
	}

	if err := s.ApplyZones(within(t), []conf.Zone{a, b}); err != nil {
		t.Fatal(err)
	}
	ub := issue(t, auth, "b", "u", conf.RoleUser)
	id, err := s.AccountID("b")
	if err != nil {
		t.Fatal(err)
	}
	if zone, ok := s.ZoneOf(id); zone != "b" || !ok {
		t.Errorf("account of b: %q, %t", zone, ok)
	}
	ca, cb := login(t, s, ua, nil), login(t, s, ub, nil)
	own, err := s.ConnectZone("b")
	if err != nil {
		t.Fatal(err)
	}

	if err := s.ApplyZones(within(t), []conf.Zone{a}); err != nil {
		t.Fatal(err)
	}
	cb.ended()
	denied(t, s, ub)
	if !own.IsClosed() {
		t.Error("the broker's own connection to a removed zone is open")
	}
	if _, ok := s.ZoneOf(id); ok {
		t.Error("the account of b is still a zone's")
	}
	if _, err := s.ConnectZone("b"); !errors.Is(err, ErrNoZone) {
		t.Errorf("zone b after: got %v, want ErrNoZone", err)
	}
	ca.allowed(pub("locks.acquire."+ua.key, "", ""))

	if err := s.ApplyZones(within(t), []conf.Zone{a, b}); err != nil { // with the same keys
		t.Fatal(err)
	}
	login(t, s, ub, nil)

	// Once its keys are gone as well, old credentials never count again.
	if err := auth.RemoveZone("b"); err != nil {
		t.Fatal(err)
	}
	if err := s.ApplyZones(within(t), []conf.Zone{a, b}); err != nil {
		t.Fatal(err)
	}
	denied(t, s, ub)
	login(t, s, issue(t, auth, "b", "u", conf.RoleUser), nil)
}

func TestSettingsOfAZoneChange(t *testing.T) {
	s, auth := start(t, conf.Zone{Name: "a"})
	u := issue(t, auth, "a", "u", conf.RoleUser)
	c := login(t, s, u, nil)
	c.refused(pub("locks.query", "", "x"))
	yes := true
	if err := s.ApplyZones(within(t), []conf.Zone{{Name: "a", Unnamed: &yes}}); err != nil {
		t.Fatal(err)
	}
	c = login(t, s, u, nil) // the same credentials can do more
	c.allowed(pub("locks.query", "", "x"))

	own, err := s.ConnectZone("a") // signed by the account's own key, so changes of a role leave it alone
	if err != nil {
		t.Fatal(err)
	}
	if err := s.ApplyZones(within(t), []conf.Zone{{Name: "a"}}); err != nil {
		t.Fatal(err)
	}
	if err := own.Flush(); err != nil || own.Reconnects != 0 {
		t.Errorf("the broker's own connection: %v, %d reconnects", err, own.Reconnects)
	}
}

func TestConnectionsAreCounted(t *testing.T) {
	s, auth := start(t, conf.Zone{Name: "a", Quota: conf.Quota{Connections: 2}}, conf.Zone{Name: "b"})
	for range conf.InternalConnections {
		if _, err := s.ConnectZone("a"); err != nil {
			t.Fatal(err)
		}
	}
	u := issue(t, auth, "a", "u", conf.RoleUser)
	login(t, s, u, nil)
	login(t, s, u, nil)
	c := dial(t, s)
	if _, err := c.conn.Write([]byte(u.connect(t, c.info.Nonce, nil))); err != nil {
		t.Fatal(err)
	}
	if out := strings.Join(c.ended(), " "); !strings.Contains(out, "maximum account active connections exceeded") {
		t.Errorf("got %q", out)
	}
	login(t, s, issue(t, auth, "b", "u", conf.RoleUser), nil)
}

// What is published while a connection of the broker is away must not come out later.
func TestNothingIsKeptWhileAConnectionIsAway(t *testing.T) {
	s, _ := start(t, conf.Zone{Name: "a"})
	back, gone := make(chan struct{}, 1), make(chan struct{}, 1)
	var failed error
	nc, err := s.ConnectZone("a",
		nats.DisconnectErrHandler(func(nc *nats.Conn, _ error) {
			failed = nc.Publish("x", nil)
			gone <- struct{}{}
		}),
		nats.ReconnectHandler(func(*nats.Conn) { back <- struct{}{} }))
	if err != nil {
		t.Fatal(err)
	}
	cid, err := nc.GetClientID()
	if err != nil {
		t.Fatal(err)
	}
	b := listen(t, s, "a", "x")
	if err := s.ns.DisconnectClientByID(cid); err != nil {
		t.Fatal(err)
	}
	ctx := within(t)
	for _, event := range []chan struct{}{gone, back} {
		select {
		case <-event:
		case <-ctx.Done():
			t.Fatal("the connection does not come back")
		}
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	if got := len(b.heard()); failed != nil && got != 0 || failed == nil && got == 0 {
		t.Errorf("publish while away: error %v, and %d messages arrived", failed, got)
	}
}
