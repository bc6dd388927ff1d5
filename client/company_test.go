package client_test

import (
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/opencluster/oclocks/client"
)

// Sessions whose clients share a connection keep themselves alive in common messages, one for each node, and lose nothing when those are not
// taken, not answered, or not heard.
func TestKeepAlivesOfACompany(t *testing.T) {
	const lease, size = 10 * time.Second, 9 // a keep-alive is due after half of it, and nothing may stand still for a quarter
	for what, spoil := range map[string]func(seen *bundlesSeen){
		"taken":   nil,
		"refused": func(seen *bundlesSeen) { seen.refused.Store(true) },
		"lost":    func(seen *bundlesSeen) { seen.swallowed.Store(true) },
		"unheard": func(seen *bundlesSeen) {
			for _, sub := range seen.subs {
				must(seen.t, sub.Unsubscribe())
			}
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			f := startFakeCluster(t)
			seen := f.takeBundles()
			nc, err := nats.Connect(f.nodes[0].srv.ClientURL())
			must(t, err)
			t.Cleanup(nc.Close)
			var claims []*client.Claim
			for i := range size {
				c := connectURL(t, "", client.WithConn(nc), client.WithLease(lease))
				claims = append(claims, lockOf(t, c.Mutex(f.nameAt(f.nodes[i%len(f.nodes)], fmt.Sprint("company/", i)))))
			}
			waitFor(t, "keep-alives in bundles", func() bool { return seen.keeps.Load() >= size })
			if spoil != nil {
				before := f.kept.Load()
				spoil(seen)
				waitFor(t, "each to be asked again", func() bool { return f.kept.Load() >= before+2*size })
				if told := seen.told.Load(); (what == "refused" || what == "lost") && told == 0 {
					t.Error("no bundle came any more")
				}
			}
			for i, claim := range claims {
				if err := claim.Err(); err != nil {
					t.Errorf("claim %d: %v", i, err)
				}
			}
		})
	}
}

// Clients that go while keep-alives of theirs are under way take nothing from those that stay, and the last one leaves nothing.
func TestACompanyThatIsLeft(t *testing.T) {
	t.Parallel()
	const lease, size, stay = 6 * time.Second, 24, 4
	f := startFakeCluster(t)
	seen := f.takeBundles()
	nc, err := nats.Connect(f.nodes[0].srv.ClientURL())
	must(t, err)
	t.Cleanup(nc.Close)
	must(t, connectURL(t, "", client.WithConn(nc)).Close(within(t)))
	before := nc.NumSubscriptions() // that of nats.go for its own requests
	var clients []*client.Client
	var claims []*client.Claim
	for i := range size {
		c := connectURL(t, "", client.WithConn(nc), client.WithLease(lease))
		clients = append(clients, c)
		claims = append(claims, lockOf(t, c.Mutex(f.nameAt(f.nodes[i/stay%len(f.nodes)], fmt.Sprint("left/", i)))))
	}
	user := clients[0].User()
	waitFor(t, "keep-alives in bundles", func() bool { return seen.keeps.Load() >= size })
	for _, leaving := range [][]*client.Client{clients[stay : size/2], clients[size/2:]} {
		now := seen.keeps.Load()
		waitFor(t, "more keep-alives", func() bool { return seen.keeps.Load() > now })
		ctx := within(t)
		var going sync.WaitGroup
		for _, c := range leaving {
			going.Go(func() {
				if err := c.Close(ctx); err != nil {
					t.Errorf("close: %v", err)
				}
			})
		}
		going.Wait()
	}
	now := seen.keeps.Load()
	waitFor(t, "bundles of those that are left", func() bool { return seen.keeps.Load() >= now+stay })
	if entered, members, _ := client.Company(nc, user); entered != stay || members != stay {
		t.Errorf("%d have entered, %d take part", entered, members)
	}
	for i, claim := range claims[:stay] {
		if err := claim.Err(); err != nil {
			t.Errorf("claim %d: %v", i, err)
		}
		must(t, clients[i].Close(within(t)))
	}
	if entered, _, sent := client.Company(nc, user); entered != 0 || sent != 0 || nc.NumSubscriptions() != before {
		t.Errorf("%d have not left, %d keep-alives are under way, %d subscriptions of %d", entered, sent, nc.NumSubscriptions(), before)
	}
}

// A connection that stands still is nobody else's matter.
func TestACompanyWhoseConnectionStandsStill(t *testing.T) {
	t.Parallel()
	f := startFakeCluster(t)
	url := f.nodes[0].srv.ClientURL()
	gate := &gate{entered: make(chan struct{}, 1), open: make(chan struct{})}
	stuck, err := nats.Connect(url, nats.SetCustomDialer(gate))
	must(t, err)
	t.Cleanup(stuck.Close)
	other, err := nats.Connect(url)
	must(t, err)
	t.Cleanup(other.Close)
	open := sync.OnceFunc(func() { close(gate.open) })
	t.Cleanup(open)
	gate.closed.Store(true)
	must(t, stuck.Publish("nobody", nil))
	<-gate.entered // the connection is locked by now
	type entering struct {
		leave func() error
		err   error
	}
	entered := make(chan entering, 2)
	enter := func(nc *nats.Conn) {
		leave, err := client.EnterCompany(nc, "anyone")
		entered <- entering{leave, err}
	}
	go enter(stuck)
	waitFor(t, "its company", func() bool {
		n, _, _ := client.Company(stuck, "anyone")
		return n == 1
	})
	go enter(other)
	first := <-entered
	must(t, first.err)
	if n, _, _ := client.Company(other, "anyone"); n != 1 {
		t.Error("the first to enter is the one whose connection stands still")
	}
	must(t, first.leave())
	open()
	second := <-entered
	must(t, second.err)
	must(t, second.leave())
}

// gate dials connections whose writes wait while it is closed.
type gate struct {
	closed  atomic.Bool
	entered chan struct{} // somebody waits; holds one
	open    chan struct{}
}

func (g *gate) Dial(network, address string) (net.Conn, error) {
	conn, err := net.Dial(network, address)
	return &gated{conn, g}, err
}

type gated struct {
	net.Conn
	*gate
}

func (c *gated) Write(b []byte) (int, error) {
	if c.closed.Load() {
		select {
		case c.entered <- struct{}{}:
		default:
		}
		<-c.open
	}
	return c.Conn.Write(b)
}
