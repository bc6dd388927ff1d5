package e2e

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/opencluster/oclocks/internal/e2e/daemons"
	"github.com/opencluster/oclocks/subjects"
)

// cluster is some daemons as processes of their own.
type cluster struct {
	t     testing.TB
	root  testing.TB // the test whose end is the end of the daemons
	nodes []*node
	args  []string

	network *daemons.Network // of those whose nodes have namespaces of their own
}

// use makes t, a part of the cluster's test, the one that fails if something goes wrong from now on.
func (c *cluster) use(t testing.TB) {
	c.t = t
	for _, n := range c.nodes {
		if n.process != nil {
			n.process.t = t
		}
	}
}

// node is one of them: its directory and its addresses stay over its deaths.
type node struct {
	*daemons.Node
	*process
	url string
}

// startCluster starts n daemons on loopback. The first one founds the cluster, the others join it.
func startCluster(t testing.TB, n int, args ...string) *cluster {
	t.Helper()
	c := newCluster(t, n, args...)
	for i := range c.nodes {
		c.start(i)
	}
	return c
}

// newCluster makes the directories of n daemons that belong together.
func newCluster(t testing.TB, n int, args ...string) *cluster {
	t.Helper()
	c := &cluster{t: t, root: t, args: args}
	c.nodes = newNodes(t, 0, n)
	c.enroll()
	return c
}

// newNodes gives n nodes addresses and places for their directories, and names after the number of those that there are.
func newNodes(t testing.TB, there, n int) (nodes []*node) {
	t.Helper()
	list, err := daemons.OnLoopback(t.TempDir(), there, n)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range list {
		nodes = append(nodes, &node{Node: n})
	}
	return nodes
}

// members are the nodes without their processes.
func (c *cluster) members() (list []*daemons.Node) {
	for _, n := range c.nodes {
		list = append(list, n.Node)
	}
	return list
}

// enroll makes the directories of nodes that belong together.
func (c *cluster) enroll() {
	c.t.Helper()
	if err := daemons.Enroll(c.members()); err != nil {
		c.t.Fatal(err)
	}
}

// start starts the i-th daemon, for the first time or again, and returns when it serves.
func (c *cluster) start(i int) {
	c.t.Helper()
	c.launch(i)
	c.nodes[i].serving()
}

// launch starts the i-th daemon.
func (c *cluster) launch(i int) {
	c.t.Helper()
	n := c.nodes[i]
	cmd := n.Command(command(c.t, "oclocks-daemon"), c.members(), c.args)
	n.process = start(c.root, cmd, (*exec.Cmd).StderrPipe)
	n.process.t = c.t
}

// serving waits until the daemon serves.
func (n *node) serving() { n.url = n.line("msg", "serving")["url"].(string) }

// kill is kill -9 of the i-th daemon.
func (c *cluster) kill(i int) { c.nodes[i].kill() }

// stop is an orderly stop of the i-th daemon.
func (c *cluster) stop(i int) {
	c.t.Helper()
	c.nodes[i].signal(syscall.SIGTERM)
	c.nodes[i].wait()
}

// plain is a NATS connection of the test's own to the i-th node, and only to it.
func (c *cluster) plain(i int) *nats.Conn {
	c.t.Helper()
	return c.dial(i)
}

// dial connects to the i-th node, and again where it was not in time: a server gives a client two seconds to say who it is.
func (c *cluster) dial(i int, opts ...nats.Option) *nats.Conn {
	c.t.Helper()
	opts = append(opts, nats.DontRandomize(), nats.IgnoreDiscoveredServers(), nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond))
	for late := time.Now().Add(patience); ; <-time.After(20 * time.Millisecond) {
		nc, err := nats.Connect(c.nodes[i].url, opts...)
		if err == nil {
			c.t.Cleanup(nc.Close)
			return nc
		}
		if time.Now().After(late) {
			c.t.Fatalf("connect to node %d: %v", i+1, err)
		}
	}
}

// urls are the addresses of all nodes, beginning with the i-th.
func (c *cluster) urls(i int) string {
	var all []string
	for k := range c.nodes {
		all = append(all, "nats://"+c.nodes[(i+k)%len(c.nodes)].Listen)
	}
	return strings.Join(all, ",")
}

// info asks, from the i-th node, what clients are told.
func (c *cluster) info(i int) *subjects.Info {
	c.t.Helper()
	nc := c.plain(i)
	defer nc.Close()
	for deadline := time.Now().Add(patience); ; {
		info, err := c.tryInfo(nc)
		if err == nil {
			return info
		}
		if time.Now().After(deadline) {
			c.t.Fatalf("info of node %d: %v", i+1, err)
		}
	}
}

// askTime is how long one answer is waited for. Any node takes such a request, also one that stands still.
const askTime = 500 * time.Millisecond

func (c *cluster) tryInfo(nc *nats.Conn) (*subjects.Info, error) {
	msg, err := nc.Request("locks.info.anyone", nil, askTime)
	if err != nil {
		return nil, err
	}
	var info subjects.Info
	return &info, info.DecodeJSON(msg.Data)
}

