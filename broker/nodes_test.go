package broker_test

import (
	"bufio"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/opencluster/oclocks/broker"
	"github.com/opencluster/oclocks/conf"
	"github.com/opencluster/oclocks/internal/brokertest"
	"github.com/opencluster/oclocks/subjects"
)

func startNodes(t testing.TB, n int) (*brokertest.Cluster, []*nats.Conn) {
	t.Helper()
	c := brokertest.StartCluster(t, n, t.TempDir(), func(s *conf.Settings) { s.HTTP = "127.0.0.1:0" })
	var conns []*nats.Conn
	for _, d := range c.Daemons {
		conns = append(conns, connect(t, url(d)))
	}
	settled(t, conns[0], n)
	return c, conns
}

// Three nodes, asked by clients.
func TestNodes(t *testing.T) {
	c, conns := startNodes(t, 3)
	for name, test := range map[string]func(*testing.T, []*broker.Daemon, []*nats.Conn){
		"all buckets": testAllBuckets, "keep-alives": testWhoAnswersAKeepAlive, "servers": testServersAndPings,
		"cluster": testClusterStatus, "services": testServices, "metrics": testMetricsOfNodes,
	} {
		t.Run(name, func(t *testing.T) { test(t, c.Daemons, conns) })
	}
}

// What concerns all buckets is answered by every node for all of them.
func testAllBuckets(t *testing.T, daemons []*broker.Daemon, conns []*nats.Conn) {
	const locks = 40
	session := ask(t, conns[0], "locks.session-open.anyone", `{"ttl":"1m"}`).text("session")
	for i := range locks {
		acquire(t, conns[i%3], fmt.Sprintf(`{"name":"all/%02d","session":%q,"request":%d}`, i, session, i+1))
	}
	for i, nc := range conns {
		steady(t, func() error {
			names, err := listed(t, nc)
			if err != nil || len(names) != locks || !slices.IsSorted(names) || len(slices.Compact(names)) != locks {
				return fmt.Errorf("node %d lists %d names: %v, %w", i+1, len(names), names, err)
			}
			return nil
		})
	}
	beat := 4
	eventually(t, "each node keeps its part of the holds", func() bool { // buckets move meanwhile on a busy machine
		beat++
		beats, err := keepEverybody(t, conns[1], session, beat)
		if err != nil {
			return false
		}
		count, parts := 0, 0
		var hash uint64
		for node, kept := range beats {
			if !slices.ContainsFunc(daemons, func(d *broker.Daemon) bool { return d.Node() == node }) {
				t.Errorf("%s answers %+v", node, kept)
			}
			count += kept.Count
			hash ^= kept.Hash
			if len(kept.Buckets) > 0 {
				parts++
			}
		}
		return count == locks && parts == 3 && len(beats) == 3 && hash != 0
	})
	for i, nc := range []*nats.Conn{conns[2], conns[1]} {
		steady(t, func() error {
			closed := ask(t, nc, "locks.session-close.anyone", fmt.Sprintf(`{"session":%q}`, session))
			if closed.fields["released"] != float64(locks) {
				return fmt.Errorf("session-close %d: %s", i+1, closed.msg.Data)
			}
			return nil
		})
	}
}

// listed follows the pages of a list.
func listed(t testing.TB, nc *nats.Conn) (names []string, err error) {
	t.Helper()
	for after := ""; ; {
		page := ask(t, nc, "locks.list.anyone", fmt.Sprintf(`{"prefix":"all/","limit":7,"after":%q}`, after))
		locks, listed := page.fields["locks"].([]any)
		if !listed {
			return names, fmt.Errorf("no list: %s", page.msg.Data)
		}
		for _, lock := range locks {
			names = append(names, lock.(map[string]any)["name"].(string))
		}
		next, more := page.fields["next"].(string)
		if !more {
			return names, nil
		}
		after = next
	}
}

// keepEverybody sends a keep-alive to all nodes and gives who answered in a while. A node may answer twice if it becomes a primary between
// its own copy and that of the group.
func keepEverybody(t testing.TB, nc *nats.Conn, session string, beat int) (map[string]subjects.Kept, error) {
	t.Helper()
	inbox, err := nc.SubscribeSync(nc.NewInbox())
	if err != nil {
		t.Fatal(err)
	}
	if err := nc.PublishRequest("locks.keep.anyone", inbox.Subject, fmt.Appendf(nil, `{"session":%q,"beat":%d}`, session, beat)); err != nil {
		t.Fatal(err)
	}
	answers := make(map[string]subjects.Kept)
	for wait := patience; ; wait = 500 * time.Millisecond {
		msg, err := inbox.NextMsg(wait)
		if err != nil {
			return answers, nil
		}
		var kept subjects.Kept
		if err := kept.DecodeJSON(msg.Data); err != nil {
			t.Fatalf("%s: %v", msg.Data, err)
		}
		if _, twice := answers[kept.Node]; twice {
			return nil, fmt.Errorf("%s answers twice", kept.Node)
		}
		answers[kept.Node] = kept
	}
}

