package broker_test

import (
	"fmt"
	"testing"

	"github.com/opencluster/oclocks/conf"
	"github.com/opencluster/oclocks/internal/brokertest"
)

// With fewer nodes than min_quorum nothing new is granted, whether a cluster begins or has lost some; what is held is renewed
// and released.
func TestMinQuorum(t *testing.T) {
	c := brokertest.StartCluster(t, 3, t.TempDir(), func(s *conf.Settings) { s.MinQuorum = 3 })
	nc := connect(t, url(c.Daemons[0]))
	settled(t, nc, 3)
	var keys []string
	for i := range 2 {
		name := fmt.Sprint("held", i)
		var a answer
		eventually(t, "a lock of three nodes", func() bool {
			a = ask(t, nc, "locks.acquire.anyone", fmt.Sprintf(`{"name":%q,"kind":"static","request":%q}`, name, name))
			return a.fields["granted"] == true
		})
		keys = append(keys, a.text("key"))
	}
	brokertest.Stop(t, c.Daemons[2])
	another := `{"name":"new","kind":"static","wait":"10s"}`
	eventually(t, "a refusal because of two nodes", func() bool {
		a := ask(t, nc, "locks.acquire.anyone", another)
		if a.fields["granted"] == true { // it has not noticed yet
			ask(t, nc, "locks.release.anyone", fmt.Sprintf(`{"name":"new","key":%q}`, a.text("key")))
			return false
		}
		return a.refused(503, "unavailable")["why"] == "min_quorum"
	})
	if a := ask(t, nc, "locks.renew.anyone", fmt.Sprintf(`{"name":"held0","key":%q}`, keys[0])); a.fields["error"] != nil {
		t.Errorf("a renewal is refused: %s", a.msg.Data)
	}
	for i, key := range keys {
		if a := ask(t, nc, "locks.release.anyone", fmt.Sprintf(`{"name":"held%d","key":%q}`, i, key)); a.fields["error"] != nil {
			t.Errorf("a release is refused: %s", a.msg.Data)
		}
	}
	ask(t, nc, "locks.acquire.anyone", another).refused(503, "unavailable")
	c.Restart(2)
	eventually(t, "a lock when all are there again", func() bool { return ask(t, nc, "locks.acquire.anyone", another).fields["granted"] == true })
}
