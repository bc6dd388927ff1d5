package plan

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/opencluster/oclocks/bucket/chain"
)

// TestNodesThatNeverComeBack has some nodes die for good, whatever was under way, while the same leader goes on: the others have a primary
// for every bucket soon, by a takeover or, when give_up is over, by a recovery.
func TestNodesThatNeverComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rule := rapid.SampledFrom([]chain.Acks{chain.First, chain.All, chain.Majority}).Draw(t, "acks")
		nodes := rapid.IntRange(2, 4).Draw(t, "nodes")
		s := newSim(rapid.Uint64().Draw(t, "seed"), nodes, rule)
		for range 30 {
			s.round(100 * ms)
		}
		for range rapid.IntRange(10, 60).Draw(t, "turns") {
			s.disturb(rapid.IntRange(0, 19).Draw(t, "what"), rapid.IntRange(0, nodes-1).Draw(t, "node"))
		}
		left := rapid.IntRange(1, 1<<nodes-1).Draw(t, "left")
		for i, n := range s.nodes {
			n.cut, n.leaving = false, false
			if left>>i&1 == 0 {
				n.up = false
				continue
			}
			s.start(n, false)
		}
		for range 100 {
			s.round(100 * ms)
		}
		if len(s.wrong) > 0 {
			t.Fatal(s.wrong)
		}
		for b := range simBucket {
			if n := s.nodes[s.state().Views[b].Primary().Node-1]; !s.leads(n, b) {
				t.Fatalf("no primary acts%s", s.dump(uint32(b)))
			}
		}
	})
}
