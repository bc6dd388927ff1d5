package broker_test

import (
	"fmt"
	"net"
	"slices"
	"testing"

	"github.com/opencluster/oclocks/conf"
	"github.com/opencluster/oclocks/internal/brokertest"
	"github.com/opencluster/oclocks/subjects"
)

// linksOf is how many direct links each node has; -1: it wants none.
func linksOf(t *testing.T, c *brokertest.Cluster) []int {
	t.Helper()
	var links []int
	for _, d := range c.Daemons {
		n, there := scrape(t, d)["oclocks_direct_links"]
		if !there {
			n = -1
		}
		links = append(links, int(n))
	}
	return links
}

// numbered asks for a lock, with a request id.
func numbered(name string, i int) string {
	return fmt.Sprintf(`{"name":"%s/%d","request":"%s-%d"}`, name, i, name, i)
}

// Every node has a direct link with every other, and again after one was restarted; locks work before, meanwhile and after.
func TestDirectLinksComeBack(t *testing.T) {
	c, conns := startNodes(t, 3)
	linked := func() bool { return fmt.Sprint(linksOf(t, c)) == "[2 2 2]" }
	eventually(t, "links between all nodes", linked)
	var all subjects.Cluster
	if err := all.DecodeJSON(ask(t, conns[0], "locks.cluster.anyone", "").msg.Data); err != nil {
		t.Fatal(err)
	}
	for i, want := range [][]uint64{{2, 3}, {1, 3}, {1, 2}} {
		if got := all.Nodes[i].Direct; !slices.Equal(got, want) {
			t.Errorf("node %d tells of links with %v", i+1, got)
		}
	}
	for i := range 20 {
		acquire(t, conns[i%3], numbered("before", i))
	}
	c.Restart(1)
	for i := range 20 {
		acquire(t, conns[2*(i%2)], numbered("meanwhile", i))
	}
	eventually(t, "links between all nodes again", linked)
	settled(t, conns[0], 3)
	for i := range 20 {
		acquire(t, conns[2*(i%2)], numbered("after", i))
	}
}

// A node that has none, and one behind a firewall, are as good as any: everything goes over the route.
func TestWithoutDirectLinks(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	started := 0
	c := brokertest.StartCluster(t, 3, t.TempDir(), func(s *conf.Settings) {
		s.HTTP = "127.0.0.1:0"
		switch started++; started {
		case 1:
		case 2:
			s.DirectAdvertise = closed.Addr().String() // where nobody is reached
		case 3:
			s.DirectListen = conf.Off
		}
	})
	nc := connect(t, url(c.Daemons[0]))
	settled(t, nc, 3)
	for i := range 40 {
		acquire(t, nc, numbered("routed", i))
	}
	if got := fmt.Sprint(linksOf(t, c)); got != "[0 0 -1]" {
		t.Errorf("links: %s", got)
	}
	var all subjects.Cluster
	if err := all.DecodeJSON(ask(t, nc, "locks.cluster.anyone", "").msg.Data); err != nil {
		t.Fatal(err)
	}
	if n := all.Nodes; n[1].Direct == nil || len(n[1].Direct) != 0 || n[2].Direct != nil {
		t.Errorf("told: %v, %v", n[1].Direct, n[2].Direct)
	}
}
