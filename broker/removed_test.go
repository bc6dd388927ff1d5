package broker

import (
	"slices"
	"testing"

	"github.com/opencluster/oclocks/bucket"
	"github.com/opencluster/oclocks/bucket/chain"
	"github.com/opencluster/oclocks/bucket/replicated"
	"github.com/opencluster/oclocks/conf"
	"github.com/opencluster/oclocks/conf/shared"
)

// A node that was removed leaves also the chains in which nothing happens, whether it was removed after the view that has it or
// before: a bucket must not believe that it has a second copy there.
func TestRemovedNodeLeavesIdleChains(t *testing.T) {
	two := &shared.State{Last: 2, Nodes: []shared.Node{{Number: 1, Life: 1}, {Number: 2, Life: 1}}, Settings: shared.DefaultSettings()}
	one := &shared.State{Last: 2, Nodes: two.Nodes[:1], Settings: two.Settings, Change: 1}
	self, other := chain.Member{Node: 1, Inc: 1 << 32}, chain.Member{Node: 2, Inc: 1 << 32}
	view := chain.View{Epoch: 1, Chain: []chain.Member{self, other}, InSync: 1}
	for name, order := range map[string]func(c *copies, work func()){
		"after the view": func(c *copies, work func()) {
			c.Install([]shared.BucketView{{View: view}})
			work()
			c.Applied(1, one)
		},
		"before the view": func(c *copies, work func()) {
			c.Applied(1, one)
			work()
			c.Install([]shared.BucketView{{View: view}})
			c.Applied(2, one)
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := &Daemon{
				settings: &conf.Settings{}, shards: make([]*shard, 1), number: 1, events: newEvents(), adopted: make(chan struct{}, 1), turned: make(chan struct{}, 1),
			}
			d.state.Store(two)
			d.count.Store(1)
			s := newShard(d, 0)
			defer s.timer.Close()
			d.shards[0] = s
			b, err := replicated.New(replicated.Config{Table: bucket.Config{Buckets: 1}, Chain: chain.Config{Self: self}}, replicated.Start{})
			if err != nil {
				t.Fatal(err)
			}
			s.add(b)
			s.now.Boot = 1e9
			work := func() {
				for _, task := range s.queue.take(nil, 100) {
					s.step(task)
				}
			}
			order(newCopies(d, two), work)
			work()
			b.Chain().Grant(chain.Lease{Until: 1e12})
			for range 4 { // it takes over, then it thinks about a better view
				b.Round(s.now, &s.out)
				s.now.Boot += 50e6
				b.Tick(s.now)
			}
			if !slices.ContainsFunc(s.out.Proposals, func(p replicated.Proposal) bool { return len(p.View.Chain) == 1 }) {
				t.Fatalf("it asks for %v, and its chain has a node that was removed: %s", s.out.Proposals, b.Chain().Describe())
			}
		})
	}
}
