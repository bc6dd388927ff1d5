package client_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/opencluster/oclocks/client"
)

// Sessions whose clients share a connection keep themselves alive in common messages, one for each node, and lose nothing when those are not
// taken, not answered, or not heard.
func TestKeepAlivesOfACompany(t *testing.T) {
	const lease, size = 10 * time.Second, 9 // a keep-alive is due after half of it, and nothing may stand still for a quarter
	for what, spoil := range map[string]func(seen *bundlesSeen){
		"taken":   nil,
		"refused": func(seen *bundlesSeen) { seen.refused.Store(true) },
		"lost":    func(seen *bundlesSeen) { seen.swallowed.Store(true) },
		"unheard": func(seen *bundlesSeen) {
			for _, sub := range seen.subs {
				must(seen.t, sub.Unsubscribe())
			}
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			f := startFakeCluster(t)
			seen := f.takeBundles()
			nc, err := nats.Connect(f.nodes[0].srv.ClientURL())
			must(t, err)
			t.Cleanup(nc.Close)
			var claims []*client.Claim
			for i := range size {
				c := connectURL(t, "", client.WithConn(nc), client.WithLease(lease))
				claims = append(claims, lockOf(t, c.Mutex(f.nameAt(f.nodes[i%len(f.nodes)], fmt.Sprint("company/", i)))))
			}
			waitFor(t, "keep-alives in bundles", func() bool { return seen.keeps.Load() >= size })
			if spoil != nil {
				before := f.kept.Load()
				spoil(seen)
				waitFor(t, "each to be asked again", func() bool { return f.kept.Load() >= before+2*size })
				if told := seen.told.Load(); (what == "refused" || what == "lost") && told == 0 {
					t.Error("no bundle came any more")
				}
			}
			for i, claim := range claims {
				if err := claim.Err(); err != nil {
					t.Errorf("claim %d: %v", i, err)
				}
			}
		})
	}
}
