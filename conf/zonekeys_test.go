package conf_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/opencluster/oclocks/conf"
)

// What one node's keys are, another node follows; credentials that were issued from the shared keys count there.
func TestFollow(t *testing.T) {
	here, err := conf.NewAuth()
	if err != nil {
		t.Fatal(err)
	}
	there, err := conf.OpenAuth(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{here.EnsureZone("orders"), here.EnsureZone("stock"), there.EnsureZone("old")} {
		if err != nil {
			t.Fatal(err)
		}
	}
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	keys := here.Export()
	orders := keys["orders"]
	creds, user, err := orders.Issue("orders", "alice", conf.RoleUser, time.Hour, now)
	if err != nil || !strings.Contains(string(creds), "NATS USER JWT") {
		t.Fatalf("%s %v", creds, err)
	}
	orders.Users = append(orders.Users, user)
	keys["orders"] = orders
	if err := there.Follow(keys); err != nil {
		t.Fatal(err)
	}
	again, err := conf.ReadAuth(strings.TrimSuffix(there.File(), "/auth.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range []*conf.Auth{there, again} {
		if zones := a.Zones(); strings.Join(zones, " ") != "orders stock" {
			t.Errorf("zones %v", zones)
		}
		if users, err := a.Users("orders"); err != nil || len(users) != 1 || users[0].Key != user.Key {
			t.Errorf("users %v %v", users, err)
		}
	}
	if users, err := here.Users("orders"); err != nil || len(users) != 0 {
		t.Errorf("what was exported is what it was: %v %v", users, err)
	}
	revoked, err := keys["orders"].Revoke("orders", "alice", now)
	if err != nil || len(revoked) != 1 || revoked[0].Status(now) != "revoked" || keys["orders"].Users[0].Status(now) != "valid" {
		t.Errorf("%v %v", revoked, err)
	}
	if _, err := keys["orders"].Revoke("orders", "bob", now); !errors.Is(err, conf.ErrNotFound) {
		t.Errorf("revoke nobody: %v", err)
	}
	if gone := keys["orders"].Expired(now.Add(time.Hour)); len(gone) != 1 || gone[0] != user.Key {
		t.Errorf("expired: %v", gone)
	}
	if gone := keys["orders"].Expired(now); len(gone) != 0 {
		t.Errorf("expired before its time: %v", gone)
	}
}

func TestFollowRefuses(t *testing.T) {
	a, err := conf.NewAuth()
	if err != nil {
		t.Fatal(err)
	}
	good, err := conf.NewZoneKeys()
	if err != nil {
		t.Fatal(err)
	}
	bad := good.Clone()
	bad.Roles[conf.RoleUser] = "SAX"
	many := good.Clone()
	many.Users = make([]conf.User, conf.MaxUsers+1)
	few := good.Clone()
	delete(few.Roles, conf.RoleAdmin)
	for name, zones := range map[string]map[string]conf.ZoneKeys{
		"a name that is none": {"a b": good}, "a bad key": {"z": bad}, "no keys": {"z": {}}, "too many users": {"z": many}, "a role without key": {"z": few},
	} {
		err := a.Follow(zones)
		if err == nil || strings.Contains(err.Error(), "SAX") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if len(a.Zones()) != 0 {
		t.Errorf("zones %v", a.Zones())
	}
	for _, c := range []struct {
		name string
		role conf.Role
		ttl  time.Duration
	}{{"anyone", conf.RoleUser, 0}, {"bob", "queen", 0}, {"bob", conf.RoleUser, time.Millisecond}} {
		if _, _, err := good.Issue("z", c.name, c.role, c.ttl, time.Unix(0, 0)); err == nil {
			t.Errorf("%v: credentials", c)
		}
	}
}