// A session that holds nothing gets one answer, and one node answers for what it holds.
func testWhoAnswersAKeepAlive(t *testing.T, _ []*broker.Daemon, conns []*nats.Conn) {
	session := ask(t, conns[0], "locks.session-open.anyone", `{"ttl":"1m"}`).text("session")
	steady(t, func() error {
		beats, err := keepEverybody(t, conns[0], session, 1)
		if err == nil && len(beats) != 1 {
			err = fmt.Errorf("nothing is held, and %d answer", len(beats))
		}
		return err
	})
	acquire(t, conns[0], fmt.Sprintf(`{"name":"one","session":%q,"request":1}`, session))
	var node string
	steady(t, func() error {
		node = ""
		for range 5 { // the group chooses another node each time
			beats, err := keepEverybody(t, conns[1], session, 2)
			if err != nil {
				return err
			}
			before := node
			for id, kept := range beats { // order: one of them has it
				if kept.Count == 1 && len(kept.Buckets) == 1 {
					node = id
				}
			}
			if node == "" || before != "" && node != before || len(beats) > 2 {
				return fmt.Errorf("%d nodes answer, %q has the lock, it was %q", len(beats), node, before)
			}
		}
		return nil
	})
	ask(t, conns[0], "locks.keep."+node+".anyone", fmt.Sprintf(`{"session":%q,"beat":3}`, session)).number("count")
	inbox, err := conns[0].SubscribeSync(conns[0].NewInbox())
	if err != nil {
		t.Fatal(err)
	}
	if err := conns[0].PublishRequest("locks.keep.anyone", inbox.Subject, []byte(`{"session":"nonsense","beat":1}`)); err != nil {
		t.Fatal(err)
	}
	msg, err := inbox.NextMsg(patience)
	if err != nil {
		t.Fatal(err)
	}
	read(t, msg).refused(410, "session")
	if msg, err := inbox.NextMsg(300 * time.Millisecond); err == nil {
		t.Errorf("another node refuses it too: %s", msg.Data)
	}
}

// servers lists every node, the nearest first; a ping reaches the node that is meant.
func testServersAndPings(t *testing.T, daemons []*broker.Daemon, conns []*nats.Conn) {
	for i, nc := range conns {
		steady(t, func() (err error) {
			list := ask(t, nc, "locks.servers.anyone", "").fields["servers"].([]any)
			if len(list) != 3 {
				err = fmt.Errorf("servers at node %d: %v", i+1, list)
			}
			for _, server := range list {
				s := server.(map[string]any)
				j := slices.IndexFunc(daemons, func(d *broker.Daemon) bool { return d.Node() == s["node"] })
				if j < 0 || s["status"] != "up" || s["name"] != fmt.Sprint("n", j+1) || s["urls"].([]any)[0] != url(daemons[j]) {
					err = errors.Join(err, fmt.Errorf("servers at node %d: %v", i+1, s))
				}
			}
			for _, d := range daemons {
				if pong := ask(t, nc, "locks.ping.anyone", fmt.Sprintf(`{"node":%q}`, d.Node())); pong.fields["node"] != d.Node() {
					err = errors.Join(err, fmt.Errorf("ping %s at node %d: %s", d.Node(), i+1, pong.msg.Data))
				}
			}
			return err
		})
		ask(t, nc, "locks.ping.anyone", `{"node":"nobody"}`).refused(400, "bad_request")
	}
}

// cluster shows every node and, on request, buckets with all their copies.
func testClusterStatus(t *testing.T, daemons []*broker.Daemon, conns []*nats.Conn) {
	for i, nc := range conns {
		steady(t, func() error {
			var c subjects.Cluster
			a := ask(t, nc, "locks.cluster.anyone", `{"buckets":"0-7"}`)
			if err := c.DecodeJSON(a.msg.Data); err != nil {
				return fmt.Errorf("%s: %w", a.msg.Data, err)
			}
			if err := healthy(&c, daemons); err != nil {
				return fmt.Errorf("node %d tells %w", i+1, err)
			}
			return nil
		})
		ask(t, nc, "locks.cluster.anyone", `{"buckets":"30-99"}`).refused(400, "bad_request")
	}
}

