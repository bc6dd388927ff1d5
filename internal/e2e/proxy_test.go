package e2e

import (
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
)

// proxy forwards TCP connections to a daemon until it is frozen: then it keeps them open and forwards nothing, as a
// network does that is cut without anybody being told.
type proxy struct {
	listener net.Listener
	target   string
	mu       sync.Mutex
	conns    []net.Conn
	frozen   chan struct{}
	once     sync.Once
}

func newProxy(t testing.TB, url string) *proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: listener, target: strings.TrimPrefix(url, "nats://"), frozen: make(chan struct{})}
	go p.accept()
	t.Cleanup(p.close)
	return p
}

func (p *proxy) url() string { return "nats://" + p.listener.Addr().String() }

func (p *proxy) freeze() { p.once.Do(func() { close(p.frozen) }) }

func (p *proxy) accept() {
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
		p.conns = append(p.conns, client, server)
		p.mu.Unlock()
		go p.forward(client, server)
		go p.forward(server, client)
	}
}

// forward copies until the proxy is frozen; what was read by then is thrown away, and nothing is closed.
func (p *proxy) forward(from, to net.Conn) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		select {
		case <-p.frozen:
			return
		default:
		}
		if n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			if errors.Is(err, io.EOF) {
				to.Close()
			}
			return
		}
	}
}

func (p *proxy) close() {
	p.listener.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		c.Close()
	}
}
