package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/opencluster/oclocks/client"
	"github.com/opencluster/oclocks/internal/boottime"
	"github.com/opencluster/oclocks/subjects"
)

// The known deficiency of dsync, "more than one write lock granted" (seed 002), with its numbers: some nodes are down, the
// first one has a lock, two more crash and forget it, all of them come back, and one of those who crashed asks for it.
func TestTheDeficiencyOfDsync(t *testing.T) {
	for _, numbers := range []struct{ nodes, down int }{{4, 1}, {8, 3}} {
		t.Run(fmt.Sprintf("%d nodes", numbers.nodes), func(t *testing.T) { replayDsync(t, numbers.nodes, numbers.down) })
	}
}

func replayDsync(t *testing.T, nodes, down int) {
	const crashing = 2
	c := newCluster(t, nodes, "--max-lease", "5s", "--session-lease", "5s")
	c.start(0)
	for i := 1; i < nodes; i++ {
		c.launch(i)
	}
	for i := 1; i < nodes; i++ {
		c.nodes[i].serving()
	}
	c.balanced()
	for i := nodes - down; i < nodes; i++ {
		c.redundant()
		c.spare(0)
		c.kill(i)
	}
	c.redundant()
	first := owns(t, c, 0)
	defer disconnect(t, first.conn) // while the nodes are there
	for i := nodes - down - crashing; i < nodes-down; i++ {
		c.kill(i)
		if err := os.RemoveAll(filepath.Join(c.nodes[i].Dir, "journal")); err != nil {
			t.Fatal(err)
		}
	}
	for i := nodes - down - crashing; i < nodes; i++ {
		c.launch(i)
	}
	for i := nodes - down - crashing; i < nodes; i++ {
		c.nodes[i].serving()
	}
	second := first.rival(c.only(nodes - down - crashing))
	checkExclusive(t, append(first.ended, second...))
}

// owner is a client that has a lock in every bucket, and what it believed.
type owner struct {
	t      *testing.T
	conn   *client.Client
	claims []*client.Claim
	from   []int64

	mu    sync.Mutex
	ended []stretch
}

// owns takes a lock in every bucket, by way of the i-th node.
func owns(t *testing.T, c *cluster, i int) *owner {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	conn := connect(t, c.only(i))
	info := c.info(i)
	o := &owner{t: t, conn: conn}
	have := make(map[uint32]bool)
	for k := 0; len(have) < int(info.Buckets); k++ {
		name := fmt.Sprint("test", k)
		b := subjects.BucketOf(name, info.Buckets)
		if have[b] {
			continue
		}
		have[b] = true
		claim, err := conn.Mutex(name).Lock(ctx)
		if err != nil {
			t.Fatalf("lock %s: %v", name, err)
		}
		o.claims, o.from = append(o.claims, claim), append(o.from, boottime.Now())
	}
	return o
}

// rival tries all locks of the owner as another client, until each is granted or refused because it is held; then the owner
// gives up what it still has, and the rival gets that too. It gives what the rival believed.
func (o *owner) rival(url string) (got []stretch) {
	o.t.Helper()
	ctx, cancel := context.WithTimeout(o.t.Context(), 3*patience)
	defer cancel()
	var watching sync.WaitGroup
	over := make(chan struct{})
	for i := range o.claims {
		watching.Go(func() { o.watch(i, over) })
	}
	conn := connect(o.t, url)
	taken := make([]stretch, len(o.claims))
	for i, claim := range o.claims {
		taken[i] = o.try(ctx, conn, claim.Name())
	}
	lost := 0
	for _, s := range taken {
		if s.from > 0 {
			lost++
		}
	}
	o.t.Logf("of %d locks %d had to change hands", len(taken), lost)
	close(over)
	watching.Wait()
	for i, claim := range o.claims {
		if taken[i].from == 0 {
			again, err := conn.Mutex(claim.Name()).Lock(ctx)
			if err != nil {
				o.t.Fatalf("lock %s after it was released: %v", claim.Name(), err)
			}
			now := boottime.Now()
			taken[i] = stretch{name: claim.Name(), token: again.Token(), from: now, to: now}
		}
	}
	return taken
}

// watch notes until when the owner believes in a claim: until it is lost, or until it gives it back.
func (o *owner) watch(i int, over <-chan struct{}) {
	claim := o.claims[i]
	s := stretch{name: claim.Name(), token: claim.Token(), from: o.from[i]}
	believed := make(chan int64, 1)
	go func() { believed <- believe(claim) }()
	select {
	case s.to = <-believed:
	case <-over:
		now := boottime.Now()
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := claim.Release(ctx); err != nil && !errors.Is(err, client.ErrLost) {
			o.t.Errorf("release %s: %v", claim.Name(), err)
		}
		s.to = min(now, <-believed) // it may have ended before, and not have been looked at yet
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ended = append(o.ended, s)
}

// try asks until the broker grants the lock or says that it is held: then the stretch is empty.
func (o *owner) try(ctx context.Context, conn *client.Client, name string) stretch {
	o.t.Helper()
	for {
		claim, err := conn.Mutex(name).TryLock(ctx)
		now := boottime.Now()
		switch {
		case err == nil:
			return stretch{name: name, token: claim.Token(), from: now, to: now}
		case errors.Is(err, client.ErrHeld):
			return stretch{}
		case ctx.Err() != nil:
			o.t.Fatalf("nobody says who holds %s: %v", name, err)
		}
	}
}
