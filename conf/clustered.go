package conf

import (
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Values of Settings.Acks: how many copies of a bucket have a change before it is answered.
const (
	AcksFirst    = "first"    // the primary and its first secondary
	AcksMajority = "majority" // more than half of the chain
	AcksAll      = "all"      // the whole chain
)

// Bounds of the settings of a clustered daemon.
const (
	MinNodeLease  = 100 * time.Millisecond
	MaxNodeLease  = 10 * time.Second
	MaxPriority   = 15  // the lowest; such a node leads or is primary only if nothing else is left
	MaxVoters     = 9   // an odd number up to this
	MaxMinQuorum  = 64  // daemons, as many as a cluster can have
	MaxJoin       = 100 // addresses
	maxTokenBytes = 16 << 10
)

// Clustered says that other daemons can be in one cluster with this one.
func (s *Settings) Clustered() bool { return s.ClusterListen != "" }

// MayFound says whether the daemon may begin a new cluster when its data directory belongs to none: what Found says, else
// true for one that is told of nobody to join.
func (s *Settings) MayFound() bool {
	if s.Found != nil {
		return *s.Found
	}
	return len(s.Join) == 0 && s.Token == ""
}

// JoinToken is the join token, read from its file if Token is @FILE; "" if there is none. The error is a *KeyError.
func (s *Settings) JoinToken() (string, error) {
	path, isFile := strings.CutPrefix(s.Token, "@")
	if !isFile {
		return s.Token, nil
	}
	content, err := readSecret(path, maxTokenBytes)
	if err != nil {
		return "", &KeyError{Key: "join_token", Problem: err.Error(), Fix: "write the token into that file, or name another with @FILE"}
	}
	return strings.TrimSpace(string(content)), nil
}

// Founds says whether a daemon whose data directory has no control store begins a new cluster now. reached: another daemon
// is connected. own: one of the addresses in Join is its own. member: it knows other nodes' addresses (SavedRoutes), so it
// was in a cluster before and has lost its store; then it joins again, unless it is told to found in so many words.
func (s *Settings) Founds(reached, own, member bool) bool {
	switch {
	case reached || !s.MayFound():
		return false
	case len(s.Join) > 0:
		return own
	}
	return !member || s.Found != nil
}

// RouteAddress is where other daemons reach this one: the advertised address, or else the one that it listens on. port is
// the one that was taken if ClusterListen has port 0. On a machine with several addresses, a daemon that listens on all of
// them should be told which one to advertise.
func (s *Settings) RouteAddress(port int) (host string, p int) {
	address := s.ClusterListen
	if s.ClusterAdvertise != "" {
		address = s.ClusterAdvertise
	}
	host, portText, err := net.SplitHostPort(address)
	if err != nil { // Validate refuses that
		return "", port
	}
	if n, err := strconv.Atoi(portText); err == nil && n != 0 {
		port = n
	}
	return Reachable(host), port
}

// Reachable is a host that others can connect to, for one to listen on: if that stands for all addresses of the machine,
// it is the first one that is not of loopback, or a loopback address if there is no other.
func Reachable(host string) string {
	ip := net.ParseIP(host)
	if host != "" && (ip == nil || !ip.IsUnspecified()) {
		return host
	}
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return "127.0.0.1"
	}
	best := "127.0.0.1"
	for _, a := range addresses {
		ip, _, err := net.ParseCIDR(a.String())
		if err != nil || !ip.IsGlobalUnicast() {
			continue
		}
		if ip.To4() != nil {
			return ip.String()
		}
		if best == "127.0.0.1" {
			best = ip.String()
		}
	}
	return best
}

