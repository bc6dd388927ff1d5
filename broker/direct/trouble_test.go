package direct

import (
	"crypto/ed25519"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/opencluster/oclocks/conf"
)

// signedByANode is a configuration whose certificate says the same as a node's, for another key, and is signed with the node's.
func signedByANode(t testing.TB, config *tls.Config) *tls.Config {
	t.Helper()
	node, err := config.GetClientCertificate(nil)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(node.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	public, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.CreateCertificate(nil, leaf, leaf, public, node.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		return &tls.Certificate{Certificate: [][]byte{raw, node.Certificate[0]}, PrivateKey: key}, nil
	}
	return config
}

// Who is not a node of the cluster is refused, by either side, and told.
func TestStrangersAreRefused(t *testing.T) {
	other, err := conf.NewAuthority("shop") // the same name does not help
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		come func(p *place, address string) (net.Conn, error)
		log  string
	}{
		"of another cluster": {func(p *place, address string) (net.Conn, error) {
			config := identity(t, other, 1).TLS()
			config.NextProtos, config.InsecureSkipVerify = []string{protocol}, true
			return tls.Dial("tcp", address, config)
		}, "unknown authority"},
		"without a certificate": {func(p *place, address string) (net.Conn, error) {
			return tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{protocol}}) //nolint:gosec // it is a stranger
		}, "didn't provide a certificate"},
		"with a certificate that a node signed": {func(p *place, address string) (net.Conn, error) {
			config := signedByANode(p.t, identity(p.t, p.authority, 1).TLS())
			config.NextProtos = []string{protocol}
			return tls.Dial("tcp", address, config)
		}, "unknown authority"},
		"with TLS 1.2": {func(p *place, address string) (net.Conn, error) {
			config := identity(p.t, p.authority, 1).TLS()
			config.NextProtos, config.MinVersion, config.MaxVersion = []string{protocol}, tls.VersionTLS12, tls.VersionTLS12
			return tls.Dial("tcp", address, config)
		}, "unsupported versions"},
		"not in the configuration": {func(p *place, address string) (net.Conn, error) {
			return p.fakeClient(identity(t, p.authority, 9), address, protocol)
		}, named(9) + " is no other node of this cluster"},
		"this node itself": {func(p *place, address string) (net.Conn, error) {
			return p.fakeClient(identity(t, p.authority, 2), address, protocol)
		}, named(2) + " is no other node of this cluster"},
		"of another protocol": {func(p *place, address string) (net.Conn, error) {
			return p.fakeClient(identity(t, p.authority, 1), address, "oclocks-route")
		}, "oclocks-route"},
		"without TLS": {func(p *place, address string) (net.Conn, error) {
			c, err := net.Dial("tcp", address)
			if err == nil {
				_, err = io.WriteString(c, "CONNECT {}\r\nPING\r\n")
			}
			return c, err
		}, "first record does not look like a TLS handshake"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			n := p.add(2)
			p.admit(1, identity(t, p.authority, 1))
			c, err := test.come(p, n.Addr().String())
			if err == nil {
				t.Cleanup(func() { c.Close() })
				if err := c.SetReadDeadline(time.Now().Add(far)); err != nil {
					t.Fatal(err)
				}
				_, err = io.ReadAll(c)
			}
			if errors.Is(err, os.ErrDeadlineExceeded) {
				t.Error("the connection stays")
			}
			eventually(t, "the log says "+test.log, func() bool { return n.log.has(test.log) })
			if len(n.Up()) > 0 || len(n.frames(1)) > 0 {
				t.Error("it was let in")
			}
		})
	}
}

// Who is at an address must be the node that was meant, and one of this cluster.
func TestTheWrongNodeAtAnAddress(t *testing.T) {
	p := newPlace(t)
	third := p.add(3)
	p.identified(2)
	p.at(2, third.Addr().String())
	a := p.add(1)
	eventually(t, "it is told", func() bool { return a.log.has("node 3 (" + named(3) + ") is at") })
	a.linked(t, 3)
	if a.Send(2, []byte("secret")) {
		t.Error("a frame went to the wrong node")
	}

	other := newPlace(t)
	stranger := other.add(2)
	p.at(2, stranger.Addr().String())
	eventually(t, "the stranger hears of it", func() bool { return stranger.log.has("is refused") })
	if a.Send(2, []byte("secret")) {
		t.Error("a frame went to a stranger")
	}
}

