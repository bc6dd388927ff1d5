package brokertest

import (
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
)

// Proxy forwards TCP connections to a server: those of clients to a daemon, or direct links to a node. It counts what it carries, can stop
// forwarding without closing anything, as a network does that is cut without anybody being told, and cut its connections. Safe for
// concurrent use.
type Proxy struct {
	listener net.Listener
	target   string

	mu      sync.Mutex
	open    *sync.Cond // neither stalled, or closed
	stalled bool
	closed  bool
	carried int
	conns   map[net.Conn]struct{}
	running sync.WaitGroup
}

// NewProxy stands before a server, at HOST:PORT or at a nats:// URL, until the test ends. The server need not be there yet.
func NewProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{listener: l, target: strings.TrimPrefix(target, "nats://"), conns: map[net.Conn]struct{}{}}
	p.open = sync.NewCond(&p.mu)
	p.running.Go(p.accept)
	t.Cleanup(p.close)
	return p
}

// Address is where it listens, HOST:PORT.
func (p *Proxy) Address() string { return p.listener.Addr().String() }

// URL is where clients connect to.
func (p *Proxy) URL() string { return "nats://" + p.Address() }

// Stall stops forwarding; nothing is closed, and new connections are taken. With on false everything that was kept goes on.
func (p *Proxy) Stall(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stalled = on
	p.open.Broadcast()
}

// Cut kills the sockets of all connections there are.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		err := c.(*net.TCPConn).SetLinger(0)
		if err = errors.Join(err, c.Close()); err != nil && !errors.Is(err, net.ErrClosed) {
			panic(err)
		}
		delete(p.conns, c)
	}
}

// Carried is how many bytes it has forwarded, in both directions.
func (p *Proxy) Carried() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.carried
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.target)
		if err != nil {
			client.Close()
			continue
		}
		p.mu.Lock()
		if p.closed {
			p.mu.Unlock()
			client.Close()
			server.Close()
			return
		}
		p.conns[client], p.conns[server] = struct{}{}, struct{}{}
		p.running.Go(func() { p.forward(client, server) })
		p.running.Go(func() { p.forward(server, client) })
		p.mu.Unlock()
	}
}

func (p *Proxy) forward(from, to net.Conn) {
	defer func() {
		from.Close()
		to.Close()
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.conns, from)
	}()
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if err != nil || !p.mayForward(n) {
			return
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}

// mayForward waits while the proxy is stalled; false: it is closed, and what was kept is lost.
func (p *Proxy) mayForward(n int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.stalled && !p.closed {
		p.open.Wait()
	}
	if p.closed {
		return false
	}
	p.carried += n
	return true
}

func (p *Proxy) close() {
	p.listener.Close()
	p.mu.Lock()
	p.closed = true
	p.open.Broadcast()
	p.mu.Unlock()
	p.Cut()
	p.running.Wait()
}
