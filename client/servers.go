package client

import (
	"bufio"
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/opencluster/oclocks/subjects"
)

// ServerDistance is one server of the cluster and how far it is.
type ServerDistance struct {
	subjects.Server
	URL       string        // the nearest of its addresses; "" if none answered
	RTT       time.Duration // time to connect to it, which is one round trip; negative if it did not answer
	Connected bool          // the client's own connection goes there
}

// Unreachable is the RTT of a server that did not answer.
const Unreachable time.Duration = -1

// Limits of measuring.
const (
	probesAtOnce  = 16
	probesOfEach  = 3               // the shortest counts: everything else a network does makes it longer
	probeTimeout  = 2 * time.Second // of one server
	maxProbeURLs  = 8               // addresses of one server that are tried
	greetingLimit = 4 << 10
)

// Nearest lists the servers, the nearest first, by the round trips from here to each: it connects to each for a moment. Those
// that do not answer come last. A cluster that hides its servers refuses (ErrDenied).
func (c *Client) Nearest(ctx context.Context) ([]ServerDistance, error) {
	list, err := c.Servers(ctx, "")
	if err != nil {
		return nil, err
	}
	at := hostOf(c.nc.ConnectedUrl())
	found := make([]ServerDistance, len(list.Servers))
	inParallel(len(found), func(i int) {
		s := ServerDistance{Server: list.Servers[i], RTT: Unreachable}
		for _, url := range s.URLs[:min(len(s.URLs), maxProbeURLs)] {
			s.Connected = s.Connected || hostOf(url) == at
			if rtt := roundTrip(ctx, url); rtt >= 0 && (s.RTT < 0 || rtt < s.RTT) {
				s.URL, s.RTT = url, rtt
			}
		}
		found[i] = s
	})
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	slices.SortStableFunc(found, func(a, b ServerDistance) int { return compareDistance(a.RTT, b.RTT) })
	return found, nil
}

// compareDistance orders round trips, those that are Unreachable last.
func compareDistance(a, b time.Duration) int {
	switch {
	case a == b:
		return 0
	case a < 0:
		return 1
	case b < 0 || a < b:
		return -1
	}
	return 1
}

// inParallel does something for each number below n, several at a time.
func inParallel(n int, do func(i int)) {
	var wg sync.WaitGroup
	slots := make(chan struct{}, probesAtOnce)
	for i := range n {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			do(i)
		})
	}
	wg.Wait()
}

// roundTrip measures the way to a NATS server: the time until a connection stands. One that is accepted and stays silent
// does not count, unless the server begins with TLS.
func roundTrip(ctx context.Context, address string) time.Duration {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	best := Unreachable
	for range probesOfEach {
		rtt, err := connectOnce(ctx, hostOf(address), !strings.HasPrefix(address, "tls://"))
		if err != nil {
			break
		}
		if best < 0 || rtt < best {
			best = rtt
		}
	}
	return best
}

var errNoGreeting = errors.New("the server does not greet like a NATS server")

func connectOnce(ctx context.Context, host string, greets bool) (time.Duration, error) {
	began := time.Now()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", host)
	if err != nil {
		return 0, err
	}
	rtt := time.Since(began)
	defer conn.Close()
	if !greets {
		return rtt, nil
	}
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetReadDeadline(deadline); err != nil {
			return 0, err
		}
	}
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	line, err := bufio.NewReaderSize(conn, greetingLimit).ReadSlice(' ')
	if err != nil {
		return 0, err
	}
	if string(line) != "INFO " {
		return 0, errNoGreeting
	}
	return rtt, nil
}

// distances measures the way to addresses, by host and port.
func distances(ctx context.Context, addresses []string) map[string]time.Duration {
	rtt := make([]time.Duration, len(addresses))
	inParallel(len(addresses), func(i int) { rtt[i] = roundTrip(ctx, addresses[i]) })
	found := make(map[string]time.Duration, len(addresses))
	for i, address := range addresses {
		found[hostOf(address)] = rtt[i]
	}
	return found
}

// nearestFirst orders addresses by their distance.
func nearestFirst(ctx context.Context, addresses []string) []string {
	if len(addresses) < 2 {
		return addresses
	}
	rtt := distances(ctx, addresses)
	addresses = slices.Clone(addresses)
	slices.SortStableFunc(addresses, func(a, b string) int { return compareDistance(rtt[hostOf(a)], rtt[hostOf(b)]) })
	return addresses
}

// measure keeps the distances of the servers up to date for the next reconnect, whenever the list of servers may have
// changed. It is a goroutine of its own, since it takes its time.
func (c *Client) measure() {
	ctx, cancel := context.WithCancel(context.Background())
	c.running.Go(func() {
		select {
		case <-c.quit:
			cancel()
		case <-ctx.Done():
		}
	})
	defer cancel()
	for {
		c.opts.road.measured(distances(ctx, c.nc.Servers()))
		select {
		case <-c.quit:
			return
		case <-c.remeasure:
		}
	}
}

// OnServers has f called whenever a server comes, goes or changes, with the broker's event, in order, by one goroutine. After
// a reconnect, over which events may have been missed, and when f is so slow that some were, the Type is Reconnected and Node
// is empty: ask Servers or Nearest then. stop ends it; f may be under way for the last time when it returns. Close waits for f, which must
// not call it.
func (c *Client) OnServers(f func(subjects.ServerEvent)) (stop func()) {
	c.listening.Lock()
	defer c.listening.Unlock()
	c.listeners = append(c.listeners, &f)
	return func() {
		c.listening.Lock()
		defer c.listening.Unlock()
		c.listeners = slices.DeleteFunc(c.listeners, func(other *func(subjects.ServerEvent)) bool { return other == &f })
	}
}

// Reconnected is the Type of the event that OnServers gives when others may have been missed.
const Reconnected = "reconnected"

// newsBuffer is how many events wait for those who listen.
const newsBuffer = 64

// receiveServer takes an event of a server. What was sent to one that is gone may never be answered.
func (c *Client) receiveServer(msg *nats.Msg) {
	e := decodeEvent(msg)
	if e == nil || e.Server == nil {
		return
	}
	switch e.Server.Type {
	case "server.down":
		c.do(func(now int64) { c.m.ServerDown(now, e.Server.Node) })
	case "server.up", "server.changed":
		c.do(c.m.ServerUp)
	}
	c.heard(*e.Server)
}

// heard passes an event on to those who listen, who may be slow.
func (c *Client) heard(e subjects.ServerEvent) {
	signal(c.remeasure)
	select {
	case c.news <- e:
	default:
		c.missed.Store(true)
	}
}

// herald tells those who listen.
func (c *Client) herald() {
	for {
		select {
		case <-c.quit:
			return
		case e := <-c.news:
			c.tell(e)
		}
		if len(c.news) == 0 && c.missed.Swap(false) {
			c.tell(subjects.ServerEvent{Type: Reconnected})
		}
	}
}

func (c *Client) tell(e subjects.ServerEvent) {
	c.listening.Lock()
	listeners := slices.Clone(c.listeners)
	c.listening.Unlock()
	for _, f := range listeners {
		(*f)(e)
	}
}