// checkCluster looks at what a clustered daemon is told.
func (s *Settings) checkCluster() error {
	for _, check := range []func() error{s.checkRoutes, s.checkDirect, s.checkJoining, s.checkShared} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (s *Settings) checkRoutes() error {
	if s.ClusterListen == "" {
		for _, c := range []struct {
			key string
			set bool
		}{
			{"cluster_advertise", s.ClusterAdvertise != ""}, {"direct_listen", s.DirectListen != "" && s.DirectListen != Off},
			{"direct_advertise", s.DirectAdvertise != ""}, {"join", len(s.Join) > 0}, {"join_token", s.Token != ""},
			{"min_quorum", s.MinQuorum > 1},
		} {
			if c.set {
				return &KeyError{Key: c.key, Problem: "the daemon listens for no others, so it is a cluster of one",
					Fix: "set cluster_listen, for example --cluster-listen 10.1.2.3:6222"}
			}
		}
		return nil
	}
	if err := checkAddress(s.ClusterListen); err != nil {
		return &KeyError{Key: "cluster_listen", Problem: err.Error(), Fix: "expected HOST:PORT, for example 10.1.2.3:6222"}
	}
	if err := checkOwn("cluster_listen", s.ClusterListen, listener{"listen", s.Listen}, listener{"http", s.HTTP}); err != nil {
		return err
	}
	if s.ClusterAdvertise != "" {
		if err := checkReachable(s.ClusterAdvertise); err != nil {
			return &KeyError{Key: "cluster_advertise", Problem: err.Error(), Fix: "expected HOST:PORT as the other daemons reach this one"}
		}
	}
	return nil
}

// listener is a key and the address that it has.
type listener struct{ key, address string }

// checkOwn refuses an address on which the daemon listens for something else.
func checkOwn(key, address string, others ...listener) error {
	for _, other := range others {
		if address == other.address && !strings.HasSuffix(address, ":0") {
			return &KeyError{Key: key, Problem: "is the address of " + other.key, Fix: "choose another port"}
		}
	}
	return nil
}

// checkReachable refuses what nobody can connect to.
func checkReachable(address string) error {
	if err := checkAddress(address); err != nil {
		return err
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	ip := net.ParseIP(host)
	switch {
	case host == "" || ip != nil && ip.IsUnspecified():
		return fmt.Errorf("%q names no host", address)
	case strings.TrimLeft(port, "0") == "":
		return fmt.Errorf("%q has no port that one can connect to", address)
	case ip == nil && checkHost(host) != nil:
		return checkHost(host)
	}
	return nil
}

// checkHost accepts what can be a DNS name.
func checkHost(host string) error {
	bad := strings.IndexFunc(host, func(r rune) bool {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		return !letter && r != '-' && r != '.' && r != '_'
	})
	if bad >= 0 || len(host) > 253 || strings.HasPrefix(host, ".") || strings.Contains(host, "..") {
		return fmt.Errorf("%q is neither an IP address nor a DNS name", shorten(host))
	}
	return nil
}

func (s *Settings) checkJoining() error {
	if len(s.Join) > MaxJoin {
		return &KeyError{Key: "join", Problem: fmt.Sprintf("%d addresses", len(s.Join)),
			Fix: fmt.Sprintf("expected %d at most: a few are enough, the others are learned from them", MaxJoin)}
	}
	for _, address := range s.Join {
		if err := checkReachable(address); err != nil {
			return &KeyError{Key: "join", Problem: err.Error(),
				Fix: "expected HOST:PORT of the cluster_listen of other daemons, or one DNS name with a port that has all of their addresses"}
		}
	}
	if s.Found == nil {
		return nil
	}
	switch {
	case *s.Found && s.Token != "":
		return &KeyError{Key: "found", Problem: "the daemon has a join token, so it joins a cluster and founds none",
			Fix: "remove found, or the token"}
	case !*s.Found && len(s.Join) == 0 && s.Token == "":
		return &KeyError{Key: "found", Problem: "the daemon may found no cluster and is told of none to join",
			Fix: "name daemons with join, or remove found"}
	}
	return nil
}

// checkShared looks at what a new cluster begins with.
func (s *Settings) checkShared() error {
	if s.Priority < 1 || s.Priority > MaxPriority {
		return &KeyError{Key: "priority", Problem: fmt.Sprintf("%d is out of range", s.Priority),
			Fix: "expected 1, the first choice, to 15, the last resort"}
	}
	if s.NodeLease < MinNodeLease || s.NodeLease > MaxNodeLease {
		return &KeyError{Key: "node_lease", Problem: s.NodeLease.String() + " is out of range", Fix: "expected 100ms to 10s"}
	}
	if acks := []string{AcksFirst, AcksMajority, AcksAll}; !slices.Contains(acks, s.Acks) {
		return &KeyError{Key: "acks", Problem: fmt.Sprintf("%q is unknown", s.Acks), Fix: "expected one of " + strings.Join(acks, ", ")}
	}
	if s.Voters < 1 || s.Voters > MaxVoters || s.Voters%2 == 0 {
		return &KeyError{Key: "voters", Problem: fmt.Sprintf("%d is not 1, 3, 5, 7 or 9", s.Voters),
			Fix: "5 suits most: it survives the loss of two"}
	}
	if s.MinQuorum < 1 || s.MinQuorum > MaxMinQuorum {
		return &KeyError{Key: "min_quorum", Problem: fmt.Sprintf("%d is out of range", s.MinQuorum), Fix: "expected 1 to 64"}
	}
	return nil
}

// missingData says what a daemon needs a data directory for, nil if nothing. In-memory settings of tests skip this.
func (s *Settings) missingData() *KeyError {
	if s.Data != "" {
		return nil
	}
	if s.Clustered() {
		return &KeyError{Key: "cluster_listen", Problem: "there is no place for this node's identifier, keys and certificates",
			Fix: "name a directory with --data"}
	}
	for _, z := range s.Zones {
		if !z.Open {
			return &KeyError{Key: "data", Problem: "zone " + z.Name + " has users, and there is no place for its keys",
				Fix: "name a directory with --data"}
		}
	}
	return nil
}

// tlsDir is where the certificates of a data directory are.
func tlsDir(data string) string { return filepath.Join(data, "tls") }
