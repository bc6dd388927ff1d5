package client_test

import (
	"testing"
	"time"

	"github.com/opencluster/oclocks/client"
	"github.com/opencluster/oclocks/internal/brokertest"
)

// A cluster of real daemons: the node stops in an orderly way that a client is connected to, while it works, holds and waits.
// It notices nothing but a pause.
func TestDaemonOfAClusterStops(t *testing.T) {
	cluster := brokertest.StartCluster(t, 3, "")
	c, other := connect(t, cluster.Daemons[0]), connect(t, cluster.Daemons[1])
	held := lockOf(t, c.Mutex("held"))
	wanted := lockOf(t, other.Mutex("wanted"))
	before, err := c.Session(within(t))
	must(t, err)
	got := make(chan error, 1)
	go func() {
		_, err := c.Mutex("wanted").Lock(within(t))
		got <- err
	}()
	waitFor(t, "the client to wait", waiting(t, other, "wanted", 1))
	stopped := make(chan struct{})
	gap := longestPause(t, c, "busy", func() {
		defer close(stopped)
		brokertest.Stop(t, cluster.Daemons[0])
	}, 2*time.Second)
	<-stopped
	t.Logf("longest pause %v", gap)
	var after client.SessionInfo
	waitFor(t, "the session to come back", func() bool { // a stop may take longer than the look at the pauses
		after, err = c.Session(within(t))
		must(t, err)
		return after.Incarnation > before.Incarnation
	})
	if after.ID != before.ID {
		t.Errorf("the session is %s, it was %s", after.ID, before.ID)
	}
	must(t, held.Renew(within(t)))
	if held.State() != client.Held {
		t.Errorf("the lock is %v: %v", held.State(), held.Err())
	}
	must(t, wanted.Release(within(t)))
	must(t, <-got)
}
