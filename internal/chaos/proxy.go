package chaos

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/opencluster/oclocks/internal/e2e/daemons"
)

// trouble is what a proxy does with the connections between two hosts.
type trouble struct {
	late   time.Duration // everything arrives so much later
	flip   bool          // now and then a bit is flipped
	garble bool          // now and then the rest of what was read becomes rubbish, and the connection is reset
	reset  bool          // connections are reset after a while
	every  time.Duration // how long a connection lives on average until it is flipped, garbled or reset

	hurt atomic.Int64 // times that it did harm: bytes that were late, or connections that were flipped, garbled or reset
}

// proxies stand between hosts whose packets are led to this process (daemons.Network.Intercept). Each side sees the other's address.
type proxies struct {
	mu       sync.Mutex
	troubles map[[2]int]*trouble // by host, the lower number first
	open     map[net.Conn]bool   // connections
	serial   atomic.Uint64
	all      sync.WaitGroup
	listen   []net.Listener
	dial     func(ctx context.Context, from, to string) (net.Conn, error)
}

func newProxies() *proxies {
	return &proxies{troubles: make(map[[2]int]*trouble), open: make(map[net.Conn]bool), dial: dialFrom}
}

// serve takes the connections that others mean for an address of a host.
func (p *proxies) serve(host, port int) error {
	l, err := listenFor(fmt.Sprint(daemons.Address(host), ":", port))
	if err != nil {
		return fmt.Errorf("take connections for host %d: %w", host, err)
	}
	p.listen = append(p.listen, l)
	p.all.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			p.all.Go(func() { p.forward(in, l.Addr().String()) })
		}
	})
	return nil
}

// close ends everything.
func (p *proxies) close() {
	for _, l := range p.listen {
		l.Close()
	}
	p.mu.Lock()
	for c := range p.open {
		cutOff(c)
	}
	p.mu.Unlock()
	p.all.Wait()
}

// begin gives two hosts a trouble; false if they have one.
func (p *proxies) begin(i, j int, t *trouble) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	way := [2]int{min(i, j), max(i, j)}
	if p.troubles[way] != nil {
		return false
	}
	p.troubles[way] = t
	return true
}

// finish ends the trouble of two hosts, and all connections that went through it.
func (p *proxies) finish(i, j int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	way := [2]int{min(i, j), max(i, j)}
	delete(p.troubles, way)
	for c := range p.open {
		if between(c.RemoteAddr(), c.LocalAddr()) == way {
			cutOff(c)
		}
	}
}

// between are the hosts of a connection.
func between(a, b net.Addr) (way [2]int) {
	var i, j int
	fmt.Sscanf(a.String(), "10.77.%d.2:", &i) //nolint:errcheck // 0 is no host
	fmt.Sscanf(b.String(), "10.77.%d.2:", &j) //nolint:errcheck // 0 is no host
	return [2]int{min(i, j), max(i, j)}
}

// note remembers a connection while it is open; false if there is no trouble between its hosts (any more).
func (p *proxies) note(c net.Conn) (*trouble, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.troubles[between(c.RemoteAddr(), c.LocalAddr())]
	if t == nil {
		return nil, false
	}
	p.open[c] = true
	return t, true
}

func (p *proxies) drop(c net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, c)
	cutOff(c)
}

// cutOff ends a connection with a reset.
func cutOff(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		tcp.SetLinger(0) //nolint:errcheck // then it ends in another way
	}
	c.Close()
}

// forward carries one connection.
func (p *proxies) forward(in net.Conn, to string) {
	t, ok := p.note(in)
	if !ok {
		cutOff(in)
		return
	}
	defer p.drop(in)
	host, _, err := net.SplitHostPort(in.RemoteAddr().String())
	if err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	out, err := p.dial(ctx, host, to)
	cancel()
	if err != nil {
		return
	}
	if _, ok := p.note(out); !ok {
		cutOff(out)
		return
	}
	defer p.drop(out)
	if t.reset {
		timer := time.AfterFunc(p.life(t), func() { t.hurt.Add(1); cutOff(in); cutOff(out) })
		defer timer.Stop()
	}
	var both sync.WaitGroup
	both.Go(func() { t.carry(in, out, p.life(t)) })
	both.Go(func() { t.carry(out, in, p.life(t)) })
	both.Wait()
}

// life is how long a connection lives: between half and one and a half times what is usual.
func (p *proxies) life(t *trouble) time.Duration {
	const golden = 0x9e3779b97f4a7c15
	return t.every/2 + time.Duration(p.serial.Add(golden)%uint64(max(t.every, 1)))
}

// parcel is what was read, and when it is to be sent.
type parcel struct {
	bytes []byte
	at    time.Time
}

// carry carries one direction until it breaks; then both break.
func (t *trouble) carry(from, to net.Conn, life time.Duration) {
	defer cutOff(from)
	defer cutOff(to)
	parcels := make(chan parcel, 4096) // as much as may be on its way; more waits to be read
	done := make(chan struct{})
	defer close(done)
	go func() {
		defer close(parcels)
		for {
			buffer := make([]byte, 16<<10)
			n, err := from.Read(buffer)
			if err != nil {
				return
			}
			select {
			case parcels <- parcel{buffer[:n], time.Now().Add(t.late)}:
			case <-done:
				return
			}
		}
	}()
	end := time.Now().Add(life)
	for one := range parcels {
		if wait := time.Until(one.at); wait > 0 {
			<-time.After(wait) // it is what the proxy is for
		}
		broken := (t.flip || t.garble) && time.Now().After(end)
		if broken {
			t.damage(one.bytes)
			end = time.Now().Add(life)
		}
		if t.late > 0 {
			t.hurt.Add(1)
		}
		if _, err := to.Write(one.bytes); err != nil || broken && t.garble {
			return
		}
	}
}

// damage flips a bit, or makes the second half rubbish that is no text: a client's connection has no TLS here, and a wrong digit would be
// a wrong answer, which is nobody's fault.
func (t *trouble) damage(b []byte) {
	t.hurt.Add(1)
	if t.flip {
		b[len(b)/2] ^= 1
		return
	}
	for i := len(b) / 2; i < len(b); i++ {
		b[i] = 0xff
	}
}
