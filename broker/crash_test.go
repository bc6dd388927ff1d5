package broker_test

import (
	"encoding/json"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/opencluster/oclocks/conf"
	"github.com/opencluster/oclocks/internal/brokertest"
	"github.com/opencluster/oclocks/subjects"
)

// Nodes end without a word, one and all of them, while clients take locks and the number of buckets is doubled. What
// was answered stays.
func TestCrashes(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes a while")
	}
	few := func(s *conf.Settings) { s.Buckets = 4 }
	c := brokertest.StartCluster(t, 3, t.TempDir(), few)
	nc := connect(t, url(c.Daemons[0]))
	held := static(t, nc, 40)
	l := newLoad(t)
	l.use(c.Daemons)
	l.begin(6, 20)
	l.more(30)
	down := func(which ...int) {
		t.Helper()
		for _, i := range which {
			c.Daemons[i].Crash(t)
		}
	}
	up := func(which ...int) {
		t.Helper()
		c.Start(which...)
		l.use(c.Daemons)
		l.more(20)
		stillHeld(t, connect(t, url(c.Daemons[which[0]])), held)
	}
	double(t, c.Daemons[1], 4)
	allVote(t, nc, 3) // before, the end of one may be the end of the majority
	down(0)
	l.more(20) // the others go on
	up(0)
	double(t, c.Daemons[2], 8)
	down(0, 1, 2)
	up(0, 1, 2)
}

// allVote waits until n nodes vote about the control plane.
func allVote(t testing.TB, nc *nats.Conn, n int) {
	t.Helper()
	eventually(t, "all vote", func() bool {
		msg, err := nc.Request("locks.cluster.anyone", nil, patience)
		if err != nil {
			return false
		}
		var all subjects.Cluster
		if err := json.Unmarshal(msg.Data, &all); err != nil {
			t.Fatalf("%v: %s", err, msg.Data)
		}
		votes := 0
		for _, node := range all.Nodes {
			if node.Voter {
				votes++
			}
		}
		return votes == n
	})
}
