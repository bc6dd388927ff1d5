package broker_test

import (
	"bufio"
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

// eventually waits until a condition holds.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	late := time.After(2 * patience)
	for !holds() {
		select {
		case <-again.C:
		case <-late:
			t.Fatalf("it never came: %s", what)
		}
	}
}

// settled waits until the buckets are spread over the nodes, all of which know that, and every copy is in sync.
func settled(t testing.TB, nc *nats.Conn, nodes int) {
	t.Helper()
	eventually(t, "buckets spread over all nodes, and as many copies as there should be", func() bool {
		var c subjects.Cluster
		if err := c.DecodeJSON(ask(t, nc, "locks.cluster", "").msg.Data); err != nil {
			return false // nobody could be asked
		}
		return c.Mode == "normal" && len(c.Nodes) == nodes && !slices.ContainsFunc(c.Nodes, func(n subjects.ClusterNode) bool {
			return n.Change != c.Change || n.Primaries < int(c.Total)/nodes || n.Copies != int(c.Total)
		})
	})
}

// acquire asks until the bucket can be asked: it may just be handed over. NATS delivers at most once, and may lose what passes a route that
// comes about or ends, so who hears nothing asks again; a body that has a request id is granted once all the same.
func acquire(t testing.TB, nc *nats.Conn, body string) (grant answer) {
	t.Helper()
	eventually(t, "a grant of "+body, func() bool {
		msg, err := nc.Request("locks.acquire.anyone", []byte(body), patience/2)
		if err != nil {
			t.Logf("acquire %s: %v", body, err)
			return false
		}
		grant = read(t, msg)
		return grant.fields["granted"] == true
	})
	return grant
}

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
	session := ask(t, conns[0], "locks.session-open.anyone", `{"ttl":"10s"}`).text("session")
	for i := range locks {
		acquire(t, conns[i%3], fmt.Sprintf(`{"name":"all/%02d","session":%q,"request":%d}`, i, session, i+1))
	}
	for i, nc := range conns {
		var names []string
		for after := ""; ; {
			page := ask(t, nc, "locks.list.anyone", fmt.Sprintf(`{"prefix":"all/","limit":7,"after":%q}`, after))
			for _, lock := range page.fields["locks"].([]any) {
				names = append(names, lock.(map[string]any)["name"].(string))
			}
			next, more := page.fields["next"].(string)
			if !more {
				break
			}
			after = next
		}
		if len(names) != locks || !slices.IsSorted(names) || len(slices.Compact(names)) != locks {
			t.Errorf("node %d lists %d names: %v", i+1, len(names), names)
		}
	}
	beat := 4
	eventually(t, "each node keeps its part of the holds", func() bool { // buckets move meanwhile on a busy machine
		beat++
		beats := keepEverybody(t, conns[1], session, beat)
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
	closed := ask(t, conns[2], "locks.session-close.anyone", fmt.Sprintf(`{"session":%q}`, session))
	if closed.number("released") != locks {
		t.Errorf("session-close: %s", closed.msg.Data)
	}
	again := ask(t, conns[1], "locks.session-close.anyone", fmt.Sprintf(`{"session":%q}`, session))
	if again.number("released") != locks {
		t.Errorf("session-close once more: %s", again.msg.Data)
	}
}

// keepEverybody sends a keep-alive to all nodes and gives who answered in a while.
func keepEverybody(t testing.TB, nc *nats.Conn, session string, beat int) map[string]subjects.Kept {
	t.Helper()
	inbox, err := nc.SubscribeSync(nc.NewInbox())
	if err != nil {
		t.Fatal(err)
	}
	if err := nc.PublishRequest("locks.keep.anyone", inbox.Subject, fmt.Appendf(nil, `{"session":%q,"beat":%d}`, session, beat)); err != nil {
		t.Fatal(err)
	}
	answers := make(map[string]subjects.Kept)
	for {
		msg, err := inbox.NextMsg(500 * time.Millisecond)
		if err != nil {
			return answers
		}
		var kept subjects.Kept
		if err := kept.DecodeJSON(msg.Data); err != nil {
			t.Fatalf("%s: %v", msg.Data, err)
		}
		if _, twice := answers[kept.Node]; twice {
			t.Errorf("%s answers twice", kept.Node)
		}
		answers[kept.Node] = kept
	}
}

// A session that holds nothing gets one answer, and one node answers for what it holds.
func testWhoAnswersAKeepAlive(t *testing.T, _ []*broker.Daemon, conns []*nats.Conn) {
	session := ask(t, conns[0], "locks.session-open.anyone", `{"ttl":"10s"}`).text("session")
	if beats := keepEverybody(t, conns[0], session, 1); len(beats) != 1 {
		t.Errorf("nothing is held, and %d answer", len(beats))
	}
	node := acquire(t, conns[0], fmt.Sprintf(`{"name":"one","session":%q,"request":1}`, session)).text("node")
	for range 5 { // the group chooses another node each time
		beats := keepEverybody(t, conns[1], session, 2)
		if kept := beats[node]; kept.Count != 1 || len(kept.Buckets) != 1 {
			t.Errorf("%s answers %+v", node, kept)
		}
		if len(beats) > 2 {
			t.Errorf("%d nodes answer", len(beats))
		}
	}
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
		list := ask(t, nc, "locks.servers.anyone", "").fields["servers"].([]any)
		if len(list) != 3 {
			t.Errorf("servers at node %d: %v", i+1, list)
		}
		for _, server := range list {
			s := server.(map[string]any)
			j := slices.IndexFunc(daemons, func(d *broker.Daemon) bool { return d.Node() == s["node"] })
			if j < 0 || s["status"] != "up" || s["name"] != fmt.Sprint("n", j+1) || s["urls"].([]any)[0] != url(daemons[j]) {
				t.Errorf("servers at node %d: %v", i+1, s)
			}
		}
		for _, d := range daemons {
			if pong := ask(t, nc, "locks.ping.anyone", fmt.Sprintf(`{"node":%q}`, d.Node())); pong.text("node") != d.Node() {
				t.Errorf("ping %s at node %d: %s", d.Node(), i+1, pong.msg.Data)
			}
		}
		ask(t, nc, "locks.ping.anyone", `{"node":"nobody"}`).refused(400, "bad_request")
	}
}

