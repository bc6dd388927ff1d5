package broker

import (
	"testing"

	"github.com/opencluster/oclocks/bucket/chain"
	"github.com/opencluster/oclocks/conf/shared"
)

// Whether this node is to have a copy is thought about again whenever the answer may be another one.
func TestWhenScoresAreToldAgain(t *testing.T) {
	view := func(node uint64) chain.View {
		return chain.View{Epoch: node, Chain: []chain.Member{{Node: node}}, InSync: 1}
	}
	nodes := []shared.Node{{Number: 1}, {Number: 2}}
	base := shared.State{Nodes: nodes, Views: []chain.View{view(1), view(1)}, Settings: shared.Settings{Copies: 1}}
	more := base
	more.Settings.Copies = 2
	moved := base
	moved.Views = []chain.View{view(1), view(2)}
	all := base
	all.Settings.Copies = 0
	allMoved := moved
	allMoved.Settings.Copies = 0
	for name, c := range map[string]struct {
		old, now *shared.State
		tasks    int
	}{
		"first":                      {nil, &base, 1},
		"nothing":                    {&base, &base, 0},
		"another number of copies":   {&base, &more, 1},
		"a bucket moved":             {&base, &moved, 1},
		"a bucket moved, all copies": {&all, &allMoved, 0},
	} {
		d := &Daemon{events: newEvents(), shards: make([]*shard, 1), adopted: make(chan struct{}, 1), turned: make(chan struct{}, 1)}
		d.shards[0] = newShard(d, 0)
		d.adopt(c.old, c.now)
		if got := len(d.shards[0].queue.take(nil, 10)); got != c.tasks {
			t.Errorf("%s: %d tasks, want %d", name, got, c.tasks)
		}
		d.shards[0].timer.Close()
	}
}
