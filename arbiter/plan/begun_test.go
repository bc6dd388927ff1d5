package plan

import (
	"testing"

	"github.com/opencluster/oclocks/bucket/chain"
	"github.com/opencluster/oclocks/conf/shared"
)

// A primary whose node lives, but whose copy has begun anew since, does not exist: its bucket is taken from it.
func TestPrimaryThatHasBegunAnew(t *testing.T) {
	nodes := []shared.Node{{Number: 1, Raft: 1, Life: 1, Priority: 5}, {Number: 2, Raft: 2, Life: 1, Priority: 5}}
	one, two := nodes[0].Member(), nodes[1].Member()
	state := &shared.State{
		Cluster: "c", Last: 2, Nodes: nodes, Settings: shared.DefaultSettings(),
		Views: []chain.View{{Epoch: 7, Chain: []chain.Member{one, two}, InSync: 2}},
	}
	anew := chain.Report{Member: chain.Member{Node: 1, Inc: one.Inc + 1}}
	for name, test := range map[string]struct {
		report chain.Report
		seals  bool
	}{
		"begun anew":                        {anew, true},
		"the primary, and it is not sealed": {chain.Report{Member: one}, false},
	} {
		t.Run(name, func(t *testing.T) {
			p, seals := New(Config{}), false
			for now := int64(10e9); now < 12e9; now += 50e6 {
				in := Input{Now: now, Leading: true, Term: 2, State: state, Group: Group{Leader: 1, Voters: []uint64{1}}}
				for _, n := range nodes {
					in.Nodes = append(in.Nodes, Evidence{Number: n.Number, LeaseUntil: now + 800e6, Connected: true})
				}
				if now == 11e9 {
					in.Reports = []BucketReport{{Report: test.report}}
				}
				for _, s := range p.Step(in).Seal {
					seals = seals || s.Epoch == 7 && s.Node == 2
				}
			}
			if seals != test.seals {
				t.Fatalf("node 2 is asked to seal its copy: %v", seals)
			}
		})
	}
}
