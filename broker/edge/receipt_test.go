package edge

import (
	"testing"
	"time"

	"github.com/opencluster/oclocks/subjects"
)

// TestNoGrantPromisesMore: a grant in a session from before max_lease was made shorter promises what recoveries wait for, not what the
// session has. A static hold is counted by its time limit, which the table has made sure of.
func TestNoGrantPromisesMore(t *testing.T) {
	r := NewReceipts(make([]byte, 32))
	for _, c := range []struct {
		kind              subjects.Kind
		lease, most, want time.Duration
	}{
		{subjects.Connection, 20 * time.Second, 4 * time.Second, 4 * time.Second},
		{subjects.Connection, 4 * time.Second, 20 * time.Second, 4 * time.Second},
		{subjects.Static, 20 * time.Second, 4 * time.Second, 20 * time.Second},
		{subjects.Static, 0, 4 * time.Second, 0},
	} {
		g := subjects.Grant{Name: "a", Kind: c.kind, Lease: c.lease, Token: 7, Key: 9}
		r.Complete("zone", "node", c.most, &g)
		if g.Lease != c.want || g.Node != "node" || g.Receipt == "" || g.Receipt != r.Sign("zone", &g) {
			t.Errorf("%v of %v, at most %v: %+v", c.kind, c.lease, c.most, g)
		}
	}
}
