package client

import (
	"math/rand/v2"
	"net/url"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/opencluster/oclocks/internal/machine"
)

// road chooses the server for a reconnect. It is asked by nats.go, and told by the client's goroutines.
type road struct {
	mu   sync.Mutex
	road machine.Road
}

// arrived says that there is a connection to a server.
func (r *road) arrived(address string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.road.Arrived(hostOf(address))
}

// measured takes the round trips to servers, by host and port.
func (r *road) measured(rtt map[string]time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.road.Measured(rtt)
}

// next is the callback of nats.go, which holds its lock meanwhile: it asks the connection nothing.
func (r *road) next(servers []nats.Server, _ nats.ServerInfo) (*nats.Server, time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	hosts := make([]string, len(servers))
	for i := range servers {
		if servers[i].URL != nil {
			hosts[i] = servers[i].URL.Host
		}
	}
	index, rest := r.road.Next(hosts, random)
	if index < 0 {
		return nil, 0
	}
	return &servers[index], rest
}

// random is a number from 0 to below n, so that clients that failed together do not come back together.
func random(n int64) int64 { return rand.Int64N(n) } //nolint:gosec // nothing is kept secret by it

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
