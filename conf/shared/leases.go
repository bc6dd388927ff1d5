package shared

import (
	"fmt"
	"time"

	"github.com/opencluster/oclocks/internal/mutant"
)

// When max_lease is made shorter, longer leases are out, and a recovery has to wait for those too. So the state keeps the longest
// that may be out, until the leader tells that it was outlived: see doc.go.

// Recovery is how long nothing is granted in a bucket whose history may be incomplete: until every node's lease and every
// client's lease from before has ended.
func (s *State) Recovery() time.Duration {
	if mutant.On(mutant.RecoveryForgetsClients) {
		return s.Settings.NodeLease
	}
	return s.Settings.NodeLease + max(s.Settings.MaxLease, s.Longest)
}

// Outlive is how long after the change State.Shortened the leases of before may be out: those that were given just before every
// node knew of that change, once more as long because clocks differ, and some time for a request that was on its way.
func (s *State) Outlive() time.Duration {
	const under = 10 * time.Second
	return s.Settings.NodeLease + 2*s.Longest + under
}

// lease remembers the longest lease that may be out, when max_lease has become another one.
func (t *turn) lease(old time.Duration) {
	now := t.next.Settings.MaxLease
	if now == old {
		return
	}
	t.next.Longest, t.next.Shortened = max(t.next.Longest, old), t.res.Change
	if t.next.Longest <= now {
		t.next.Longest, t.next.Shortened = 0, 0
	}
}

// outlived forgets it.
func (t *turn) outlived(change uint64) error {
	if change == 0 || change != t.next.Shortened {
		return fmt.Errorf("%w: max_lease was made shorter by change %d, not %d", ErrStale, t.next.Shortened, change)
	}
	t.next.Longest, t.next.Shortened = 0, 0
	return nil
}
