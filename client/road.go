package client

import (
	"math"
	"math/rand/v2"
	"net/url"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

// How long the client waits when it has tried all servers in vain, before it tries them once more.
const (
	minRest = 100 * time.Millisecond
	maxRest = 200 * time.Millisecond
)

// road chooses the server for a reconnect: at once one of the others, the nearest first where that is measured, then the one
// whose connection broke, and then all of them again after a rest.
type road struct {
	mu    sync.Mutex
	at    string                   // host and port of the server that the client is, or was, connected to
	up    bool                     // connected since the last choice
	first bool                     // no rest was taken since the connection broke
	tried map[string]bool          // since the connection broke or the last rest
	rtt   map[string]time.Duration // measured, by host and port
}

// arrived says that there is a connection to a server.
func (r *road) arrived(address string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.at, r.up = hostOf(address), true
}

// measured takes the round trips to servers, by host and port.
func (r *road) measured(rtt map[string]time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rtt = rtt
}

// next is the callback of nats.go, which holds its lock meanwhile: it asks the connection nothing.
func (r *road) next(servers []nats.Server, _ nats.ServerInfo) (*nats.Server, time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.up {
		r.up, r.first, r.tried = false, true, map[string]bool{}
	}
	best := r.best(servers)
	rest := time.Duration(0)
	if best < 0 {
		r.first, r.tried = false, map[string]bool{}
		rest = minRest + rand.N(maxRest-minRest) //nolint:gosec // so that clients that failed together come one by one
		best = r.best(servers)
	}
	if best < 0 {
		return nil, 0
	}
	r.tried[servers[best].URL.Host] = true
	return &servers[best], rest
}

// best is the nearest server that was not tried, -1 if there is none. Those that were not measured keep the order that they
// have, which nats.go has shuffled.
func (r *road) best(servers []nats.Server) int {
	best, shortest := -1, time.Duration(math.MaxInt64)
	for i := range servers {
		if servers[i].URL == nil || r.tried[servers[i].URL.Host] {
			continue
		}
		d := r.distance(servers[i].URL.Host)
		if best < 0 || d < shortest {
			best, shortest = i, d
		}
	}
	return best
}

func (r *road) distance(host string) time.Duration {
	d, ok := r.rtt[host]
	switch {
	case r.first && host == r.at:
		return math.MaxInt64
	case !ok || d < 0:
		return math.MaxInt64 - 1
	}
	return d
}

// hostOf is the host and port of a server's address, with or without its scheme.
func hostOf(address string) string {
	if u, err := url.Parse(address); err == nil && u.Host != "" {
		address = u.Host
	}
	if u, err := url.Parse("nats://" + address); err == nil && u.Port() == "" {
		return u.Hostname() + ":4222"
	}
	return address
}
