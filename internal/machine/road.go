package machine

import (
	"math"
	"time"
)

// How long a client waits when it has tried all servers in vain, before it tries them once more.
const (
	MinRest = 100 * time.Millisecond
	MaxRest = 200 * time.Millisecond
)

// Road chooses the server for a reconnect: at once one of the others, the nearest first where that is measured, then the one
// whose connection broke, and then all of them again after a rest. Servers are named by their host and port.
type Road struct {
	at    string                   // that the client is, or was, connected to
	up    bool                     // connected since the last choice
	first bool                     // no rest was taken since the connection broke
	tried map[string]bool          // since the connection broke or the last rest
	rtt   map[string]time.Duration // measured
}

// Arrived says that there is a connection to a server.
func (r *Road) Arrived(host string) { r.at, r.up = host, true }

// Measured takes the round trips to servers; a negative one says that the server did not answer. The map must not be changed
// afterwards.
func (r *Road) Measured(rtt map[string]time.Duration) { r.rtt = rtt }

// Next is the index of the server that is to be tried, after a rest; -1 if there is none at all. Hosts that are "" are left out;
// those that were not measured are tried in their order. random gives a number from 0 to below n: clients that failed together
// are to come back one by one.
func (r *Road) Next(hosts []string, random func(n int64) int64) (index int, rest time.Duration) {
	if r.up || r.tried == nil {
		r.up, r.first, r.tried = false, true, map[string]bool{}
	}
	index = r.best(hosts)
	if index < 0 {
		r.first, r.tried = false, map[string]bool{}
		rest = MinRest + time.Duration(random(int64(MaxRest-MinRest)))
		index = r.best(hosts)
	}
	if index < 0 {
		return -1, 0
	}
	r.tried[hosts[index]] = true
	return index, rest
}

// best is the nearest server that was not tried, -1 if there is none.
func (r *Road) best(hosts []string) int {
	best, shortest := -1, time.Duration(math.MaxInt64)
	for i, host := range hosts {
		if host == "" || r.tried[host] {
			continue
		}
		d := r.distance(host)
		if best < 0 || d < shortest {
			best, shortest = i, d
		}
	}
	return best
}

func (r *Road) distance(host string) time.Duration {
	d, ok := r.rtt[host]
	switch {
	case r.first && host == r.at:
		return math.MaxInt64
	case !ok || d < 0:
		return math.MaxInt64 - 1
	}
	return d
}
