package conf

import (
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Values of Settings.Sync: when the journal is on the disk for certain. In both cases it has been handed to the
// operating system before a request is answered.
const (
	SyncBackground = "background" // soon after
	SyncAlways     = "always"     // before the answer
)

// The shortest lease, and the longest that can be allowed.
const (
	MinLease   = 100 * time.Millisecond
	LeaseLimit = 24 * time.Hour
)

// MaxBuckets is the largest number of buckets.
const MaxBuckets = 1 << 16

// Settings are what one daemon is told.
type Settings struct {
	Listen   string // HOST:PORT for NATS clients
	HTTP     string // HOST:PORT for health and metrics; "off" for none
	Data     string // directory for the journal and the keys; "" keeps all in memory
	Node     string // name of this node, for people
	Location string // where the node is, as a path: eu/fra/rack7
	Cluster  string // name of the cluster

	ClusterListen    string   // HOST:PORT for other daemons; "": a cluster of one that nobody can join
	ClusterAdvertise string   // HOST:PORT where other daemons reach this one; "": ClusterListen
	DirectListen     string   // HOST:PORT for direct links of other daemons, or Off; "": near ClusterListen, see DirectListenAddress
	DirectAdvertise  string   // HOST:PORT where other daemons reach DirectListen; "": see DirectAddress
	Join             []string // HOST:PORT of other daemons, or of DNS names with several addresses
	Found            *bool    // may begin a new cluster; nil: if there is nobody to join. See MayFound
	Token            string   // join token, or @FILE of one. See JoinToken
	Priority         int      // 1, the first choice to lead and to be primary, to MaxPriority

	// What a new cluster begins with; afterwards they are of the cluster's own configuration.
	MinQuorum int           // daemons that must be there before new locks are given, 1 to MaxMinQuorum
	NodeLease time.Duration // how long a node may act without hearing from the leader, MinNodeLease to MaxNodeLease
	Acks      string        // AcksFirst, AcksMajority or AcksAll
	Voters    int           // daemons that vote, an odd number, 1 to MaxVoters

	LogLevel  string // debug, info, warn, error
	LogFormat string // text, json

	Buckets      uint32        // a power of two, 1 to MaxBuckets
	MaxLease     time.Duration // longest lease that a client gets, MinLease to LeaseLimit
	SessionLease time.Duration // lease of a session that asks for none, MinLease to MaxLease
	Sync         string        // SyncBackground or SyncAlways

	HideServers bool // clients do not learn of the other nodes' addresses
	AllowOpen   bool // an open zone may be served on an address that others reach

	Zones []Zone

	implicit bool // Zones was made up, because none was configured
}

// Default is what a daemon without any configuration does: development mode, one open zone in which everybody is admin.
func Default() *Settings {
	node, err := os.Hostname()
	if err != nil || checkText(node, MaxNameLen) != nil {
		node = "oclocks"
	}
	s := &Settings{
		Listen: "127.0.0.1:4222", HTTP: "127.0.0.1:8222",
		Node: node, Cluster: "oclocks",
		Priority: 8, MinQuorum: 1, NodeLease: 800 * time.Millisecond, Acks: AcksFirst, Voters: 5,
		LogLevel: "info", LogFormat: "text",
		Buckets: 32, MaxLease: time.Minute, SessionLease: 10 * time.Second,
		Sync: SyncBackground,
	}
	s.openIfEmpty()
	return s
}

// openIfEmpty turns settings without a zone into development mode.
func (s *Settings) openIfEmpty() {
	if len(s.Zones) == 0 {
		s.Zones = []Zone{{Name: DefaultZone, Open: true, Role: RoleAdmin}}
		s.implicit = true
	}
}

// Development says that no zone was configured, so that the broker serves one open zone.
func (s *Settings) Development() bool { return s.implicit }

// OpenZone is the zone for connections without credentials; ok is false if there is none.
func (s *Settings) OpenZone() (z Zone, ok bool) {
	i := slices.IndexFunc(s.Zones, func(z Zone) bool { return z.Open })
	if i < 0 {
		return Zone{}, false
	}
	return s.Zones[i], true
}

// Validate refuses settings with which a daemon must not start. The error is a *KeyError.
func (s *Settings) Validate() error {
	for _, check := range []func() error{s.checkAddresses, s.checkTexts, s.checkNumbers, s.checkCluster, s.checkZones} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (s *Settings) checkAddresses() error {
	if err := checkAddress(s.Listen); err != nil {
		return &KeyError{Key: "listen", Problem: err.Error(), Fix: "expected HOST:PORT, for example 127.0.0.1:4222"}
	}
	if s.HTTP == "off" {
		return nil
	}
	if err := checkAddress(s.HTTP); err != nil {
		return &KeyError{Key: "http", Problem: err.Error(), Fix: "expected HOST:PORT, for example 127.0.0.1:8222, or off"}
	}
	if s.HTTP == s.Listen && !strings.HasSuffix(s.HTTP, ":0") {
		return &KeyError{Key: "http", Problem: "is the address of listen", Fix: "choose another port"}
	}
	return nil
}

func (s *Settings) checkTexts() error {
	if err := checkText(s.Node, MaxNameLen); err != nil || s.Node == "" {
		return &KeyError{Key: "node", Problem: fmt.Sprintf("%q is no name for a node", s.Node),
			Fix: "expected 1 to 64 printable characters"}
	}
	if err := checkText(s.Location, 256); err != nil {
		return &KeyError{Key: "location", Problem: err.Error(), Fix: "expected a path such as eu/fra/rack7"}
	}
	if err := checkName(s.Cluster); err != nil {
		return &KeyError{Key: "cluster", Problem: err.Error()}
	}
	for _, c := range []struct {
		key, value string
		allowed    []string
	}{
		{"log_level", s.LogLevel, []string{"debug", "info", "warn", "error"}},
		{"log_format", s.LogFormat, []string{"text", "json"}},
		{"sync", s.Sync, []string{SyncBackground, SyncAlways}},
	} {
		if !slices.Contains(c.allowed, c.value) {
			return &KeyError{Key: c.key, Problem: fmt.Sprintf("%q is unknown", c.value),
				Fix: "expected one of " + strings.Join(c.allowed, ", ")}
		}
	}
	return nil
}

func (s *Settings) checkNumbers() error {
	if s.Buckets < 1 || s.Buckets > MaxBuckets || s.Buckets&(s.Buckets-1) != 0 {
		return &KeyError{Key: "buckets", Problem: fmt.Sprintf("%d is not a power of two from 1 to %d", s.Buckets, MaxBuckets),
			Fix: "32 suits most; it cannot be changed while locks are held"}
	}
	if s.MaxLease < MinLease || s.MaxLease > LeaseLimit {
		return &KeyError{Key: "max_lease", Problem: s.MaxLease.String() + " is out of range", Fix: "expected 100ms to 24h"}
	}
	if s.SessionLease < MinLease || s.SessionLease > s.MaxLease {
		return &KeyError{Key: "session_lease", Problem: s.SessionLease.String() + " is out of range",
			Fix: "expected 100ms to max_lease, which is " + s.MaxLease.String()}
	}
	return nil
}

func (s *Settings) checkZones() error {
	if len(s.Zones) == 0 || len(s.Zones) > MaxZones {
		return &KeyError{Key: "zones", Problem: fmt.Sprintf("%d zones", len(s.Zones)), Fix: "expected 1 to 1000"}
	}
	open := ""
	seen := make(map[string]bool, len(s.Zones))
	for _, z := range s.Zones {
		if err := z.Validate(); err != nil {
			return err
		}
		if seen[z.Name] {
			return &KeyError{Key: "zones[" + z.Name + "].name", Problem: "there are two zones of this name", Fix: "rename or remove one"}
		}
		seen[z.Name] = true
		if !z.Open {
			continue
		}
		if open != "" {
			return &KeyError{Key: "zones[" + z.Name + "].open", Problem: "zone " + open + " is open too",
				Fix: "only one can be: connections without credentials land there"}
		}
		open = z.Name
	}
	if s.implicit && s.Clustered() && !s.MayFound() {
		return nil // a node that joins serves the cluster's zones, not that one
	}
	if open != "" && !s.AllowOpen && !loopback(s.Listen) {
		return &KeyError{Key: "listen", Problem: fmt.Sprintf("zone %s is open, so anybody who reaches %s could take its locks", open, s.Listen),
			Fix: "listen on 127.0.0.1, or configure zones with users (oclocks-config zone add, user add)," +
				" or say --allow-open-zone-on-any-address if that is what you want"}
	}
	return nil
}

// loopback says whether only this machine reaches the address. A host name other than localhost may be anything.
func loopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func checkAddress(addr string) error {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("%q is not an address", addr)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Errorf("%q is not a port number", port)
	}
	return nil
}

// checkText accepts printable ASCII of at most limit bytes, also none.
func checkText(text string, limit int) error {
	if len(text) > limit {
		return fmt.Errorf("%d characters, at most %d are possible", len(text), limit)
	}
	for _, r := range text {
		if r < ' ' || r > '~' {
			return fmt.Errorf("%q has %q in it", text, r)
		}
	}
	return nil
}
