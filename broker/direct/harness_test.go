package direct

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/opencluster/oclocks/conf"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// far is longer than any test waits for what must come.
const far = time.Minute

// quick is how often links beat in tests. Only where a test is about that are they given up for beats that they miss: a machine may
// stand still for a while.
const (
	quick   = 50 * time.Millisecond
	forgive = 1 << 30
)

func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for late := time.Now().Add(far); !holds(); <-time.After(time.Millisecond) {
		if time.Now().After(late) {
			t.Fatalf("it never came: %s", what)
		}
	}
}

// book is a log that tests read.
type book struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *book) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *book) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

func (b *book) has(text string) bool {
	return strings.Contains(b.String(), text)
}

// place is what the nodes of a test know of each other.
type place struct {
	t         testing.TB
	authority *conf.Authority

	mu      sync.Mutex
	peers   []Peer
	address map[uint64]string
}

func newPlace(t testing.TB) *place {
	t.Helper()
	authority, err := conf.NewAuthority("shop")
	if err != nil {
		t.Fatal(err)
	}
	return &place{t: t, authority: authority, address: make(map[uint64]string)}
}

func (p *place) known() []Peer {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]Peer(nil), p.peers...)
}

func (p *place) ask(_ context.Context, node uint64) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.address[node], nil
}

// at says where a node is found from now on.
func (p *place) at(node uint64, address string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.address[node] = address
}

// admit makes a node known, and remove forgets it.
func (p *place) admit(node uint64, identity *conf.Identity) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.peers = append(p.peers, Peer{Number: node, Identifier: identity.Node()})
}

func (p *place) remove(node uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.peers {
		if p.peers[i].Number == node {
			p.peers = append(p.peers[:i:i], p.peers[i+1:]...)
			return
		}
	}
}

// named is the identifier of a node.
func named(node uint64) string { return strings.Repeat("a", 25) + string(rune('a'+node)) }

func identity(t testing.TB, authority *conf.Authority, node uint64) *conf.Identity {
	t.Helper()
	i, err := conf.NewIdentity(authority, named(node))
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// node is one with links.
type node struct {
	*Links
	log *book

	mu  sync.Mutex
	got map[uint64][]string // by sender
}

// identified makes a node known, without starting it.
func (p *place) identified(number uint64) *conf.Identity {
	i := identity(p.t, p.authority, number)
	p.admit(number, i)
	return i
}

// start starts a node that is known.
func (p *place) start(number uint64, i *conf.Identity, change ...func(*Config)) *node {
	p.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		p.t.Fatal(err)
	}
	n := &node{log: &book{}, got: make(map[uint64][]string)}
	cfg := Config{
		Listener: l, TLS: i.TLS(), Self: number, Peers: p.known, Ask: p.ask, beat: quick, missed: forgive,
		Logger: slog.New(slog.NewTextHandler(n.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Receive: func(link *Link) func([]byte) error {
			from := link.Node()
			return func(frame []byte) error {
				n.mu.Lock()
				defer n.mu.Unlock()
				n.got[from] = append(n.got[from], string(frame))
				return nil
			}
		},
	}
	for _, c := range change {
		c(&cfg)
	}
	n.Links = Start(cfg)
	p.at(number, l.Addr().String())
	p.t.Cleanup(n.Close)
	p.t.Cleanup(func() {
		if p.t.Failed() {
			p.t.Logf("node %d:\n%s", number, n.log.String())
		}
	})
	return n
}

// add makes a node known and starts it.
func (p *place) add(number uint64, change ...func(*Config)) *node {
	p.t.Helper()
	return p.start(number, p.identified(number), change...)
}

func (n *node) frames(from uint64) []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]string(nil), n.got[from]...)
}

func (n *node) linked(t testing.TB, to ...uint64) {
	t.Helper()
	eventually(t, fmt.Sprintf("links with %v", to), func() bool {
		up := n.Up()
		for _, node := range to {
			if !up[node] {
				return false
			}
		}
		return len(up) == len(to)
	})
}

// reaches sends until something arrives, since a link may break meanwhile.
func reaches(t testing.TB, a, b *node, from, to uint64, text string) {
	t.Helper()
	eventually(t, text, func() bool {
		a.Send(to, []byte(text))
		for _, got := range b.frames(from) {
			if got == text {
				return true
			}
		}
		return false
	})
}

// fake is the other end of a link, in the hands of a test: it accepts as a node, or dials one.
func (p *place) fakeServer(number uint64) (accepted <-chan *tls.Conn) {
	p.t.Helper()
	config := p.identified(number).TLS()
	config.NextProtos = []string{protocol}
	l, err := tls.Listen("tcp", "127.0.0.1:0", config)
	if err != nil {
		p.t.Fatal(err)
	}
	conns := make(chan *tls.Conn, 100)
	var ended sync.WaitGroup
	ended.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			p.t.Cleanup(func() { c.Close() })
			if _, err := c.Write(make([]byte, headBytes)); err == nil { // the first beat
				conns <- c.(*tls.Conn)
			}
		}
	})
	p.t.Cleanup(func() {
		l.Close()
		ended.Wait()
	})
	p.at(number, l.Addr().String())
	return conns
}

func (p *place) fakeClient(i *conf.Identity, address, speaks string) (*tls.Conn, error) {
	config := i.TLS()
	config.NextProtos = []string{speaks}
	d := tls.Dialer{Config: config, NetDialer: &net.Dialer{Timeout: far}}
	c, err := d.DialContext(p.t.Context(), "tcp", address)
	if err != nil {
		return nil, err
	}
	p.t.Cleanup(func() { c.Close() })
	return c.(*tls.Conn), nil
}

func received[T any](t testing.TB, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(far):
		t.Fatal("it never came")
		panic("unreachable")
	}
}
