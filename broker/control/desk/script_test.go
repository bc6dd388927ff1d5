package desk

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/opencluster/oclocks/arbiter/core"
	"github.com/opencluster/oclocks/arbiter/plan"
	"github.com/opencluster/oclocks/broker/control/flow"
	"github.com/opencluster/oclocks/bucket/chain"
	"github.com/opencluster/oclocks/conf/shared"
	"github.com/opencluster/oclocks/internal/transcript"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The files in testdata/golden are scripts: what happens is put into the inbox line by line, "turn" prints what is to be done. Times
// are milliseconds. This node has number 1 once it is registered; node n has the raft ID n.
func TestScripts(t *testing.T) {
	transcript.Play(t, func(t *testing.T) transcript.World {
		w := newWorld(t)
		return func(t *testing.T, out *strings.Builder, words []string) {
			w.t, w.out = t, out
			w.do(words)
		}
	})
}

type world struct {
	t   *testing.T
	out *strings.Builder
	d   *Desk
	in  *Inbox
	f   Facts
}

func newWorld(t *testing.T) *world {
	return &world{
		t: t, d: New(Config{Self: id(1), Routed: true}), in: NewInbox(),
		f: Facts{State: &shared.State{Settings: shared.DefaultSettings()}, Status: core.Status{Raft: 1, Voters: []uint64{1, 2, 3}}},
	}
}

const ms = 1_000_000

func id(n uint64) string { return fmt.Sprintf("node%d", n) }

func (w *world) num(s string) uint64 {
	w.t.Helper()
	return transcript.Uint(w.t, s)
}

func (w *world) view(s string) chain.View {
	w.t.Helper()
	return transcript.View(w.t, s, 1)
}

// change applies another state: "node N" adds or registers anew, "remove N" removes, "views …" replaces.
func (w *world) change(f []string) {
	st := *w.f.State
	st.Change++
	switch f[0] {
	case "node":
		n := w.num(f[1])
		nodes := slices.DeleteFunc(slices.Clone(st.Nodes), func(o shared.Node) bool { return o.Number == n })
		nodes = append(nodes, shared.Node{ID: id(n), Number: n, Raft: n, Name: id(n), Priority: 5, Registered: st.Change})
		slices.SortFunc(nodes, func(a, b shared.Node) int { return int(a.Number) - int(b.Number) })
		st.Nodes, st.Last = nodes, max(st.Last, n)
	case "remove":
		n := w.num(f[1])
		st.Nodes = slices.DeleteFunc(slices.Clone(st.Nodes), func(o shared.Node) bool { return o.Number == n })
	case "views":
		st.Views = nil
		for _, s := range f[1:] {
			st.Views = append(st.Views, w.view(s))
		}
	}
	w.f.State = &st
	w.in.Push(st.Change, &st)
}

func (w *world) do(f []string) {
	switch f[0] {
	case "node", "remove", "views":
		w.change(f)
	case "identity": // identity [CHANGE]: of now
		w.f.Identity = Identity{Number: 1, Life: 1, Change: w.f.State.Node(1).Registered}
		if len(f) > 1 {
			w.f.Identity.Change = w.num(f[1])
		}
		w.in.Notice(Introduce{})
	case "serve":
		w.in.Serve()
	case "granted": // granted UNTIL UNDER
		w.in.Arbiter(core.Granted{Until: int64(w.num(f[1])) * ms, Under: w.num(f[2]), Live: 3})
	case "leads": // leads TERM
		w.f.Status.Leading = true
		w.in.Arbiter(core.Leadership{Leader: 1, Term: w.num(f[1]), Leading: true})
	case "follows": // follows TERM
		w.f.Status.Leading = false
		w.in.Arbiter(core.Leadership{Leader: 2, Term: w.num(f[1])})
	case "voters":
		w.f.Status.Voters = nil
		for _, s := range f[1:] {
			w.f.Status.Voters = append(w.f.Status.Voters, w.num(s))
		}
	case "out":
		w.in.Arbiter(core.Removed{})
	case "seal": // seal TERM BUCKET
		w.in.Put(Order{Term: w.num(f[1]), Seal: []plan.SealOrder{{Node: 1, Bucket: uint32(w.num(f[2])), Epoch: 5}}})
	case "sealed": // sealed BUCKET SEQ
		w.in.Sealed(uint32(w.num(f[1])), chain.Report{Member: chain.Member{Node: 1, Inc: 1}, Last: chain.Point{Epoch: 1, Seq: w.num(f[2])}})
	case "never": // never BUCKET VIEW
		w.in.Notice(Never{[]flow.Ask{{Bucket: uint32(w.num(f[1])), View: w.view(f[2])}}})
	case "route": // route NODE up|down
		w.in.Notice(Route{id(w.num(f[1])), f[2] == "up"})
	case "hello": // hello NODE START [ask]
		w.in.Put(Hello{Identifier: id(w.num(f[1])), Number: w.num(f[1]), Start: w.num(f[2]), Ask: len(f) > 3})
	case "heard":
		w.in.Put(Heard{w.num(f[1])})
	case "farewell": // farewell NODE START
		w.in.Put(Farewell{id(w.num(f[1])), w.num(f[2])})
	case "turn", "hold": // turn NOW
		w.f.Now = int64(w.num(f[1])) * ms
		effects, next := w.d.Turn(w.f, w.in.Take(f[0] == "hold"))
		fmt.Fprintf(w.out, "turn at %s:\n", f[1])
		for _, e := range effects {
			fmt.Fprintf(w.out, "  %s\n", text(e))
		}
		fmt.Fprintf(w.out, "  next at %d\n", next/ms)
	default:
		w.t.Fatalf("unknown: %v", f)
	}
}

func text(e Effect) string {
	switch e := e.(type) {
	case Applied:
		return fmt.Sprintf("applied %d", e.Change)
	case Grant:
		return fmt.Sprintf("grant until %d under %d, %d live", e.Until/ms, e.Under, e.Live)
	case Install:
		return fmt.Sprintf("install %v", e.Views)
	case Seen:
		return fmt.Sprintf("seen away %v gone %v", slices.Sorted(maps.Keys(e.Away)), e.Gone)
	case Prefer:
		return fmt.Sprintf("prefer %v", e.Priorities)
	case Report:
		return fmt.Sprintf("report of node %d here=%t %v", e.Node, e.Here, e.Reports)
	case Begin:
		return fmt.Sprintf("begin the reign of term %d", e.Term)
	case Over:
		return "over: " + e.Err.Error()
	}
	return fmt.Sprintf("%T %+v", e, e)
}
