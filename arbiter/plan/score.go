package plan

import (
	"cmp"
	"encoding/binary"
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"

	"github.com/opencluster/oclocks/conf/shared"
)

// Score says how good the node would be as the bucket's first secondary; the highest is best. Nodes that are far from the
// primary, by their locations, go before near ones, since what takes the primary along may take its neighbours too (seed 000,
// "Preferred Secondary"); of equal ones each bucket has others, so that what a lost node was primary of is taken over by all
// that are left. A node that is to be primary of nothing, or only if nothing else is left, comes after all others.
func Score(state *shared.State, bucket uint32, node uint64) int64 {
	n := state.Node(node)
	if n == nil || n.Arbiter {
		return -1 << 40
	}
	score := int64(mix(bucket, node) >> 48)
	if bucket < state.Buckets() {
		if p := state.Node(state.Views[bucket].Primary().Node); p != nil {
			score += int64(Distance(p.Location, n.Location)) << 16
		}
	}
	if n.Drain || n.Priority >= shared.LowestPriority {
		score -= 1 << 32
	}
	return score
}

// Distance is how many parts of the two locations differ, from the first one that does: the higher the level at which they
// part, the more. eu/fra/rack1 and eu/fra/rack2 have the distance 1, eu/fra/rack1 and us 3.
func Distance(a, b string) int {
	x, y := parts(a), parts(b)
	same := 0
	for same < len(x) && same < len(y) && x[same] == y[same] {
		same++
	}
	return max(len(x), len(y)) - same
}

func parts(location string) []string {
	location = strings.Trim(location, "/")
	if location == "" {
		return nil
	}
	return strings.Split(location, "/")
}

// mix is a number that looks random and is always the same for a bucket and a node.
func mix(bucket uint32, node uint64) uint64 {
	var b [12]byte
	binary.LittleEndian.PutUint32(b[:], bucket)
	binary.LittleEndian.PutUint64(b[4:], node)
	return xxhash.Sum64(b[:])
}

// Keeps says whether the node should have a copy of the bucket: it is one of its keepers. Whoever has a copy and should not leaves the
// chain when enough others have one.
func Keeps(state *shared.State, bucket uint32, node uint64) bool {
	return slices.Contains(keepers(state, bucket), node)
}

// keepers are the nodes that should have a copy of the bucket: the primary, and one less than the setting copies of the others, those
// with the best score. It is all nodes if the setting does not say, or there is no such bucket yet.
func keepers(state *shared.State, bucket uint32) []uint64 {
	type scored struct {
		node  uint64
		score int64
	}
	var others []scored
	var nodes []uint64
	copies := state.Settings.Copies
	all := copies == 0 || bucket >= state.Buckets()
	for i := range state.Nodes {
		switch n := &state.Nodes[i]; {
		case n.Arbiter:
		case all || n.Number == state.Views[bucket].Primary().Node:
			nodes = append(nodes, n.Number)
		default:
			others = append(others, scored{n.Number, Score(state, bucket, n.Number)})
		}
	}
	slices.SortFunc(others, func(a, b scored) int { return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.node, b.node)) })
	for i := 0; i < len(others) && i < copies-1; i++ {
		nodes = append(nodes, others[i].node)
	}
	return nodes
}
