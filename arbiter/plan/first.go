package plan

import "github.com/opencluster/oclocks/bucket/chain"

// begin gives buckets their first view: one copy, to which the others join.
func (t *turn) begin(buckets []uint32) {
	if len(buckets) == 0 {
		return
	}
	loads := t.loads()
	for _, b := range buckets {
		k := t.takes[b]
		if k == nil {
			k = &take{}
		}
		best := t.leastLoaded(loads, t.eligible(), nil)
		if best == nil {
			return
		}
		if k.proposed == 0 || t.Now >= k.proposed+t.cfg.Repeat {
			if t.full(len(t.out.Views)) {
				return
			}
			loads[best.number]++
		}
		t.takes[b] = k
		t.propose(b, k, chain.View{Epoch: 1, Chain: []chain.Member{best.node.Member()}, InSync: 1})
	}
}
