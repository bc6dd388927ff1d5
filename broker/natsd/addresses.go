package natsd

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/opencluster/oclocks/conf"
)

const (
	// alonePause is the time between two looks at the addresses while no other server is connected, missingPause while
	// some are.
	alonePause   = time.Second
	missingPause = time.Minute

	lookupTimeout = 5 * time.Second
)

// SetRoutes tells which other nodes there are, by identifier, and at which addresses (HOST:PORT) their servers are. They
// are kept in the data directory, so that the next start tries them too. A node that does not connect by itself is tried
// at them within a minute, or at once if none is connected.
func (s *Server) SetRoutes(known map[string][]string) error {
	r := s.routes
	if r == nil {
		return nil
	}
	for node, addresses := range known {
		for _, address := range addresses {
			if _, _, err := net.SplitHostPort(address); err != nil {
				return fmt.Errorf("route to node %s: %w", node, err)
			}
		}
	}
	known = maps.Clone(known)
	delete(known, s.cfg.ServerName)
	r.mu.Lock()
	same := maps.EqualFunc(r.known, known, slices.Equal)
	r.known = known
	r.mu.Unlock()
	if same {
		return nil
	}
	signal(r.wake)
	if r.cfg.Data == "" {
		return nil
	}
	return conf.SaveRoutes(r.cfg.Data, known)
}

// prepare fills in the first addresses, before the server is made.
func (r *routes) prepare(ctx context.Context, opts *server.Options) {
	if r.cfg.Data != "" {
		known, err := conf.SavedRoutes(r.cfg.Data)
		if err != nil {
			r.s.log.Warn("addresses of the other daemons are lost; those that are named in join are tried", "error", err)
		}
		r.known = known
	}
	r.tried = r.wanted(ctx)
	opts.Routes = routeURLs(r.tried)
}

// keepTrying gives nats-server further addresses when servers are missing, until ctx ends. nats-server tries each address
// that it has once a second for ever. To give it others makes it look at everything that it has, so that is not done
// without need: servers tell each other whom they know, and whoever starts later knows who was there before.
func (r *routes) keepTrying(ctx context.Context) {
	for {
		alone, missing := r.missing()
		pause := missingPause
		if alone {
			pause = alonePause
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-r.wake:
			timer.Stop()
			if alone, _ := r.missing(); !alone {
				continue
			}
		case <-timer.C:
		}
		if alone || missing {
			r.apply(ctx)
		}
	}
}

// missing says whether no server is connected though there are others, and whether a known one is not.
func (r *routes) missing() (alone, missing bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for node := range r.known {
		missing = missing || !slices.Contains(r.connected, node)
	}
	return len(r.connected) == 0 && len(r.known)+len(r.cfg.Join) > 0, missing
}

// apply makes nats-server try exactly the addresses that are wanted now. One that is no longer wanted stays while a
// connection to its host is there, because nats-server would close it.
func (r *routes) apply(ctx context.Context) {
	next := map[string]bool{}
	for _, address := range r.wanted(ctx) {
		next[address] = true
	}
	r.mu.Lock()
	tried := r.tried
	for _, address := range tried {
		for _, p := range r.servers {
			if host, _, err := net.SplitHostPort(address); err == nil && host == p.ip {
				next[address] = true
			}
		}
	}
	r.mu.Unlock()
	addresses := slices.Sorted(maps.Keys(next))
	if slices.Equal(addresses, tried) || ctx.Err() != nil || r.s.isStopping() {
		return
	}
	r.s.applying.Lock()
	err := r.s.reload(func(opts *server.Options) { opts.Routes = routeURLs(addresses) })
	r.s.applying.Unlock()
	if err != nil {
		r.s.log.Error("the NATS server does not take the addresses of other daemons", "error", err)
		return
	}
	r.note(func() { r.tried = addresses })
}

func routeURLs(addresses []string) []*url.URL {
	urls := make([]*url.URL, len(addresses))
	for i, address := range addresses {
		urls[i] = &url.URL{Scheme: "nats-route", Host: address}
	}
	return urls
}

// wanted are the addresses to try, in order: with an IP address each, and without the server's own. What a name means is
// asked each time; if there is no answer it keeps what it meant before.
func (r *routes) wanted(ctx context.Context) []string {
	r.mu.Lock()
	hosts := slices.Clone(r.cfg.Join)
	for _, addresses := range r.known {
		hosts = append(hosts, addresses...)
	}
	r.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	own := r.own()
	wanted := map[string]bool{}
	for _, hostPort := range hosts {
		for _, address := range r.resolve(ctx, hostPort) {
			if own[hostPort] || own[address] {
				r.note(func() { r.self = true })
				continue
			}
			wanted[address] = true
		}
	}
	return slices.Sorted(maps.Keys(wanted))
}

// resolve gives all addresses of HOST:PORT.
func (r *routes) resolve(ctx context.Context, hostPort string) []string {
	host, port, err := net.SplitHostPort(hostPort)
	if err != nil { // it was checked
		return nil
	}
	if net.ParseIP(host) != nil {
		return []string{hostPort}
	}
	var ips []string
	if r.cfg.Resolver != nil {
		ips, err = r.cfg.Resolver.LookupHost(ctx, host)
	} else {
		ips, err = net.DefaultResolver.LookupHost(ctx, host)
	}
	if err != nil {
		r.s.log.Warn("address of another daemon", "host", host, "error", err)
		return r.meant[hostPort]
	}
	addresses := make([]string, len(ips))
	for i, ip := range ips {
		addresses[i] = net.JoinHostPort(ip, port)
	}
	r.meant[hostPort] = addresses
	return addresses
}

// own are the addresses at which this server itself listens, as far as the machine knows them. A connection to itself by
// another one is noticed by the TLS handshake and given up by nats-server.
func (r *routes) own() map[string]bool {
	own := map[string]bool{}
	if r.cfg.Advertise != "" {
		own[r.cfg.Advertise] = true
	}
	host, port, err := net.SplitHostPort(r.cfg.Listen)
	if err != nil { // it was checked
		return own
	}
	if n, err := strconv.Atoi(port); err != nil || n == 0 {
		return own // nobody can have been told
	}
	own[net.JoinHostPort(host, port)] = true
	if ip := net.ParseIP(host); host != "" && (ip == nil || !ip.IsUnspecified()) {
		return own
	}
	interfaces, err := net.InterfaceAddrs()
	if err != nil {
		r.s.log.Warn("addresses of this machine", "error", err)
	}
	for _, i := range interfaces {
		if ip, _, err := net.ParseCIDR(i.String()); err == nil {
			own[net.JoinHostPort(ip.String(), port)] = true
		}
	}
	return own
}
