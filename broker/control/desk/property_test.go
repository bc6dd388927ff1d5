package desk

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/opencluster/oclocks/arbiter/core"
	"github.com/opencluster/oclocks/arbiter/plan"
	"github.com/opencluster/oclocks/bucket/chain"
	"github.com/opencluster/oclocks/conf/shared"
)

// listener is a node's copies, which know nothing but what control.Copies promises them.
type listener struct {
	t      *rapid.T
	served bool
	change uint64
	views  map[uint32]uint64 // epochs
	grants int64             // the end of the last one
	term   uint64
	away   map[uint64]bool
}

func (l *listener) hear(e Effect) {
	switch e := e.(type) {
	case Install:
		for _, v := range e.Views {
			if v.View.Epoch <= l.views[v.Bucket] {
				l.t.Fatalf("bucket %d: epoch %d after %d", v.Bucket, v.View.Epoch, l.views[v.Bucket])
			}
			l.views[v.Bucket] = v.View.Epoch
		}
	case Applied:
		if e.Change <= l.change {
			l.t.Fatalf("change %d after %d", e.Change, l.change)
		}
		l.change = e.Change
		for b, v := range e.State.Views {
			if l.views[uint32(b)] != v.Epoch {
				l.t.Fatalf("change %d without the view of bucket %d", e.Change, b)
			}
		}
		if n := e.State.Node(1); n == nil || n.Registered != 1 {
			l.t.Fatalf("change %d is told, and this process is not the node", e.Change)
		}
	case Grant:
		if e.Until < l.grants || e.Under > l.change {
			l.t.Fatalf("a lease until %d under %d after one until %d at change %d", e.Until, e.Under, l.grants, l.change)
		}
		l.grants = e.Until
	case Seal:
		if term := uint64(e.Orders[0].Bucket); term < l.term { // each order's bucket is its term
			l.t.Fatalf("an order of term %d after one of %d", term, l.term)
		} else {
			l.term = term
		}
	case Away:
		if l.away[e.Node] == e.Away {
			l.t.Fatalf("node %d is away: %t, once more", e.Node, e.Away)
		}
		l.away[e.Node] = e.Away
	default:
		return
	}
	if !l.served {
		l.t.Fatalf("%T before the copies are there", e)
	}
}

// TestWhatCopiesArePromised: whatever happens in whatever order, the copies are told what control.Copies says, in that order, and
// the leases always come after what they rely on.
func TestWhatCopiesArePromised(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := &listener{t: t, views: map[uint32]uint64{}, away: map[uint64]bool{}}
		d, in := New(Config{Self: id(1), Routed: true}), NewInbox()
		st := shared.State{Settings: shared.DefaultSettings(), Change: 1, Nodes: []shared.Node{
			{ID: id(1), Number: 1, Raft: 1, Registered: 1}, {ID: id(2), Number: 2, Raft: 2, Registered: 1}, {ID: id(3), Number: 3, Raft: 3, Registered: 1},
		}, Views: make([]chain.View, 3)}
		now, until, leads := int64(0), int64(0), uint64(0)
		first := st
		in.Push(1, &first)
		f := Facts{Identity: Identity{Number: 1, Life: 1, Change: 1}, Status: core.Status{Raft: 1, Voters: []uint64{1, 2, 3}}}
		turn := func() {
			state := st
			f.State, f.Now = &state, now
			effects, _ := d.Turn(f, in.Take(false))
			for _, e := range effects {
				switch e := e.(type) {
				case Begin:
					if leads != 0 {
						t.Fatal("two reigns at a time")
					}
					leads = e.Term
				case End:
					if leads == 0 {
						t.Fatal("the end of no reign")
					}
					leads = 0
				}
				l.hear(e)
			}
		}
		push := func() {
			st.Change++
			state := st
			in.Push(st.Change, &state)
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			node := rapid.Uint64Range(2, 3).Draw(t, "node")
			switch rapid.IntRange(0, 11).Draw(t, "what") {
			case 0, 1:
				b := rapid.IntRange(0, 2).Draw(t, "bucket")
				st.Views = slices.Clone(st.Views)
				st.Views[b] = chain.View{Epoch: st.Views[b].Epoch + 1, Chain: []chain.Member{{Node: node, Inc: 1}}, InSync: 1}
				push()
			case 2:
				until += rapid.Int64Range(0, 9).Draw(t, "longer")
				in.Arbiter(core.Granted{Until: until, Under: rapid.Uint64Range(1, st.Change).Draw(t, "under"), Live: 1})
			case 3:
				in.Serve()
				l.served = true
			case 4:
				term := rapid.Uint64Range(1, 6).Draw(t, "term")
				in.Put(Order{Term: term, Seal: []plan.SealOrder{{Node: 1, Bucket: uint32(term)}}})
			case 5:
				in.Arbiter(core.Leadership{Term: rapid.Uint64Range(1, 6).Draw(t, "term"), Leading: rapid.Bool().Draw(t, "leads")})
			case 6:
				in.Notice(Route{id(node), rapid.Bool().Draw(t, "up")})
			case 7:
				in.Put(Hello{Identifier: id(node), Number: node, Start: rapid.Uint64Range(1, 3).Draw(t, "start")})
			case 8:
				in.Put(Farewell{id(node), rapid.Uint64Range(1, 3).Draw(t, "start")})
			case 9:
				if rapid.IntRange(0, 5).Draw(t, "rarely") == 0 { // another process is this node from now on
					st.Nodes = slices.Clone(st.Nodes)
					st.Nodes[0].Registered = st.Change + 1
					push()
				}
			default:
				now += rapid.Int64Range(0, 2e9).Draw(t, "later")
				turn()
			}
		}
		turn()
		if known := st.Nodes[0].Registered == 1; known && l.served && l.change != st.Change {
			t.Fatalf("the copies know of change %d, there are %d", l.change, st.Change)
		}
	})
}