// healthy says what is wrong with the picture of a cluster of three with its first eight buckets.
func healthy(c *subjects.Cluster, daemons []*broker.Daemon) error {
	primaries, copies := 0, 0
	for j, n := range c.Nodes {
		primaries, copies = primaries+n.Primaries, copies+n.Copies
		if n.Node != daemons[j].Node() || !n.Answered || n.Status != "up" || n.Lease == "" || n.Leader != (n.Number == c.Leader) {
			return fmt.Errorf("%+v", n)
		}
	}
	if len(c.Nodes) != 3 || primaries != int(c.Total) || copies != 3*primaries || c.Leader == 0 || c.Mode != "normal" || c.Quorum.Have != 3 {
		return fmt.Errorf("%+v", *c)
	}
	for number, b := range c.Buckets {
		if int(b.Bucket) != number || len(b.Chain) != 3 || len(b.Copies) != 3 || !b.Acting || b.Problem != "" || b.Confirmed == 0 {
			return fmt.Errorf("%+v", b)
		}
		if slices.ContainsFunc(b.Copies, func(one subjects.ClusterCopy) bool { return one.History != "equal" }) {
			return fmt.Errorf("copies that have come apart: %+v", b)
		}
	}
	if len(c.Buckets) != 8 {
		return fmt.Errorf("%d buckets", len(c.Buckets))
	}
	return nil
}

// Each node is an instance of the micro service, and answers for itself.
func testServices(t *testing.T, daemons []*broker.Daemon, conns []*nats.Conn) {
	inbox, err := conns[0].SubscribeSync(conns[0].NewInbox())
	if err != nil {
		t.Fatal(err)
	}
	for _, subject := range []string{"$SRV.PING", "$SRV.PING.oclocks", "$SRV.INFO.oclocks", "$SRV.STATS"} {
		if err := conns[0].PublishRequest(subject, inbox.Subject, nil); err != nil {
			t.Fatal(err)
		}
		ids := make(map[string]int)
		for range daemons {
			msg, err := inbox.NextMsg(patience)
			if err != nil {
				t.Fatalf("%s: %v", subject, err)
			}
			ids[read(t, msg).text("id")]++
		}
		for _, d := range daemons {
			if ids[d.Node()] != 1 {
				t.Errorf("%s is answered by %v", subject, ids)
			}
		}
	}
	for _, d := range daemons {
		if id := ask(t, conns[0], "$SRV.PING.oclocks."+d.Node(), "").text("id"); id != d.Node() {
			t.Errorf("%s answers for %s", id, d.Node())
		}
	}
	if msg, err := inbox.NextMsg(100 * time.Millisecond); err == nil {
		t.Errorf("one more answer: %s", msg.Data)
	}
}

// The metrics of all nodes together are those of the cluster.
func testMetricsOfNodes(t *testing.T, daemons []*broker.Daemon, conns []*nats.Conn) {
	acquire(t, conns[0], `{"name":"measured"}`)
	buckets := ask(t, conns[0], "locks.info", "").number("buckets")
	steady(t, func() (err error) {
		sums := make(map[string]float64)
		for _, d := range daemons {
			for name, value := range scrape(t, d) {
				sums[name] += value
			}
		}
		for name, want := range map[string]float64{
			"oclocks_leader": 1, "oclocks_live_nodes": 9, "oclocks_primaries": float64(buckets), `oclocks_copies{role="primary"}`: float64(buckets),
			`oclocks_copies{role="secondary"}`: float64(2 * buckets), "oclocks_degraded_buckets": 0, "oclocks_recovery_buckets": 0,
		} {
			if got, there := sums[name]; !there || got != want {
				err = errors.Join(err, fmt.Errorf("%s: %v, want %v", name, got, want))
			}
		}
		// A change arrives at the end of its chain at some time.
		for _, name := range []string{"oclocks_node_lease_seconds", "oclocks_sync_seconds_sum", "oclocks_sync_seconds_count", "oclocks_change"} {
			if sums[name] <= 0 {
				err = errors.Join(err, fmt.Errorf("%s: %v", name, sums[name]))
			}
		}
		return err
	})
}

