package client_test

import (
	"net"
	"strings"
	"sync"
	"testing"
)

// proxy stands between clients and a broker. It can stop forwarding without closing anything, and cut its connections.
type proxy struct {
	listener net.Listener
	target   string

	mu      sync.Mutex
	open    *sync.Cond
	stalled bool
	closed  bool
	conns   map[net.Conn]struct{}
	running sync.WaitGroup
}

func newProxy(t testing.TB, brokerURL string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: l, target: strings.TrimPrefix(brokerURL, "nats://"), conns: map[net.Conn]struct{}{}}
	p.open = sync.NewCond(&p.mu)
	p.running.Add(1)
	go p.accept()
	t.Cleanup(p.close)
	return p
}

func (p *proxy) url() string { return "nats://" + p.listener.Addr().String() }

func (p *proxy) accept() {
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
		p.conns[client], p.conns[server] = struct{}{}, struct{}{}
		p.running.Add(2)
		p.mu.Unlock()
		go p.forward(client, server)
		go p.forward(server, client)
	}
}

func (p *proxy) forward(from, to net.Conn) {
	defer p.running.Done()
	defer from.Close()
	defer to.Close()
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		p.mu.Lock()
		for p.stalled && !p.closed {
			p.open.Wait()
		}
		p.mu.Unlock()
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}

// stall stops forwarding; nothing is closed. With on false everything that was kept goes on.
func (p *proxy) stall(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stalled = on
	p.open.Broadcast()
}

// cut closes all connections.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		c.Close()
		delete(p.conns, c)
	}
}

func (p *proxy) close() {
	p.listener.Close()
	p.mu.Lock()
	p.closed = true
	p.open.Broadcast()
	p.mu.Unlock()
	p.cut()
	p.running.Wait()
}
