package broker_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/opencluster/oclocks/conf"
	"github.com/opencluster/oclocks/internal/brokertest"
)

// passage is what the direct links to one node go through: it counts what it carries, and breaks or stands still when a test says so.
type passage struct {
	net.Listener

	to string // where the node listens

	mu      sync.Mutex
	moves   *sync.Cond
	still   bool
	closed  bool
	carried int
	open    map[net.Conn]bool
	running sync.WaitGroup
}

func newPassage(t testing.TB) *passage {
	t.Helper()
	listen := func() net.Listener {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	free := listen()
	free.Close()
	p := &passage{Listener: listen(), to: free.Addr().String(), open: make(map[net.Conn]bool)}
	p.moves = sync.NewCond(&p.mu)
	p.running.Go(func() {
		for {
			in, err := p.Accept()
			if err != nil {
				return
			}
			p.running.Go(func() { p.carry(in) })
		}
	})
	t.Cleanup(func() {
		p.Close()
		p.mu.Lock()
		p.closed = true
		p.mu.Unlock()
		p.set(false)
		p.reset()
		p.running.Wait()
	})
	return p
}

func (p *passage) carry(in net.Conn) {
	defer in.Close()
	out, err := new(net.Dialer).DialContext(context.Background(), "tcp", p.to)
	if err != nil {
		return
	}
	defer out.Close()
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return
	}
	p.open[in], p.open[out] = true, true
	p.mu.Unlock()
	var both sync.WaitGroup
	for from, to := range map[net.Conn]net.Conn{in: out, out: in} {
		both.Go(func() {
			defer from.Close()
			defer to.Close()
			_, _ = io.Copy(to, counted{p, from}) // it ends when one of them does
		})
	}
	both.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, in)
	delete(p.open, out)
}

// counted is a connection that is read when the passage does not stand still.
type counted struct {
	p *passage
	net.Conn
}

func (c counted) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.p.mu.Lock()
	defer c.p.mu.Unlock()
	for c.p.still {
		c.p.moves.Wait()
	}
	c.p.carried += n
	return n, err
}

// set has it stand still, or go on.
func (p *passage) set(still bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.still = still
	p.moves.Broadcast()
}

// reset kills the sockets of all links that go through it.
func (p *passage) reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.open {
		err := c.(*net.TCPConn).SetLinger(0)
		if err = errors.Join(err, c.Close()); err != nil && !errors.Is(err, net.ErrClosed) {
			panic(err)
		}
	}
}

func (p *passage) bytes() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.carried
}

// Direct links break while clients take locks: their sockets are killed, and they stand still. The chains go on over NATS, nothing that
// was answered is lost, the links come back and are used again, and then each node has all that the others have.
func TestLinksBreakUnderLoad(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes a while")
	}
	var ways []*passage
	c := brokertest.StartCluster(t, 3, t.TempDir(), func(s *conf.Settings) {
		p := newPassage(t)
		ways = append(ways, p)
		s.HTTP, s.Buckets = "127.0.0.1:0", 4
		s.DirectListen, s.DirectAdvertise = p.to, p.Addr().String()
	})
	ways = ways[1:] // nobody dials the first node
	nc := connect(t, url(c.Daemons[0]))
	settled(t, nc, 3)
	allVote(t, nc, 3)
	held := static(t, nc, 40)
	l := newLoad(t)
	l.use(c.Daemons)
	l.begin(6, 20)
	lost := func() (sum float64) {
		for _, d := range c.Daemons {
			sum += scrape(t, d)["oclocks_direct_links_lost_total"]
		}
		return sum
	}
	used := func() {
		t.Helper()
		eventually(t, "links between all nodes", func() bool { return fmt.Sprint(linksOf(t, c)) == "[2 2 2]" })
		for i, p := range ways {
			before := p.bytes()
			// Beats alone would take minutes.
			eventually(t, fmt.Sprintf("the links to node %d to carry something", i+2), func() bool { return p.bytes() > before+50_000 })
		}
	}
	hold := func(when string) {
		t.Helper()
		for i := range 10 {
			name := fmt.Sprint(when, "/", i)
			held[name] = acquire(t, nc, fmt.Sprintf(`{"name":%q,"ttl":"10m","request":%q}`, name, name))
		}
	}
	used()
	before := lost()
	for _, p := range ways {
		p.reset()
	}
	hold("killed")
	eventually(t, "both ends of three links are lost", func() bool { return lost() >= before+6 })
	used()
	for _, some := range []struct {
		ways []*passage
		left string
	}{{ways[:1], "[1 1 2]"}, {ways, "[0 0 0]"}} {
		for _, p := range some.ways {
			p.set(true)
		}
		hold("stands still, " + some.left)
		eventually(t, "the links that stand still are given up", func() bool { return fmt.Sprint(linksOf(t, c)) == some.left })
		carried := ways[0].bytes()
		hold("over NATS, " + some.left)
		l.more(50)
		if ways[0].bytes() != carried {
			t.Error("what stands still carries something")
		}
		if links := fmt.Sprint(linksOf(t, c)); links != some.left {
			t.Errorf("links: %s", links)
		}
		for _, p := range some.ways {
			p.set(false)
		}
		used()
	}
	settled(t, nc, 3)
	c.Daemons[0].Crash(t) // whoever takes over has only what came to it
	l.use(c.Daemons[1:])
	l.more(20)
	stillHeld(t, connect(t, url(c.Daemons[1])), held)
}
