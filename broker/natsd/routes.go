package natsd

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"
)

// routePoll is how often the routes are looked at when nothing hints at a change.
const routePoll = 250 * time.Millisecond

// A change is looked for this often after a hint, first after settleFirst, then after twice as long each time.
const (
	settleFirst = time.Millisecond
	settleLast  = 128 * time.Millisecond
)

// routes knows the other servers: which are connected, and by which addresses they are tried.
type routes struct {
	s       *Server
	cfg     *Cluster
	account string // id of the account of the nodes, whose route counts

	meant  map[string][]string // addresses of HOST:PORT at the last answer of the DNS; of one goroutine at a time
	hint   chan struct{}       // a route may have come or gone
	wake   chan struct{}       // the addresses are to be looked at again
	cancel context.CancelFunc
	ended  sync.WaitGroup

	telling  sync.Mutex // one round of calls to the watchers at a time
	watchers map[int]func([]string)
	watcher  int

	mu        sync.Mutex
	changed   chan struct{}       // closed and replaced when something below changes
	servers   map[string]peer     // by server id
	connected []string            // names of servers, in order
	known     map[string][]string // addresses by node, from SetRoutes
	tried     []string            // the addresses that nats-server has now
	self      bool                // one of the addresses is this server's own
	duplicate bool                // another server has this one's name
}

// peer is another server.
type peer struct {
	name string
	ip   string // of its end of the connection
}

func newRoutes(s *Server) *routes {
	return &routes{
		s: s, cfg: s.cfg.Cluster,
		hint: make(chan struct{}, 1), wake: make(chan struct{}, 1),
		meant: map[string][]string{}, changed: make(chan struct{}), watchers: map[int]func([]string){},
	}
}

// start watches the routes and tries the addresses until stop.
func (r *routes) start(ctx context.Context) {
	ctx, r.cancel = context.WithCancel(context.WithoutCancel(ctx))
	r.ended.Go(func() { r.watch(ctx) })
	r.ended.Go(func() { r.keepTrying(ctx) })
}

func (r *routes) stop() {
	if r.cancel != nil {
		r.cancel()
	}
	r.ended.Wait()
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// note changes something under the lock and tells those that wait for it.
func (r *routes) note(change func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change()
	close(r.changed)
	r.changed = make(chan struct{})
}

// watch looks at the routes until ctx ends. nats-server has no event for them. But it writes a line into the log for each
// route that it makes or closes, just before it does so; those lines are the hint, whatever they say. Without one a look
// now and then is enough.
func (r *routes) watch(ctx context.Context) {
	poll := cmp.Or(r.cfg.poll, routePoll)
	pause := poll
	timer := time.NewTimer(pause)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.hint:
			pause = settleFirst
		case <-timer.C:
			if pause *= 2; pause > settleLast {
				pause = poll
			}
		}
		r.look()
		timer.Reset(pause)
	}
}

// look finds out who is connected now, and tells the watchers if that has changed. A server that has come in the place of
// another one of the same name is told as gone first.
func (r *routes) look() {
	servers, ok := r.present()
	if !ok {
		return
	}
	r.mu.Lock()
	before := r.servers
	r.mu.Unlock()
	if maps.Equal(before, servers) {
		return
	}
	stayed := map[string]peer{}
	for id, p := range servers {
		if _, ok := before[id]; ok {
			stayed[id] = p
		}
	}
	r.telling.Lock()
	defer r.telling.Unlock()
	r.tell(stayed)
	r.tell(servers)
	signal(r.wake)
}

// tell is called with telling locked.
func (r *routes) tell(servers map[string]peer) {
	names := map[string]bool{}
	for _, p := range servers {
		names[p.name] = true
	}
	connected := slices.Sorted(maps.Keys(names))
	same := false
	r.note(func() {
		same = slices.Equal(connected, r.connected)
		r.servers, r.connected = servers, connected
	})
	if same {
		return
	}
	for _, id := range slices.Sorted(maps.Keys(r.watchers)) {
		r.watchers[id](slices.Clone(connected))
	}
}

// present are the servers with which the nodes' account has a route, by their ids. A route of another account alone does
// not count: nothing that the nodes say to each other takes it. Nor does one of this server's name, which is about to be
// refused.
func (r *routes) present() (servers map[string]peer, ok bool) {
	z, err := r.s.ns.Routez(nil)
	if err != nil {
		return nil, false
	}
	servers = map[string]peer{}
	for _, route := range z.Routes {
		if route.Account == r.account && route.RemoteName != r.s.cfg.ServerName {
			servers[route.RemoteID] = peer{name: cmp.Or(route.RemoteName, route.RemoteID), ip: route.IP}
		}
	}
	return servers, true
}

// Routes are the names of the servers that are connected with this one, in order; nil without a cluster.
func (s *Server) Routes() []string {
	if s.routes == nil {
		return nil
	}
	s.routes.mu.Lock()
	defer s.routes.mu.Unlock()
	return slices.Clone(s.routes.connected)
}

// WatchRoutes calls f with Routes now, and again after each change until stop is called or the server stops, one call at
// a time. A server whose process dies is gone within about 5 ms, one whose network is cut within 1.5 s. A server that was
// restarted is told as gone before it is told as there, however fast it was. f must not block, and must not call stop.
func (s *Server) WatchRoutes(f func(connected []string)) (stop func()) {
	r := s.routes
	if r == nil {
		f(nil)
		return func() {}
	}
	r.telling.Lock()
	defer r.telling.Unlock()
	id := r.watcher
	r.watcher++
	r.watchers[id] = f
	f(s.Routes())
	return func() {
		r.telling.Lock()
		defer r.telling.Unlock()
		delete(r.watchers, id)
	}
}
