package plan

import (
	"slices"

	"github.com/opencluster/oclocks/bucket/chain"
)

// asked is what is known of whether a bucket's primary is sealed.
type asked struct {
	sent int64 // when it was asked
	told int64 // when it answered, 0 if it never did
}

// probe asks the members of the chains, all in a new term and each from time to time, whether they are sealed. One may be,
// without this leader knowing of it: the leader before has sealed it, or its report got lost. A primary would wait for a
// view for ever. It is asked until it answers. So are those who should have a copy and are not in the chain: a sealed one cannot
// join before the next view either, and a primary without anybody else in its chain has no cause to ask for one.
func (t *turn) probe() {
	if n := len(t.State.Views); n != len(t.asked) {
		t.Planner.asked = append(t.asked, make([]asked, n)...)[:n]
		t.Planner.probed = 0
	}
	if t.probed != 0 && t.Now < t.probed+t.cfg.Repeat {
		if t.unanswered {
			t.wake(t.probed + t.cfg.Repeat)
		}
		return
	}
	t.Planner.probed, t.Planner.unanswered = t.Now, false
	every := t.cfg.Probe + int64(len(t.asked))*1_000_000
	for i := range t.asked {
		a, b := &t.asked[i], uint32(i)
		if a.told != 0 && t.Now < a.told+every {
			continue
		}
		if a.sent != 0 && t.Now < a.sent+t.cfg.Repeat {
			t.Planner.unanswered = true
			t.wake(a.sent + t.cfg.Repeat)
			continue
		}
		v := &t.State.Views[b]
		if v.Epoch == 0 || t.takes[b] != nil || !t.alive(v.Primary()) {
			continue
		}
		if len(t.out.Seal) >= t.cfg.Batch {
			return
		}
		a.sent, a.told = t.Now, 0
		t.Planner.unanswered = true
		t.wake(t.Now + t.cfg.Repeat)
		for _, m := range v.Chain {
			if t.alive(m) {
				t.out.Seal = append(t.out.Seal, SealOrder{Node: m.Node, Bucket: b})
			}
		}
		for _, node := range t.outside(b) {
			t.out.Seal = append(t.out.Seal, SealOrder{Node: node, Bucket: b})
		}
	}
}

// outside are the nodes that are alive and should have a copy of the bucket, and have none in its chain.
func (t *turn) outside(b uint32) []uint64 {
	v := &t.State.Views[b]
	has := func(node uint64) bool {
		return slices.ContainsFunc(v.Chain, func(m chain.Member) bool { return m.Node == node && t.State.Lives(m) })
	}
	var nodes []uint64
	for _, s := range t.order {
		if s.alive && !has(s.number) {
			nodes = append(nodes, s.number)
		}
	}
	if len(nodes) == 0 {
		return nil
	}
	keep := keepers(t.State, b)
	return slices.DeleteFunc(nodes, func(node uint64) bool { return !slices.Contains(keep, node) })
}
