package broker_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/opencluster/oclocks/broker"
	"github.com/opencluster/oclocks/internal/brokertest"
	"github.com/opencluster/oclocks/subjects"
)

// eventually waits until a condition holds.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !holds(); {
		if time.Now().After(deadline) {
			t.Fatalf("it never came: %s", what)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// settled waits until every node of a cluster is primary of something and all copies are in sync.
func settled(t testing.TB, conns []*nats.Conn, daemons []*broker.Daemon) {
	t.Helper()
	eventually(t, "buckets on all nodes, and as many copies as there should be", func() bool {
		for _, nc := range conns {
			info := ask(t, nc, "locks.info", "")
			if info.text("mode") != "normal" {
				return false
			}
			primary := info.fields["map"].(map[string]any)["primary"].([]any)
			for _, d := range daemons {
				if !slices.Contains(primary, any(d.Node())) {
					return false
				}
			}
		}
		return true
	})
}

// acquire asks until the bucket can be asked: it may just be handed over.
func acquire(t testing.TB, nc *nats.Conn, body string) (grant answer) {
	t.Helper()
	eventually(t, "a grant of "+body, func() bool {
		grant = ask(t, nc, "locks.acquire.anyone", body)
		return grant.fields["granted"] == true
	})
	return grant
}

func startNodes(t testing.TB, n int) ([]*broker.Daemon, []*nats.Conn) {
	t.Helper()
	c := brokertest.StartCluster(t, n, t.TempDir())
	var conns []*nats.Conn
	for _, d := range c.Daemons {
		conns = append(conns, connect(t, url(d)))
	}
	settled(t, conns, c.Daemons)
	return c.Daemons, conns
}

// Three nodes, asked by clients.
func TestNodes(t *testing.T) {
	daemons, conns := startNodes(t, 3)
	for name, test := range map[string]func(*testing.T, []*broker.Daemon, []*nats.Conn){
		"all buckets": testAllBuckets, "keep-alives": testWhoAnswersAKeepAlive, "servers": testServersAndPings,
		"cluster": testClusterStatus,
	} {
		t.Run(name, func(t *testing.T) { test(t, daemons, conns) })
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
	beats := keepEverybody(t, conns[1], session, 5)
	count := 0
	var hash uint64
	for node, beat := range beats {
		count += beat.Count
		hash ^= beat.Hash
		if !slices.ContainsFunc(daemons, func(d *broker.Daemon) bool { return d.Node() == node }) || len(beat.Buckets) == 0 {
			t.Errorf("%s answers %+v", node, beat)
		}
	}
	if count != locks || len(beats) != 3 || hash == 0 {
		t.Errorf("%d nodes keep %d holds", len(beats), count)
	}
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