// What is no frame ends the link, and nothing of it is taken.
func TestBadFramesEndTheLink(t *testing.T) {
	for name, test := range map[string]struct {
		send  []byte
		close bool
		log   string
	}{
		"cut in the middle":      {append(appendFrame(nil, []byte("whole")), 0, 0, 1, 0, 'x', 'y'), true, "in the middle of a frame: unexpected EOF"},
		"a large one, cut":       {append(appendFrame(nil, []byte("whole")), 0, 15, 0, 0, 'x', 'y'), true, "in the middle of a frame"},
		"cut in the length":      {append(appendFrame(nil, []byte("whole")), 0, 0), true, "unexpected EOF"},
		"too large":              {binary.BigEndian.AppendUint32(appendFrame(nil, []byte("whole")), MaxFrame+1), false, "a frame: of 1048577 bytes"},
		"the end between two":    {appendFrame(nil, []byte("whole")), true, "EOF"},
		"in another node's name": {appendFrame(appendFrame(nil, []byte("whole")), []byte("lie")), false, "a lie"},
		"rubbish":                {append(appendFrame(nil, []byte("whole")), strings.Repeat("\xff", 100)...), false, "of 4294967295 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			n := p.add(2, func(c *Config) {
				take := c.Receive
				c.Receive = func(from *Link) func([]byte) error {
					next := take(from)
					return func(frame []byte) error {
						if string(frame) == "lie" {
							return errors.New("a lie")
						}
						return next(frame)
					}
				}
			})
			first := p.identified(1)
			c, err := p.fakeClient(first, n.Addr().String(), protocol)
			if err != nil {
				t.Fatal(err)
			}
			n.linked(t, 1)
			if _, err := c.Write(test.send); err != nil {
				t.Fatal(err)
			}
			if test.close { // its end only: what a socket has not read when it is closed has the other side lose what it has not read
				if err := c.CloseWrite(); err != nil {
					t.Fatal(err)
				}
			}
			n.linked(t)
			if got := n.frames(1); len(got) != 1 || got[0] != "whole" {
				t.Errorf("got %q", got)
			}
			eventually(t, "the log says "+test.log, func() bool { return n.log.has(test.log) }) // a moment after the link is gone
			a := p.start(1, first)                                                              // the next link is as good as ever
			reaches(t, a, n, 1, 2, "again")
		})
	}
}

// A node that stands still is noticed, and until then nobody waits for it.
func TestASilentNodeIsGivenUp(t *testing.T) {
	p := newPlace(t)
	conns := p.fakeServer(2)
	a := p.add(1, func(c *Config) { c.missed = maxMissed })
	received(t, conns)
	eventually(t, "the link is given up, which is worth a warning", func() bool {
		return a.log.has("level=WARN") && a.log.has(ErrSilent.Error())
	})
	c := received(t, conns) // and tried again
	go io.Copy(c, c)        // beats come back, so it lives, until the test closes it
	eventually(t, "a link", func() bool { return a.Up()[2] })
}

// flood sends until the socket is full and what waits in memory is more than least.
func flood(t *testing.T, a *node, least int) (sent int) {
	t.Helper()
	frame := make([]byte, 1000)
	c := (*a.conns.Load())[2]
	for late := time.Now().Add(far); ; sent++ {
		binary.BigEndian.PutUint32(frame, uint32(sent)) //nolint:gosec // few
		if !a.Send(2, frame) {
			t.Fatalf("frame %d is not sent", sent)
		}
		c.out.mu.Lock()
		waits := len(c.out.text)
		c.out.mu.Unlock()
		if waits > least {
			return sent + 1
		}
		if time.Now().After(late) {
			t.Fatal("the socket takes everything")
		}
	}
}

