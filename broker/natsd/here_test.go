package natsd

import (
	"errors"
	"testing"

	"github.com/opencluster/oclocks/conf"
)

// Requests of a server's clients go where Here says, also when the zone's settings, or the server's, have changed, until it is ended.
func TestHere(t *testing.T) {
	orders := conf.Zone{Name: "orders"}
	s, auth := start(t, orders, conf.Zone{Name: "default", Open: true, Role: conf.RoleAdmin})
	issued := issue(t, auth, "orders", "alice", conf.RoleUser)
	alice, user := login(t, s, issued, nil), issued.key
	heard := listen(t, s, "orders", "locks.>")
	arrives := func(subject, at string) {
		t.Helper()
		alice.allowed(pub(subject, "_INBOX."+user+".1", "{}"))
		if got := heard.heard(); len(got) != 1 || got[0].Subject != at {
			t.Errorf("%s arrived as %v, not at %s", subject, got, at)
		}
	}
	acquire, here := "locks.acquire."+user, "locks.b.@3.acquire."+user
	arrives(acquire, acquire)
	if err := s.Here("orders", map[string]string{"locks.acquire.*": "locks.b.@3.acquire.{{wildcard(1)}}"}); err != nil {
		t.Fatal(err)
	}
	arrives(acquire, here)
	arrives("locks.release."+user, "locks.release."+user)
	arrives("locks.b.3.acquire."+user, "locks.b.3.acquire."+user)
	alice.refused(pub("locks.acquire.bob", "_INBOX."+user+".1", "{}")) // what is not allowed is not allowed here either
	heard.heardNothing()

	orders.SharedInboxes = true
	if err := s.ApplyZones(t.Context(), []conf.Zone{orders, {Name: "default", Open: true, Role: conf.RoleAdmin}, {Name: "more"}}); err != nil {
		t.Fatal(err)
	}
	alice = login(t, s, issued, nil) // its inboxes have changed
	arrives(acquire, here)
	if err := s.ApplyZones(t.Context(), []conf.Zone{orders, {Name: "more", Open: true, Role: conf.RoleAdmin}, {Name: "default"}}); err != nil { // a reload
		t.Fatal(err)
	}
	arrives(acquire, here)

	if err := s.Here("orders", nil); err != nil {
		t.Fatal(err)
	}
	arrives(acquire, acquire)
	if err := s.Here("nowhere", nil); !errors.Is(err, ErrNoZone) {
		t.Errorf("a zone that is not there: %v", err)
	}
}
