package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
)

// nodeLease is the default of node_lease.
const nodeLease = 800 * time.Millisecond

// holdStatic takes a lock as a plain client that asks until it is answered.
func holdStatic(t testing.TB, nc *nats.Conn, name string) answer {
	t.Helper()
	var a answer
	var err error
	for deadline := time.Now().Add(2 * patience); time.Now().Before(deadline); {
		if err = tryLock(nc, name, &a); err == nil && a.Granted {
			return a
		}
		<-time.After(10 * time.Millisecond)
	}
	t.Fatalf("%s cannot be taken: %v %+v", name, err, a.Error)
	return answer{}
}

func tryLock(nc *nats.Conn, name string, a *answer) error {
	body := fmt.Sprintf(`{"name":%q,"kind":"static","ttl":"10m","request":"h-%s"}`, name, name)
	msg, err := nc.Request("locks.acquire.anyone", []byte(body), askTime)
	if err != nil {
		return err
	}
	*a = answer{}
	return json.Unmarshal(msg.Data, a)
}

// waitQueue waits until n requests stand at a lock; now and then those ask again that have not heard anything.
func waitQueue(t testing.TB, nc *nats.Conn, name string, n int, again func()) {
	t.Helper()
	asked := time.Now()
	deadline := asked.Add(patience)
	for {
		msg, err := nc.Request("locks.query.anyone", fmt.Appendf(nil, `{"name":%q}`, name), askTime)
		var rec struct {
			Waiting int `json:"waiting"`
		}
		if err == nil && json.Unmarshal(msg.Data, &rec) == nil && rec.Waiting == n {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d stand at %s: %v", rec.Waiting, n, name, err)
		}
		if time.Since(asked) > askAgain {
			t.Logf("%d of %d stand at %s; the others ask again", rec.Waiting, n, name)
			again()
			asked = time.Now()
		}
		<-time.After(10 * time.Millisecond)
	}
}

// scene is a held lock with a queue, and workers, over which a test does its worst.
type scene struct {
	*cluster
	nc      *nats.Conn
	held    answer
	waiters *crowd
	load    *load
}

// stage sets the scene: the lock is in a bucket of which node owner is primary; the holder and the waiters are plain
// clients of node home; 16 workers are connected to the nodes in workers, one after the other.
func stage(t testing.TB, c *cluster, owner, home, waiters int, workers ...int) *scene {
	t.Helper()
	name := c.named(owner, "queue")
	s := &scene{cluster: c, nc: c.plain(home)}
	s.held = holdStatic(t, s.nc, name)
	s.waiters = queueUp(t, s.nc, name, waiters)
	waitQueue(t, s.nc, name, waiters, s.waiters.again)
	var urls []string
	for _, i := range workers {
		urls = append(urls, c.urls(i))
	}
	s.load = startLoad(t, urls, 16)
	s.load.progress(200)
	return s
}

// end judges what came of it: the holder holds what it held, every waiter gets its one grant in the order of the queue,
// nobody ever held twice, and no request failed that the client did not hide.
func (s *scene) end() {
	s.t.Helper()
	s.load.progress(500)
	if again := holdStatic(s.t, s.nc, s.waiters.name); again.Token != s.held.Token || again.Key != s.held.Key {
		s.t.Errorf("the holder asks again and gets another answer: %+v, not %+v", again, s.held)
	}
	s.waiters.release(s.held)
	s.waiters.finish()
	gap := s.load.stop()
	s.t.Logf("longest time without any grant: %s; slowest lock: %s", gap, s.load.slowest)
}

// kill -9 of the primary of a held lock with 1,000 waiters, while others are at work.
func TestKilledPrimaryLosesNothing(t *testing.T) {
	c := startCluster(t, 3)
	c.balanced()
	s := stage(t, c, 1, 2, 1000, 0, 2)
	c.kill(1)
	s.end()
}

// kill -9 of the node that leads the control plane, which is primary of the held lock too.
func TestKilledLeaderLosesNothing(t *testing.T) {
	c := startCluster(t, 3)
	c.balanced()
	leader := c.leader(0)
	home := (leader + 1) % 3
	s := stage(t, c, leader, home, 100, home, (leader+2)%3)
	c.kill(leader)
	s.end()
}

// kill -9 of the node that the clients are connected to: their sessions go on at another one with the same identity.
func TestKilledHomeLosesNothing(t *testing.T) {
	c := startCluster(t, 3)
	c.balanced()
	s := stage(t, c, 1, 2, 100, 0)
	c.kill(0)
	s.end()
}

// kill -9 of a node that is primary of nothing, because of its priority: nobody waits for its lease.
func TestKilledSecondaryLosesNothing(t *testing.T) {
	c := newCluster(t, 3)
	c.nodes[2].Args = []string{"--priority", "15"}
	for i := range c.nodes {
		c.start(i)
	}
	c.settled(0, 3)
	if info := c.info(0); slices.Contains(info.Map.Primary, c.nodes[2].ID) {
		t.Fatalf("a node of priority 15 is primary: %v", info.Map.Primary)
	}
	s := stage(t, c, 0, 1, 100, 0, 1)
	c.kill(2)
	s.end()
}

// An orderly restart of all nodes, one after the other, under load: buckets are handed over before a node goes.
func TestRollingRestartDisturbsNobody(t *testing.T) {
	c := startCluster(t, 3)
	c.balanced()
	s := stage(t, c, 1, 2, 100, 0, 1, 2)
	for i := range c.nodes {
		c.stop(i)
		s.load.progress(100)
		c.start(i)
		c.settled((i+1)%3, 3)
		s.load.progress(100)
	}
	s.end()
}

// A primary that stands still for three leases and wakes up: nothing that it says in its old epoch takes effect.
func TestStoppedPrimaryWakesUpAsNobody(t *testing.T) {
	c := startCluster(t, 3)
	c.balanced()
	stopped(t, c, 1)
}

// The same for the leader of the control plane.
func TestStoppedLeaderWakesUpAsNobody(t *testing.T) {
	c := startCluster(t, 3)
	c.balanced()
	stopped(t, c, c.leader(0))
}

// stopped stops a node for three leases while clients that are connected to it, and to others, are at work.
func stopped(t *testing.T, c *cluster, victim int) {
	t.Helper()
	s := stage(t, c, victim, (victim+1)%3, 100, victim, (victim+1)%3, (victim+2)%3)
	c.nodes[victim].signal(syscall.SIGSTOP)
	asleep := time.Now()
	for time.Since(asleep) < 3*nodeLease { // it is what the test is about, and ends by the clock
		s.load.progress(20)
	}
	c.nodes[victim].signal(syscall.SIGCONT)
	c.settled((victim+1)%3, 3)
	s.end()
}