// cluster shows every node and, on request, buckets with all their copies.
func testClusterStatus(t *testing.T, daemons []*broker.Daemon, conns []*nats.Conn) {
	for i, nc := range conns {
		var c subjects.Cluster
		eventually(t, "all copies have the same history", func() bool {
			a := ask(t, nc, "locks.cluster.anyone", `{"buckets":"0-7"}`)
			if err := c.DecodeJSON(a.msg.Data); err != nil {
				t.Fatalf("%s: %v", a.msg.Data, err)
			}
			return !slices.ContainsFunc(c.Buckets, func(b subjects.ClusterBucket) bool {
				return slices.ContainsFunc(b.Copies, func(one subjects.ClusterCopy) bool { return one.History != "equal" })
			})
		})
		primaries, copies := 0, 0
		for j, n := range c.Nodes {
			primaries, copies = primaries+n.Primaries, copies+n.Copies
			if n.Node != daemons[j].Node() || !n.Answered || n.Status != "up" || n.Lease == "" || n.Leader != (n.Number == c.Leader) {
				t.Errorf("node %d tells %+v", i+1, n)
			}
		}
		if len(c.Nodes) != 3 || primaries != int(c.Total) || copies != 3*primaries || c.Leader == 0 || c.Mode != "normal" || c.Quorum.Have != 3 {
			t.Errorf("node %d tells %+v", i+1, c)
		}
		for number, b := range c.Buckets {
			if int(b.Bucket) != number || len(b.Chain) != 3 || len(b.Copies) != 3 || !b.Acting || b.Problem != "" || b.Confirmed == 0 {
				t.Errorf("node %d tells %+v", i+1, b)
			}
		}
		if len(c.Buckets) != 8 {
			t.Errorf("node %d tells %d buckets", i+1, len(c.Buckets))
		}
		ask(t, nc, "locks.cluster.anyone", `{"buckets":"30-99"}`).refused(400, "bad_request")
	}
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
	var sums map[string]float64
	eventually(t, "a change that has arrived at the end of its chain", func() bool {
		sums = make(map[string]float64)
		for _, d := range daemons {
			for name, value := range scrape(t, d) {
				sums[name] += value
			}
		}
		return sums["oclocks_sync_seconds_count"] > 0
	})
	buckets := ask(t, conns[0], "locks.info", "").number("buckets")
	for name, want := range map[string]float64{
		"oclocks_leader": 1, "oclocks_live_nodes": 9, "oclocks_primaries": float64(buckets), `oclocks_copies{role="primary"}`: float64(buckets),
		`oclocks_copies{role="secondary"}`: float64(2 * buckets), "oclocks_degraded_buckets": 0, "oclocks_recovery_buckets": 0,
	} {
		if got, there := sums[name]; !there || got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	for _, name := range []string{"oclocks_node_lease_seconds", "oclocks_sync_seconds_sum", "oclocks_change"} {
		if sums[name] <= 0 {
			t.Errorf("%s: %v", name, sums[name])
		}
	}
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
	serverID, cid := holder.ConnectedServerId(), must(holder.GetClientID())
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
	toldOnce(t, servers, "server.down", gone.Node(), "stopping")
	msg, err := clusters.NextMsg(patience)
	if err != nil {
		t.Fatal(err)
	}
	if mode := read(t, msg); mode.text("type") != "cluster.mode" || mode.text("mode") != "degraded" {
		t.Errorf("told %s", msg.Data)
	}
	if msg, err := clusters.NextMsg(700 * time.Millisecond); err == nil {
		t.Errorf("told %s too", msg.Data)
	}
	for _, server := range ask(t, conns[0], "locks.servers.anyone", "").fields["servers"].([]any) {
		if s := server.(map[string]any); (s["node"] == gone.Node()) != (s["status"] == "stopping") {
			t.Errorf("%v", s)
		}
	}
	ask(t, conns[0], "locks.ping.anyone", fmt.Sprintf(`{"node":%q}`, gone.Node())).refused(503, "unavailable")
	c.Restart(2)
	toldOnce(t, servers, "server.up", gone.Node(), "up")
}

// toldOnce waits for one event of a server, and a while for another.
func toldOnce(t *testing.T, events *nats.Subscription, kind, node, status string) {
	t.Helper()
	wait := patience
	for first := true; ; first = false {
		msg, err := events.NextMsg(wait)
		if err != nil && first {
			t.Fatalf("%s is not told: %v", kind, err)
		} else if err != nil {
			return
		}
		if e := read(t, msg); !first || e.text("type") != kind || e.text("node") != node || e.text("status") != status {
			t.Errorf("told %s", msg.Data)
		}
		wait = 2500 * time.Millisecond
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
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
