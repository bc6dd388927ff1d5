package conf

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestDefaultsAreValidAndOpenOnLoopbackOnly(t *testing.T) {
	s := Default()
	if err := s.Validate(); err != nil {
		t.Fatal(err)
	}
	z, ok := s.OpenZone()
	if !ok || !s.Development() || z.Name != "default" || z.OpenRole() != RoleAdmin || !z.TakesUnnamed() {
		t.Errorf("open zone: %+v, %t; development %t", z, ok, s.Development())
	}
	if s.Listen != "127.0.0.1:4222" || s.Buckets != 32 || s.MaxLease != time.Minute || s.SessionLease != 10*time.Second || s.Sync != "background" {
		t.Errorf("got %+v", s)
	}
}

func TestAnOpenZoneNeedsALoopbackAddress(t *testing.T) {
	for addr, loop := range map[string]bool{
		"127.0.0.1:4222": true, "127.8.9.1:0": true, "[::1]:4222": true, "localhost:4222": true,
		":4222": false, "0.0.0.0:4222": false, "[::]:4222": false, "10.1.2.3:4222": false, "broker.example:4222": false,
		"localhost.example:4222": false, "[::ffff:10.0.0.1]:4222": false,
	} {
		s := Default()
		s.Listen = addr
		err := s.Validate()
		if (err == nil) != loop {
			t.Errorf("%s: got %v", addr, err)
		}
		if err != nil && !strings.Contains(err.Error(), "--allow-open-zone-on-any-address") {
			t.Errorf("%s: the error does not say what to do: %v", addr, err)
		}
		s.AllowOpen = true
		if err := s.Validate(); err != nil {
			t.Errorf("%s, allowed: got %v", addr, err)
		}
		s.AllowOpen, s.Zones = false, []Zone{{Name: "orders"}}
		if err := s.Validate(); err != nil {
			t.Errorf("%s, no zone open: got %v", addr, err)
		}
	}
}

func TestWhatIsNotValidIsNamed(t *testing.T) {
	long := strings.Repeat("x", 65)
	for _, c := range []struct {
		key    string
		change func(*Settings)
	}{
		{"listen", func(s *Settings) { s.Listen = "4222" }},
		{"listen", func(s *Settings) { s.Listen = "127.0.0.1:nats" }},
		{"listen", func(s *Settings) { s.Listen = "127.0.0.1:65536" }},
		{"listen", func(s *Settings) { s.Listen = "" }},
		{"http", func(s *Settings) { s.HTTP = "8222" }},
		{"http", func(s *Settings) { s.HTTP = s.Listen }},
		{"node", func(s *Settings) { s.Node = "" }},
		{"node", func(s *Settings) { s.Node = "a\nb" }},
		{"node", func(s *Settings) { s.Node = long }},
		{"location", func(s *Settings) { s.Location = "\x7f" }},
		{"cluster", func(s *Settings) { s.Cluster = "a.b" }},
		{"log_level", func(s *Settings) { s.LogLevel = "loud" }},
		{"log_format", func(s *Settings) { s.LogFormat = "xml" }},
		{"sync", func(s *Settings) { s.Sync = "" }},
		{"buckets", func(s *Settings) { s.Buckets = 0 }},
		{"buckets", func(s *Settings) { s.Buckets = 33 }},
		{"buckets", func(s *Settings) { s.Buckets = MaxBuckets * 2 }},
		{"max_lease", func(s *Settings) { s.MaxLease = 0 }},
		{"max_lease", func(s *Settings) { s.MaxLease = 25 * time.Hour }},
		{"session_lease", func(s *Settings) { s.SessionLease = time.Millisecond }},
		{"session_lease", func(s *Settings) { s.SessionLease = 2 * time.Minute }},
		{"zones", func(s *Settings) { s.Zones = nil }},
		{"zones", func(s *Settings) { s.Zones = make([]Zone, MaxZones+1) }},
		{"zones[a].name", func(s *Settings) { s.Zones = []Zone{{Name: "a"}, {Name: "a"}} }},
		{"zones[b].open", func(s *Settings) { s.Zones = []Zone{{Name: "a", Open: true}, {Name: "b", Open: true}} }},
		{"zones[a].role", func(s *Settings) { s.Zones = []Zone{{Name: "a", Role: RoleAdmin}} }},
		{"zones[a].role", func(s *Settings) { s.Zones = []Zone{{Name: "a", Open: true, Role: "root"}} }},
		{"zones[a].quota.holds", func(s *Settings) { s.Zones = []Zone{{Name: "a", Quota: Quota{Holds: -1}}} }},
		{"zones[a].quota.connections", func(s *Settings) { s.Zones = []Zone{{Name: "a", Quota: Quota{Connections: maxQuota + 1}}} }},
	} {
		s := Default()
		c.change(s)
		var ke *KeyError
		if err := s.Validate(); !errors.As(err, &ke) || ke.Key != c.key || ke.Problem == "" {
			t.Errorf("%s: got %v", c.key, err)
		}
	}
}

func TestNames(t *testing.T) {
	for name, ok := range map[string]bool{
		"a": true, "orders": true, "Orders-2_x": true, "0": true, strings.Repeat("x", 64): true,
		"": false, strings.Repeat("x", 65): false, "*": false, ">": false, "a.b": false, "a b": false, "a*": false, "-a": false, "_": false,
		"ä": false, "a\n": false, "{{name()}}": false, "a/b": false, "../x": false,
	} {
		if err := CheckZoneName(name); (err == nil) != ok {
			t.Errorf("zone %q: got %v", name, err)
		}
		if err := CheckUserName(name); (err == nil) != ok {
			t.Errorf("user %q: got %v", name, err)
		}
	}
	for _, name := range []string{"SYS", "sys", "OCLOCKS", "oclocks"} {
		if CheckZoneName(name) == nil {
			t.Errorf("zone %q is accepted", name)
		}
	}
	if CheckUserName("anyone") == nil || CheckUserName("Anyone") == nil {
		t.Error("a user may be called anyone")
	}
}

func TestQuotaWithDefaults(t *testing.T) {
	want := Quota{Holds: 5, Waiters: DefaultWaiters, Sessions: DefaultSessions, Connections: DefaultConnections}
	if got := (Quota{Holds: 5}).WithDefaults(); got != want {
		t.Errorf("got %+v", got)
	}
}

func TestClientURL(t *testing.T) {
	for listen, want := range map[string]string{
		"127.0.0.1:4222": "nats://127.0.0.1:4222", ":4222": "nats://127.0.0.1:4222", "0.0.0.0:1": "nats://127.0.0.1:1",
		"[::]:4222": "nats://127.0.0.1:4222", "[2001:db8::1]:4222": "nats://[2001:db8::1]:4222", "broker.example:4222": "nats://broker.example:4222",
	} {
		if got := (&Settings{Listen: listen}).ClientURL(); got != want {
			t.Errorf("%s: got %s, want %s", listen, got, want)
		}
	}
}

// TestANodeThatJoinsOpensNoZone: it has no zones of its own, so it may listen where it likes.
func TestANodeThatJoinsOpensNoZone(t *testing.T) {
	s := Default()
	s.Listen, s.ClusterListen, s.Data = "10.1.2.3:4222", "10.1.2.3:6222", "/d"
	if err := s.Validate(); err == nil {
		t.Error("a node that founds a cluster may open its zone to everybody")
	}
	s.Join = []string{"10.1.2.4:6222"}
	if err := s.Validate(); err != nil {
		t.Error(err)
	}
}
