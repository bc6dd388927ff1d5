package plan

import (
	"fmt"
	"testing"

	"github.com/opencluster/oclocks/bucket/chain"
	"github.com/opencluster/oclocks/conf/shared"
)

// BenchmarkProbe is a Step of a new leader that asks as many copies as one Output may have whether they are sealed; they have answered
// when the next Step comes, so that it goes on to other buckets. When all have answered it begins anew.
func BenchmarkProbe(b *testing.B) {
	for _, c := range []struct{ nodes, copies int }{{3, 0}, {3, 2}, {9, 0}, {9, 3}} {
		b.Run(fmt.Sprintf("nodes=%d/copies=%d", c.nodes, c.copies), func(b *testing.B) {
			in := manyBuckets(65536, c.nodes, c.copies)
			p, orders := New(Config{}), 0
			b.ReportAllocs()
			for b.Loop() {
				out := p.Step(in)
				b.StopTimer()
				orders += len(out.Seal)
				in.Now += p.cfg.Repeat
				in.Reports = nil
				for _, o := range out.Seal {
					if m := in.State.Views[o.Bucket].Primary(); m.Node == o.Node {
						in.Reports = append(in.Reports, BucketReport{o.Bucket, chain.Report{Member: m}})
					}
				}
				for i := range in.Nodes {
					in.Nodes[i].LeaseUntil = in.Now + 800e6
				}
				if len(out.Seal) < p.cfg.Batch {
					in.Term++
				}
				b.StartTimer()
			}
			b.ReportMetric(float64(orders)/float64(b.N), "orders/op")
		})
	}
}

// manyBuckets is a cluster in good order in which every chain has as many members as it should have; with copies 0 that is all nodes.
func manyBuckets(buckets, nodes, copies int) Input {
	st := &shared.State{Cluster: "c", Term: 1, Settings: shared.DefaultSettings(), Views: make([]chain.View, buckets)}
	st.Settings.Copies, st.Settings.Balance = copies, false
	in := Input{Now: 1e12, Leading: true, Term: 1, State: st}
	for n := uint64(1); n <= uint64(nodes); n++ {
		st.Nodes = append(st.Nodes, shared.Node{Number: n, Life: 1, Raft: n, Priority: 5, Location: fmt.Sprintf("eu/dc%d/rack%d", n%3, n)})
		in.Nodes = append(in.Nodes, Evidence{Number: n, LeaseUntil: in.Now + 800e6, Connected: true})
	}
	if copies == 0 {
		copies = nodes
	}
	for b := range st.Views {
		v := chain.View{Epoch: 1, InSync: 2}
		for i := range copies {
			v.Chain = append(v.Chain, chain.Member{Node: 1 + uint64(b+i)%uint64(nodes), Inc: 1 << 32})
		}
		st.Views[b] = v
	}
	return in
}