// A node that does not read for a while gets everything when it does.
func TestAFullSocketWaitsInMemory(t *testing.T) {
	p := newPlace(t)
	conns := p.fakeServer(2)
	a := p.add(1, func(c *Config) { c.beat = time.Hour }) // the other side says nothing
	c := received(t, conns)
	a.linked(t, 2)
	sent := flood(t, a, 2<<20)
	next := uint32(0)
	done := make(chan error, 1)
	go func() {
		done <- readFrames(c, func(frame []byte) error {
			if len(frame) == 0 {
				return nil
			}
			if got := binary.BigEndian.Uint32(frame); got != next {
				return errors.New("out of order")
			}
			if next++; int(next) == sent+1 {
				return io.EOF
			}
			return nil
		})
	}()
	last := make([]byte, 1000)
	binary.BigEndian.PutUint32(last, uint32(sent)) //nolint:gosec // few
	if !a.Send(2, last) {
		t.Fatal("the last frame is not sent")
	}
	if err := received(t, done); !errors.Is(err, io.EOF) || int(next) != sent+1 {
		t.Errorf("%d of %d frames: %v", next, sent+1, err)
	}
	reused := (*a.conns.Load())[2].out
	eventually(t, "the socket is written to at once again", func() bool {
		reused.mu.Lock()
		defer reused.mu.Unlock()
		return !reused.busy
	})
}

// What waits in memory is bounded.
func TestASlowNodeLosesItsLink(t *testing.T) {
	p := newPlace(t)
	conns := p.fakeServer(2)
	a := p.add(1, func(c *Config) { c.beat, c.limit = time.Hour, 1<<20 })
	received(t, conns)
	a.linked(t, 2)
	flood(t, a, 512<<10)
	frame := make([]byte, 100_000)
	refused := false
	for range 100 {
		if refused = !a.Send(2, frame); refused {
			break
		}
	}
	if !refused {
		t.Fatal("everything is sent")
	}
	eventually(t, "the reason", func() bool { return a.log.has(ErrSlow.Error()) })
}

// What a goroutine is writing, and the socket does not take, waits as well: there is one bound for both.
func TestWhatIsBeingWrittenCounts(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	near, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer near.Close()
	far, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer far.Close()
	const limit = 32 << 20 // more than a socket takes
	o, err := newOutlet(near, limit)
	if err != nil {
		t.Fatal(err)
	}
	o.hold()
	write := func(n int) error {
		_, err := o.Write(make([]byte, n))
		return errors.Join(err, o.push())
	}
	if err := write(limit); err != nil {
		t.Fatal(err)
	}
	closed, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- o.drain(closed) }()
	eventually(t, "it is being written", func() bool {
		o.mu.Lock()
		defer o.mu.Unlock()
		return len(o.text) == 0 && o.taken > limit/2
	})
	if err := write(limit / 2); !errors.Is(err, ErrSlow) {
		t.Errorf("more than the limit waits: %v", err)
	}
	if err := write(1000); err != nil {
		t.Errorf("there is room for it: %v", err)
	}
	near.Close()
	close(closed)
	if err := received(t, ended); err == nil {
		t.Error("it is written")
	}
}

// Connections on which nothing is said keep nobody out for ever, and do not become more and more.
func TestHalfOpenConnectionsAreBounded(t *testing.T) {
	p := newPlace(t)
	b := p.add(2)
	var open []net.Conn
	for range halfOpen {
		c, err := net.Dial("tcp", b.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		open = append(open, c)
	}
	eventually(t, "all of them are being waited for", func() bool { return len(b.half) == halfOpen })
	extra, err := net.Dial("tcp", b.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { extra.Close() })
	if _, err := io.ReadAll(extra); err != nil {
		t.Logf("closed: %v", err)
	}
	eventually(t, "it is told", func() bool { return b.log.has("too many are half open") })
	for _, c := range open {
		c.Close()
	}
	a := p.add(1)
	reaches(t, a, b, 1, 2, "let in")
}