// look asks, from the i-th node, what the whole cluster looks like.
func (c *cluster) look(i int) (*subjects.Cluster, error) {
	nc := c.plain(i)
	defer nc.Close()
	msg, err := nc.Request("locks.cluster.anyone", nil, 2*askTime)
	if err != nil {
		return nil, err
	}
	var all subjects.Cluster
	return &all, json.Unmarshal(msg.Data, &all)
}

// lookAt asks about one bucket.
func (c *cluster) lookAt(nc *nats.Conn, bucket uint32) (*subjects.Cluster, error) {
	msg, err := nc.Request("locks.cluster.anyone", fmt.Appendf(nil, `{"buckets":"%d"}`, bucket), 2*askTime)
	if err != nil {
		return nil, err
	}
	var all subjects.Cluster
	return &all, json.Unmarshal(msg.Data, &all)
}

// byNumber is the index of the node with a number.
func (c *cluster) byNumber(all *subjects.Cluster, number uint64) int {
	for _, n := range all.Nodes {
		if n.Number == number {
			return slices.IndexFunc(c.nodes, func(m *node) bool { return m.ID == n.Node })
		}
	}
	return -1
}

// only is the address of one node, with no way to another.
func (c *cluster) only(i int) string { return "nats://" + c.nodes[i].Listen }

// await waits until the cluster, as the i-th node sees it, is as it should be.
func (c *cluster) await(i int, what string, ok func(*subjects.Cluster) bool) *subjects.Cluster {
	c.t.Helper()
	deadline := time.Now().Add(3 * patience)
	for {
		all, err := c.look(i)
		if err == nil && ok(all) {
			return all
		}
		if time.Now().After(deadline) {
			text, _ := json.MarshalIndent(all, "", " ") //nolint:errchkjson // only shown
			c.t.Fatalf("%s: not after %s: %v\n%s", what, 3*patience, err, text)
		}
		<-time.After(20 * time.Millisecond)
	}
}

// settled waits until all nodes that should be there are, enough of them vote that the loss of one is not the loss of the
// majority, and every bucket has a copy on each of them that lags behind nothing that matters.
func (c *cluster) settled(i, nodes int) *subjects.Cluster {
	c.t.Helper()
	return c.await(i, "all nodes have all copies", func(all *subjects.Cluster) bool {
		up, votes := 0, 0
		for _, n := range all.Nodes {
			if n.Status == "up" && n.Answered {
				up++
			}
			if n.Voter {
				votes++
			}
		}
		return up == nodes && votes >= min(nodes, 3) && all.Leader != 0 && len(all.Buckets) == 0
	})
}

// spare waits until the group decides without any one of those that vote: who was lost counts until another one votes in his place.
func (c *cluster) spare(i int) {
	c.t.Helper()
	c.await(i, "the group can lose another voter", func(all *subjects.Cluster) bool {
		up, votes := 0, 0
		for _, n := range all.Nodes {
			if n.Voter {
				votes++
				if n.Status == "up" && n.Answered {
					up++
				}
			}
		}
		return all.Leader != 0 && up-1 > votes/2
	})
}

// leader is the node that leads the control plane, as node i says.
func (c *cluster) leader(i int) int {
	c.t.Helper()
	all := c.await(i, "somebody leads", func(all *subjects.Cluster) bool { return all.Leader != 0 })
	for _, n := range all.Nodes {
		if n.Number == all.Leader {
			return slices.IndexFunc(c.nodes, func(m *node) bool { return m.ID == n.Node })
		}
	}
	c.t.Fatalf("the leader is unknown: %+v", all)
	return -1
}

// named is a name whose bucket the i-th node is primary of, beginning with a prefix.
func (c *cluster) named(i int, prefix string) string {
	c.t.Helper()
	info := c.info(i)
	for k := range 10_000 {
		name := fmt.Sprint(prefix, k)
		if info.Map.Primary[subjects.BucketOf(name, info.Buckets)] == c.nodes[i].ID {
			return name
		}
	}
	c.t.Fatalf("node %d is primary of nothing: %v", i+1, info.Map.Primary)
	return ""
}

// balanced waits until every node is primary of something, and of one bucket more than another one at most.
func (c *cluster) balanced() { c.spread(len(c.nodes), 1) }

// spread waits until so many nodes are primary of something, and none of them of more buckets than another one and by.
func (c *cluster) spread(nodes, by int) {
	c.t.Helper()
	nc := c.plain(0)
	deadline := time.Now().Add(2 * patience)
	for {
		info, err := c.tryInfo(nc)
		if err == nil {
			have := make(map[string]int)
			for _, id := range info.Map.Primary {
				have[id]++
			}
			if delete(have, ""); len(have) >= nodes && span(have) <= by {
				return
			}
		}
		if time.Now().After(deadline) {
			text, _ := json.Marshal(info) //nolint:errchkjson // only shown
			c.t.Fatalf("the buckets are not spread: %v %s", err, text)
		}
		<-time.After(20 * time.Millisecond)
	}
}

func span(have map[string]int) int {
	lo, hi := 1<<30, 0
	for _, n := range have {
		lo, hi = min(lo, n), max(hi, n)
	}
	return hi - lo
}
