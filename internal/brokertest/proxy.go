package brokertest

import (
	"net"
	"strings"
	"sync"
	"testing"
)

// Proxy forwards TCP connections of clients to a daemon. It can stop forwarding without closing anything, as a network does
// that is cut without anybody being told, and cut its connections. Safe for concurrent use.
type Proxy struct {
	listener net.Listener
	target   string

	mu      sync.Mutex
	open    *sync.Cond // neither stalled, or closed
	stalled bool
	closed  bool
	conns   map[net.Conn]struct{}
	running sync.WaitGroup
}

// NewProxy stands before the server at a nats:// URL until the test ends.
func NewProxy(t testing.TB, url string) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{listener: l, target: strings.TrimPrefix(url, "nats://"), conns: map[net.Conn]struct{}{}}
	p.open = sync.NewCond(&p.mu)
	p.running.Add(1)
	go p.accept()
	t.Cleanup(p.close)
	return p
}

// URL is where clients connect to.
func (p *Proxy) URL() string { return "nats://" + p.listener.Addr().String() }

// Stall stops forwarding; nothing is closed, and new connections are taken. With on false everything that was kept goes on.
func (p *Proxy) Stall(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stalled = on
	p.open.Broadcast()
}

// Cut closes all connections there are.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		c.Close()
		delete(p.conns, c)
	}
}

func (p *Proxy) accept() {
	defer p.running.Done()
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
		p.running.Add(2)
		p.mu.Unlock()
		go p.forward(client, server)
		go p.forward(server, client)
	}
}

func (p *Proxy) forward(from, to net.Conn) {
	defer p.running.Done()
	defer from.Close()
	defer to.Close()
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if err != nil || !p.mayForward() {
			return
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}

// mayForward waits while the proxy is stalled; false: it is closed, and what was kept is lost.
func (p *Proxy) mayForward() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.stalled && !p.closed {
		p.open.Wait()
	}
	return !p.closed
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
