package reign

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/opencluster/oclocks/arbiter/core"
	"github.com/opencluster/oclocks/arbiter/plan"
	"github.com/opencluster/oclocks/bucket/chain"
	"github.com/opencluster/oclocks/conf/shared"
)

// ledger is the naive model of a reign: what is on its way, and who waits for an answer.
type ledger struct {
	t       *rapid.T
	on      map[What]int    // on their way
	waiting map[string]bool // askers
}

func (l *ledger) take(out *Output) {
	for _, p := range out.Proposals {
		if l.on[p.What]++; l.on[p.What] > 1 || l.on[Announce]+l.on[Views] > 1 {
			l.t.Fatalf("a second one of %d is on its way", p.What)
		}
		if p.Only.Term != 5 {
			l.t.Fatalf("a proposal for term %d", p.Only.Term)
		}
	}
	if out.Group != nil {
		if l.on[Group]++; l.on[Group] > 1 {
			l.t.Fatal("two changes of the group at a time")
		}
	}
	l.answered(out.Admitted)
}

func (l *ledger) answered(list []Admitted) {
	for _, a := range list {
		if !l.waiting[a.Asker] {
			l.t.Fatalf("%s is answered, and did not ask or was answered before", a.Asker)
		}
		delete(l.waiting, a.Asker)
	}
}

// TestOneOfEachAndEverybodyAnswered: one command of a kind is on its way at a time, and everybody who wants to be registered is
// answered once, at the end of the reign at the latest.
func TestOneOfEachAndEverybodyAnswered(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := &ledger{t: t, on: map[What]int{}, waiting: map[string]bool{}}
		r := New(Config{Self: id(1), Start: 1, Term: 5, Found: &shared.Found{Cluster: "c", Buckets: 2}})
		var inbox Inbox
		st := &shared.State{Settings: shared.DefaultSettings(), Views: make([]chain.View, 2)}
		for n := uint64(1); n <= 3; n++ {
			st.Nodes = append(st.Nodes, shared.Node{ID: id(n), Number: n, Life: 1, Raft: n, Start: n, Priority: 5, Level: 2})
		}
		f := Facts{State: st, Number: 1, Status: core.Status{Raft: 1, Term: 5, Leading: true, Voters: []uint64{1}}}
		asked := 0
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			n := rapid.Uint64Range(1, 4).Draw(t, "node")
			switch rapid.IntRange(0, 6).Draw(t, "what") {
			case 0:
				asked++
				name := fmt.Sprint("asker ", asked)
				l.waiting[name] = true
				inbox.Put(Register{Asker: name, Request: shared.Register{ID: id(n), Raft: n, Start: n * rapid.Uint64Range(1, 2).Draw(t, "start")}})
			case 1:
				what := What(rapid.IntRange(0, int(Raising)).Draw(t, "done"))
				if l.on[what] == 0 {
					continue
				}
				l.on[what]--
				in := Done{What: what, OK: rapid.Bool().Draw(t, "ok"), Busy: rapid.Bool().Draw(t, "busy")}
				if what == Foundation && in.OK {
					founded := *st
					founded.Cluster = "c"
					f.State = &founded
				}
				inbox.Put(in)
			case 2:
				inbox.Put(Leave{Number: n})
			case 3:
				m := chain.Member{Node: n, Inc: 1 << 32}
				inbox.Put(Report{Node: n, Reports: []plan.BucketReport{{Bucket: 0, Report: chain.Report{Member: m}}}})
			case 4:
				f.Leases = []core.NodeLease{{Number: n, Raft: n, Until: f.Now + rapid.Int64Range(-1e9, 1e9).Draw(t, "until"), Heard: f.Now}}
				inbox.Put(Changed{})
			default:
				f.Now += rapid.Int64Range(0, 1e9).Draw(t, "later")
				out := r.Step(f, inbox.Take())
				if out.Next < f.Now || out.Next > f.Now+1e9 {
					t.Fatalf("the next step is due at %d, now is %d", out.Next, f.Now)
				}
				l.take(&out)
			}
		}
		l.answered(r.End(inbox.Take()))
		if len(l.waiting) > 0 {
			t.Fatalf("not answered: %v", l.waiting)
		}
	})
}

// TestWhoMayHaveALease: not whom the planner has barred, nor who is not the node.
func TestWhoMayHaveALease(t *testing.T) {
	state := &shared.State{Nodes: []shared.Node{{Number: 1, Raft: 10}, {Number: 2, Raft: 20}}}
	barred := map[uint64]bool{2: true}
	for _, c := range []struct {
		number, raft uint64
		want         string
	}{
		{1, 10, "<nil>"}, {1, 11, "another node with this identifier is alive: give each node its own data directory"},
		{2, 20, ErrBarred.Error()}, {3, 30, shared.ErrRemoved.Error()},
	} {
		if got := fmt.Sprint(MayLease(state, barred, c.number, c.raft)); got != c.want {
			t.Errorf("node %d, raft %d: %s", c.number, c.raft, got)
		}
	}
}
