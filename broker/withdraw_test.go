package broker_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/opencluster/oclocks/broker"
	"github.com/opencluster/oclocks/conf"
	"github.com/opencluster/oclocks/internal/brokertest"
	"github.com/opencluster/oclocks/subjects"
)

// A node that was removed and stays for its vote takes no request of the simple path, in no zone that it has or is given later. What
// it alone is asked it answers.
func TestARemovedNodeTakesNoTurn(t *testing.T) {
	red, blue := conf.Zone{Name: "red"}, conf.Zone{Name: "blue"}
	d := brokertest.Start(t, brokertest.WithZones(red))
	nc, user := login(t, d, "red", "alice", conf.RoleUser)
	ask(t, nc, "locks.acquire."+user, "before").granted()
	d.Withdraw()
	takesNoTurn(t, d, nc, user)
	if err := d.Reload(t.Context(), brokertest.Settings(brokertest.WithZones(red, blue))); err != nil {
		t.Fatal(err)
	}
	nc, user = login(t, d, "blue", "bob", conf.RoleUser)
	takesNoTurn(t, d, nc, user)
}

func takesNoTurn(t *testing.T, d *broker.Daemon, nc *nats.Conn, user string) {
	t.Helper()
	if msg, err := nc.Request("locks.acquire."+user, []byte(`{"name":"n"}`), patience); !errors.Is(err, nats.ErrNoResponders) {
		t.Fatalf("the simple path: %v, %v", msg, err)
	}
	number := subjects.BucketOf("n", uint32(len(d.Shared().Views)))
	ask(t, nc, fmt.Sprintf("locks.b.%d.acquire.%s", number, user), `{"name":"n"}`).granted()
}

// Clients of its server are served by the others.
func TestClientsOfARemovedNode(t *testing.T) {
	c, conns := startNodes(t, 2)
	c.Daemons[1].Withdraw()
	for i := range 20 {
		acquire(t, conns[1], fmt.Sprintf(`{"name":"removed/%d"}`, i))
	}
}
