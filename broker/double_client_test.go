package broker_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/opencluster/oclocks/client"
	"github.com/opencluster/oclocks/conf"
	"github.com/opencluster/oclocks/internal/brokertest"
)

// The locks of a client's session move with their names when the number of buckets is doubled: its keep-alives go on to cover
// them, a waiter is granted in its turn, and the end of the session ends them all.
func TestDoublingUnderASession(t *testing.T) {
	const lease = 8 * time.Second // a client that stands still for 6 s has lost its locks
	c := brokertest.StartCluster(t, 3, t.TempDir(), func(s *conf.Settings) { s.Buckets, s.SessionLease = 4, lease })
	ctx := t.Context()
	open := func(d int) *client.Client {
		t.Helper()
		cl, err := client.Connect(ctx, url(c.Daemons[d]))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := cl.Close(context.Background()); err != nil {
				t.Logf("close the client: %v", err)
			}
		})
		return cl
	}
	holder, waiter := open(0), open(1)
	var claims []*client.Claim
	for i := range 30 {
		claim, err := holder.Mutex(fmt.Sprint("of the session/", i)).Lock(ctx)
		if err != nil {
			t.Fatal(err)
		}
		claims = append(claims, claim)
	}
	granted := make(chan error, 1)
	go func() {
		_, err := waiter.Mutex("of the session/7").Lock(ctx)
		granted <- err
	}()
	nc := connect(t, url(c.Daemons[2]))
	queued(t, nc, "of the session/7", 1)
	double(t, c.Daemons[1], 4)
	double(t, c.Daemons[1], 8)
	for end := time.Now().Add(3 * lease / 2); time.Now().Before(end); <-time.After(lease / 8) {
		for i, claim := range claims {
			if state := claim.State(); state.String() == "lost" {
				t.Fatalf("lock %d is lost", i)
			}
		}
	}
	select {
	case err := <-granted:
		t.Fatalf("granted while it is held: %v", err)
	default:
	}
	if err := claims[7].Release(ctx); err != nil {
		t.Fatal(err)
	}
	if err := <-granted; err != nil {
		t.Fatal(err)
	}
	if err := holder.Close(ctx); err != nil {
		t.Fatal(err)
	}
	for i := range claims {
		if i == 7 {
			continue
		}
		a := ask(t, nc, "locks.query.anyone", fmt.Sprintf(`{"name":"of the session/%d"}`, i))
		if holders, _ := a.fields["holders"].([]any); len(holders) != 0 {
			t.Errorf("lock %d is held after the end of its session: %s", i, a.msg.Data)
		}
	}
}
