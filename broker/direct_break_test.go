package broker_test

import (
	"fmt"
	"testing"

	"github.com/opencluster/oclocks/conf"
	"github.com/opencluster/oclocks/internal/brokertest"
	"github.com/opencluster/oclocks/internal/e2e/daemons"
)

// Direct links break while clients take locks: their sockets are killed, and they stand still. The chains go on over NATS, nothing that
// was answered is lost, the links come back and are used again, and then each node has all that the others have.
func TestLinksBreakUnderLoad(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes a while")
	}
	var ways []*brokertest.Proxy // of the direct links to each node
	c := brokertest.StartCluster(t, 3, t.TempDir(), func(s *conf.Settings) {
		s.DirectListen = fmt.Sprint("127.0.0.1:", must(daemons.FreePorts(1))(t)[0])
		p := brokertest.NewProxy(t, s.DirectListen)
		ways = append(ways, p)
		s.HTTP, s.Buckets, s.DirectAdvertise = "127.0.0.1:0", 4, p.Address()
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
			before := p.Carried()
			// Beats alone would take minutes.
			eventually(t, fmt.Sprintf("the links to node %d to carry something", i+2), func() bool { return p.Carried() > before+50_000 })
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
		p.Cut()
	}
	hold("killed")
	eventually(t, "both ends of three links are lost", func() bool { return lost() >= before+6 })
	used()
	for _, some := range []struct {
		ways []*brokertest.Proxy
		left string
	}{{ways[:1], "[1 1 2]"}, {ways, "[0 0 0]"}} {
		for _, p := range some.ways {
			p.Stall(true)
		}
		hold("stands still, " + some.left)
		eventually(t, "the links that stand still are given up", func() bool { return fmt.Sprint(linksOf(t, c)) == some.left })
		carried := ways[0].Carried()
		hold("over NATS, " + some.left)
		l.more(50)
		if ways[0].Carried() != carried {
			t.Error("what stands still carries something")
		}
		// The others may have been given up for a moment, where the machine stood still.
		eventually(t, "links: "+some.left, func() bool { return fmt.Sprint(linksOf(t, c)) == some.left })
		for _, p := range some.ways {
			p.Stall(false)
		}
		used()
	}
	settled(t, nc, 3)
	c.Daemons[0].Crash(t) // whoever takes over has only what came to it
	l.use(c.Daemons[1:])
	l.more(20)
	stillHeld(t, connect(t, url(c.Daemons[1])), held)
}
