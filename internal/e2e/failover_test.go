package e2e

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
)

// holdStatic takes a lock as a plain client that asks until it is answered.
func holdStatic(t testing.TB, nc *nats.Conn, name string) answer {
	t.Helper()
	for range 200 {
		body := fmt.Sprintf(`{"name":%q,"kind":"static","ttl":"10m","request":"h"}`, name)
		msg, err := nc.Request("locks.acquire.anyone", []byte(body), time.Second)
		var a answer
		if err == nil && json.Unmarshal(msg.Data, &a) == nil && a.Granted {
			return a
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("%s cannot be taken", name)
	return answer{}
}

// kill -9 of the primary of a held lock with 1,000 waiters, while others are at work: no lock is lost, nobody holds twice,
// the queue keeps its order, tokens rise, and every waiter gets its one grant without asking again.
func TestKilledPrimaryLosesNothing(t *testing.T) {
	c := startCluster(t, 3)
	c.balanced()
	victim, home := 1, 2
	name := c.named(victim, "queue")
	nc := c.plain(home)
	held := holdStatic(t, nc, name)
	waiters := queueUp(t, nc, name, 1000)
	waitQueue(t, nc, name, 1000)
	load := startLoad(t, []string{c.urls(0), c.urls(home)}, 16)
	load.progress(200)
	c.kill(victim)
	load.progress(2000)
	if again := holdStatic(t, nc, name); again.Token != held.Token || again.Key != held.Key {
		t.Errorf("the holder asks again and gets another answer: %+v, not %+v", again, held)
	}
	waiters.release(held)
	waiters.finish()
	t.Logf("the longest time without a grant: %s", load.stop())
}

// waitQueue waits until n requests stand at a lock.
func waitQueue(t testing.TB, nc *nats.Conn, name string, n int) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		msg, err := nc.Request("locks.query.anyone", fmt.Appendf(nil, `{"name":%q}`, name), time.Second)
		var rec struct {
			Waiting int `json:"waiting"`
		}
		if err == nil && json.Unmarshal(msg.Data, &rec) == nil && rec.Waiting == n {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d stand at %s: %v", rec.Waiting, n, name, err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}
