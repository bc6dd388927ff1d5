package conf

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestSettingsOfAClusteredDaemon(t *testing.T) {
	file := "data: /d\ncluster_listen: 127.0.0.1:6222\njoin:\n  - 10.0.0.1:6222\n  - locks.example:6222\nmin_quorum: 3\n"
	s, err := load(t, []string{"--priority", "15"}, []string{"OCLOCKS_ACKS=majority"}, file)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(s.Join, []string{"10.0.0.1:6222", "locks.example:6222"}) || s.MinQuorum != 3 || s.Priority != 15 || s.Acks != AcksMajority {
		t.Errorf("got %+v", s)
	}
	if s.NodeLease != 800*time.Millisecond || s.Voters != 5 || s.MayFound() || !s.Clustered() {
		t.Errorf("defaults: %+v", s)
	}
	byFlag, err := load(t, []string{"--join", " 10.0.0.1:6222, locks.example:6222"}, nil, file)
	if err != nil || !slices.Equal(byFlag.Join, s.Join) {
		t.Errorf("by flag: %v, %v", byFlag, err)
	}
	if text, err := s.Get("join"); err != nil || text != "10.0.0.1:6222,locks.example:6222" {
		t.Errorf("got %q, %v", text, err)
	}
	alone, err := load(t, []string{"--join="}, nil, file)
	if err != nil || len(alone.Join) != 0 || !alone.MayFound() {
		t.Errorf("an empty list: %+v, %v", alone, err)
	}
}

func TestWhatAClusteredDaemonMustNotBeTold(t *testing.T) {
	const listen = "data: /d\ncluster_listen: 127.0.0.1:6222\n"
	for _, c := range []struct{ file, want string }{
		{"cluster_listen: 127.0.0.1:6222\n", "cluster_listen: there is no place for this node's identifier, keys and certificates: name a directory"},
		{"data: /d\ncluster_listen: six\n", `oclocks.yaml:2: cluster_listen: "six" is not an address`},
		{"data: /d\ncluster_listen: 127.0.0.1:4222\n", "cluster_listen: is the address of listen"},
		{"data: /d\ncluster_listen: 127.0.0.1:8222\n", "cluster_listen: is the address of http"},
		{"join: 127.0.0.1:6222\n", "oclocks.yaml:1: join: the daemon listens for no others"},
		{"join_token: x\n", "join_token: the daemon listens for no others"},
		{"min_quorum: 2\n", "min_quorum: the daemon listens for no others"},
		{"cluster_advertise: a:1\n", "cluster_advertise: the daemon listens for no others"},
		{listen + "cluster_advertise: 0.0.0.0:6222\n", `cluster_advertise: "0.0.0.0:6222" names no host`},
		{listen + "cluster_advertise: a:0\n", `cluster_advertise: "a:0" has no port`},
		{listen + "join: a b:6222\n", `join: "a b" is neither an IP address nor a DNS name`},
		{listen + "join: [a:1, 'b:2,c:3']\n", "join[1]: is not one value"},
		{listen + "join: [a:1, {}]\n", "join[1]: is not one value"},
		{listen + "join: 'a:1,,b:2'\n", "has an empty entry"},
		{listen + "join: a\n", `join: "a" is not an address`},
		{listen + "join: [" + strings.Repeat("a:1, ", MaxJoin) + "a:1]\n", "join: 101 addresses"},
		{listen + "found: false\n", "found: the daemon may found no cluster and is told of none to join"},
		{listen + "found: true\njoin_token: x\n", "found: the daemon has a join token"},
		{"priority: 0\n", "priority: 0 is out of range"},
		{"priority: 16\n", "priority: 16 is out of range"},
		{"node_lease: 99ms\n", "node_lease: 99ms is out of range"},
		{"node_lease: 11s\n", "node_lease: 11s is out of range"},
		{"acks: none\n", `acks: "none" is unknown: expected one of first, majority, all`},
		{"voters: 4\n", "voters: 4 is not 1, 3, 5, 7 or 9"},
		{"voters: 11\n", "voters: 11 is not 1, 3, 5, 7 or 9"},
		{listen + "min_quorum: 0\n", "min_quorum: 0 is out of range"},
	} {
		_, err := load(t, nil, nil, c.file)
		var ke *KeyError
		if !errors.As(err, &ke) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: got %v, want %q", c.file, err, c.want)
		}
	}
}

func TestWhoFoundsACluster(t *testing.T) {
	yes, no := true, false
	for _, c := range []struct {
		name                 string
		join                 []string
		found                *bool
		token                string
		reached, own, member bool
		want                 bool
	}{
		{name: "the first daemon", want: true},
		{name: "told not to", found: &no},
		{name: "has a token", token: "x"},
		{name: "was in a cluster", member: true},
		{name: "was in a cluster, and is told to", member: true, found: &yes, want: true},
		{name: "has a list", join: []string{"a:1"}},
		{name: "has a list with itself", join: []string{"a:1"}, own: true},
		{name: "has a list with itself, and is told to", join: []string{"a:1"}, own: true, found: &yes, want: true},
		{name: "has a list without itself, and is told to", join: []string{"a:1"}, found: &yes},
		{name: "reaches another one", join: []string{"a:1"}, own: true, found: &yes, reached: true},
		{name: "was found by another one", reached: true},
	} {
		s := Settings{Join: c.join, Found: c.found, Token: c.token}
		if got := s.Founds(c.reached, c.own, c.member); got != c.want {
			t.Errorf("%s: founds: %t", c.name, got)
		}
	}
}

func TestRouteAddress(t *testing.T) {
	for _, c := range []struct {
		listen, advertise string
		host              string
		port              int
	}{
		{"10.0.0.1:6222", "", "10.0.0.1", 6222},
		{"10.0.0.1:0", "", "10.0.0.1", 7},
		{"0.0.0.0:6222", "n1.example:7222", "n1.example", 7222},
		{"[::1]:6222", "", "::1", 6222},
	} {
		s := Settings{ClusterListen: c.listen, ClusterAdvertise: c.advertise}
		if host, port := s.RouteAddress(7); host != c.host || port != c.port {
			t.Errorf("%+v: got %s, %d", c, host, port)
		}
	}
	for _, listen := range []string{":6222", "0.0.0.0:6222", "[::]:6222"} {
		host, port := (&Settings{ClusterListen: listen}).RouteAddress(7)
		if ip := net.ParseIP(host); ip == nil || ip.IsUnspecified() || port != 6222 {
			t.Errorf("%s: got %s, %d", listen, host, port)
		}
	}
}

func TestATokenInAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(path, []byte(" oclocks-join-1.x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for token, want := range map[string]string{"": "", "oclocks-join-1.y": "oclocks-join-1.y", "@" + path: "oclocks-join-1.x"} {
		if got, err := (&Settings{Token: token}).JoinToken(); err != nil || got != want {
			t.Errorf("%s: got %q, %v", token, got, err)
		}
	}
	var ke *KeyError
	if _, err := (&Settings{Token: "@" + path + "x"}).JoinToken(); !errors.As(err, &ke) {
		t.Errorf("got %v", err)
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := (&Settings{Token: "@" + path}).JoinToken(); !errors.As(err, &ke) || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("got %v", err)
	}
}