// scrape reads a daemon's metrics.
func scrape(t testing.TB, d *broker.Daemon) map[string]float64 {
	t.Helper()
	resp, err := http.Get("http://" + d.HTTPAddr() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	values := make(map[string]float64)
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		if name, text, ok := strings.Cut(lines.Text(), " "); ok && name != "#" {
			if value, err := strconv.ParseFloat(text, 64); err == nil {
				values[name] = value
			}
		}
	}
	return values
}

// A node that stops is told once, and so is what that means for the cluster. What it was primary of is served by the others,
// to whom it is no secret which connections were closed while they were not asked.
func TestANodeGoes(t *testing.T) {
	c, conns := startNodes(t, 3)
	daemons, gone := c.Daemons, c.Daemons[2]
	watch := func(subject string) *nats.Subscription {
		sub, err := conns[0].SubscribeSync(subject)
		if err != nil {
			t.Fatal(err)
		}
		return sub
	}
	servers, clusters := watch("locks.event.server.>"), watch("locks.event.cluster.>")
	holder := connect(t, url(daemons[0]))
	serverID, cid := holder.ConnectedServerId(), must(holder.GetClientID())(t)
	session := ask(t, holder, "locks.session-open.anyone", fmt.Sprintf(`{"ttl":"50s","server":%q,"cid":%d}`, serverID, cid)).text("session")
	name := nameAt(t, conns[0], gone.Node())
	acquire(t, holder, fmt.Sprintf(`{"name":%q,"session":%q,"request":1,"grace":"4s"}`, name, session))
	wait := begin(t, conns[0], "locks.acquire.anyone", fmt.Sprintf(`{"name":%q,"wait":"1m","request":"w"}`, name))
	queued(t, conns[0], name, 1)
	holder.Close()
	brokertest.Stop(t, gone)

	eventually(t, "a list without the third node", func() bool {
		return ask(t, conns[1], "locks.list.anyone", "").fields["locks"] != nil
	})
	wait.answer().granted() // long before the session's lease is over
	toldOnce(t, servers, 2500*time.Millisecond, map[string]string{"type": "server.down", "node": gone.Node(), "status": "stopping"})
	toldOnce(t, clusters, 700*time.Millisecond, map[string]string{"type": "cluster.mode", "mode": "degraded"})
	steady(t, func() error {
		for _, server := range ask(t, conns[0], "locks.servers.anyone", "").fields["servers"].([]any) {
			if s := server.(map[string]any); (s["node"] == gone.Node()) != (s["status"] == "stopping") {
				return fmt.Errorf("%v", s)
			}
		}
		return nil
	})
	ask(t, conns[0], "locks.ping.anyone", fmt.Sprintf(`{"node":%q}`, gone.Node())).refused(503, "unavailable")
	c.Restart(2)
	toldOnce(t, servers, 2500*time.Millisecond, map[string]string{"type": "server.up", "node": gone.Node(), "status": "up"})
}

// nameAt is a name whose bucket has that primary.
func nameAt(t testing.TB, nc *nats.Conn, node string) string {
	t.Helper()
	info := ask(t, nc, "locks.info", "")
	primary := info.fields["map"].(map[string]any)["primary"].([]any)
	for i := range 10000 {
		name := fmt.Sprint("name", i)
		if primary[subjects.BucketOf(name, uint32(len(primary)))] == node {
			return name
		}
	}
	t.Fatalf("%s is primary of nothing: %v", node, primary)
	return ""
}

// Clients learn nothing of the servers of a cluster that hides them.
func TestHiddenServers(t *testing.T) {
	d := brokertest.Start(t, func(s *conf.Settings) { s.HideServers = true })
	nc := connect(t, url(d))
	ask(t, nc, "locks.servers", "").refused(403, "denied")
	ask(t, nc, "locks.cluster", "").refused(403, "denied")
	info := ask(t, nc, "locks.info", "")
	if primary, told := info.fields["map"].(map[string]any)["primary"]; told || info.text("mode") != "normal" || info.number("buckets") == 0 {
		t.Errorf("info tells %v: %s", primary, info.msg.Data)
	}
	down, err := nc.SubscribeSync("locks.event.server.down.*")
	if err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	brokertest.Stop(t, d)
	msg, err := down.NextMsg(patience)
	if err != nil {
		t.Fatal(err)
	}
	if event := read(t, msg); event.fields["urls"] != nil || event.text("status") != "stopping" {
		t.Errorf("told %s", msg.Data)
	}
}
