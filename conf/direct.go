package conf

import (
	"cmp"
	"net"
	"strconv"
	"strings"
)

// Off in the place of an address: there is none.
const Off = "off"

// directBeside is how far the usual port of direct links is from that of ClusterListen: 7222 beside 6222.
const directBeside = 1000

// DirectListenAddress is where the daemon listens for direct links, and whether its settings say so in so many words: else
// it is near ClusterListen, and any other port will do as well. port is the one of ClusterListen, chosen if that has port 0.
func (s *Settings) DirectListenAddress(port int) (address string, chosen bool) {
	if s.DirectListen != "" {
		return s.DirectListen, true
	}
	host, asked, err := net.SplitHostPort(s.ClusterListen)
	if err != nil { // Validate refuses that
		return net.JoinHostPort("127.0.0.1", "0"), false
	}
	if port += directBeside; port > 1<<16-1 || strings.TrimLeft(asked, "0") == "" {
		port = 0 // a test's
	}
	return net.JoinHostPort(host, strconv.Itoa(port)), false
}

// DirectAddress is where other daemons reach this one for direct links, which listens on a port: what is advertised, or else
// the host of the route. A port that is 0 in DirectAdvertise does not exist: Validate refuses it.
func (s *Settings) DirectAddress(port string) string {
	if s.DirectAdvertise != "" {
		return s.DirectAdvertise
	}
	listen := s.ClusterListen
	if s.DirectListen != "" {
		listen = s.DirectListen
	}
	host, _, err := net.SplitHostPort(cmp.Or(s.ClusterAdvertise, listen))
	if err != nil { // Validate refuses that
		return ""
	}
	return net.JoinHostPort(Reachable(host), port)
}

// checkDirect looks at the addresses of direct links.
func (s *Settings) checkDirect() error {
	if s.DirectListen != "" && s.DirectListen != Off {
		if err := checkAddress(s.DirectListen); err != nil {
			return &KeyError{Key: "direct_listen", Problem: err.Error(), Fix: "expected HOST:PORT, for example 10.1.2.3:7222, or off"}
		}
		others := []listener{{"listen", s.Listen}, {"http", s.HTTP}, {"cluster_listen", s.ClusterListen}}
		if err := checkOwn("direct_listen", s.DirectListen, others...); err != nil {
			return err
		}
	}
	if s.DirectAdvertise != "" {
		if err := checkReachable(s.DirectAdvertise); err != nil {
			return &KeyError{Key: "direct_advertise", Problem: err.Error(), Fix: "expected HOST:PORT as the other daemons reach direct_listen"}
		}
	}
	return nil
}
