package reign

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/opencluster/oclocks/arbiter/core"
	"github.com/opencluster/oclocks/arbiter/plan"
	"github.com/opencluster/oclocks/bucket/chain"
	"github.com/opencluster/oclocks/conf/shared"
	"github.com/opencluster/oclocks/internal/transcript"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The files in testdata/golden are scripts: what the leader knows is set line by line, "step" prints what the reign wants.
// Times are milliseconds. Node n has the raft ID n, and its start is n as long as nobody else is registered.
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
	t      *testing.T
	out    *strings.Builder
	r      *Reign
	inbox  Inbox
	f      Facts
	leases map[uint64]core.NodeLease
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, leases: map[uint64]core.NodeLease{}}
	w.f.State = &shared.State{Cluster: "c", Term: 5, Settings: shared.DefaultSettings()}
	w.f.Status = core.Status{Raft: 1, Term: 5, Leading: true, Voters: []uint64{1}}
	w.f.Away, w.f.Gone, w.f.Number = map[uint64]bool{}, map[uint64]bool{}, 1
	return w
}

func (w *world) num(s string) uint64 {
	w.t.Helper()
	return transcript.Uint(w.t, s)
}

func id(n uint64) string { return strings.Repeat("a", 25) + string(rune('a'+n)) }

func (w *world) view(s string) chain.View {
	w.t.Helper()
	return transcript.View(w.t, s, 1<<32)
}

func (w *world) do(f []string) {
	st := *w.f.State
	st.Change++
	w.f.State = &st
	switch f[0] {
	case "reign": // reign TAKEFROM [found]
		cfg := Config{Self: id(1), Start: 1, Term: 5, TakeFrom: int64(w.num(f[1])) * ms}
		if len(f) > 2 {
			cfg.Found = &shared.Found{Cluster: "c", Buckets: 1}
		}
		w.r = New(cfg)
	case "unfounded":
		st.Cluster = ""
	case "founded":
		st.Cluster = "c"
	case "node": // node NUMBER
		n := w.num(f[1])
		st.Nodes = append(slices.Clone(st.Nodes), shared.Node{ID: id(n), Number: n, Life: 1, Raft: n, Start: n, Name: fmt.Sprintf("n%d", n), Priority: 5})
		st.Last = max(st.Last, n)
	case "program": // program NUMBER LEVEL: it has registered with a program that knows it
		st.Nodes = slices.Clone(st.Nodes)
		st.Node(w.num(f[1])).Level = uint32(w.num(f[2]))
	case "level":
		st.Level = uint32(w.num(f[1]))
	case "remove":
		n := w.num(f[1])
		st.Removed = append(slices.Clone(st.Removed), st.Node(n).Raft)
		st.Nodes = slices.DeleteFunc(slices.Clone(st.Nodes), func(o shared.Node) bool { return o.Number == n })
	case "views": // views 5:1,2 6:2,1
		st.Views = nil
		for _, s := range f[1:] {
			st.Views = append(st.Views, w.view(s))
		}
	case "lease": // lease NUMBER UNTIL [HEARD]
		l := core.NodeLease{Number: w.num(f[1]), Raft: w.num(f[1]), Until: int64(w.num(f[2])) * ms}
		if len(f) > 3 {
			l.Heard = int64(w.num(f[3])) * ms
		}
		w.leases[l.Number] = l
	case "away":
		w.f.Away = map[uint64]bool{w.num(f[1]): true}
	case "gone":
		w.f.Gone = map[uint64]bool{w.num(f[1]): true}
	case "leaving":
		w.f.Leaving = true
	case "voters":
		w.f.Status.Voters, w.f.Status.Peers = nil, nil
		for _, s := range f[1:] {
			w.f.Status.Voters = append(w.f.Status.Voters, w.num(s))
			w.f.Status.Peers = append(w.f.Status.Peers, core.Peer{Raft: w.num(s), Match: 10})
		}
	case "deposed":
		w.f.Status.Leading = false
	default:
		w.event(f)
	}
}

const ms = 1_000_000

func (w *world) event(f []string) {
	switch f[0] {
	case "changed":
		w.inbox.Put(Changed{})
	case "lie": // node 3 tells of a copy of node 1
		w.inbox.Put(Report{Node: 3, Reports: []plan.BucketReport{{Bucket: 0, Report: chain.Report{Member: chain.Member{Node: 1, Inc: 1 << 32}, Epoch: 5}}}})
	case "report": // report NODE BUCKET EPOCH SEQ
		m := chain.Member{Node: w.num(f[1]), Inc: 1 << 32}
		r := chain.Report{Member: m, Epoch: w.num(f[3]), Last: chain.Point{Epoch: w.num(f[3]), Seq: w.num(f[4])}}
		w.inbox.Put(Report{Node: m.Node, Reports: []plan.BucketReport{{Bucket: uint32(w.num(f[2])), Report: r}}})
	case "leave":
		w.inbox.Put(Leave{Asker: "leaver" + f[1], Number: w.num(f[1])})
	case "register": // register ASKER NODE RAFT START
		w.inbox.Put(Register{Asker: f[1], Request: shared.Register{ID: id(w.num(f[2])), Raft: w.num(f[3]), Name: "x", Start: w.num(f[4])}})
	case "done": // done WHAT [ok|busy|removed|refused] [NUMBER]
		d := Done{What: What(slices.Index(whats, f[1]))}
		switch f[2] {
		case "ok":
			d.OK = true
			d.Result = shared.Result{Change: w.f.State.Change, Life: 1}
			if len(f) > 3 {
				d.Result.Number = w.num(f[3])
			}
		case "busy":
			d.Busy = true
		case "removed":
			d.OK, d.Result = true, shared.Result{Kind: "removed", Problem: shared.ErrRemoved.Error()}
		case "refused":
			d.OK, d.Result = true, shared.Result{Kind: "old_disk", Problem: "its disk is old"}
		}
		w.inbox.Put(d)
	case "step": // step NOW
		w.f.Now = int64(w.num(f[1])) * ms
		w.f.Leases = nil
		for _, n := range slices.Sorted(maps.Keys(w.leases)) {
			w.f.Leases = append(w.f.Leases, w.leases[n])
		}
		out := w.r.Step(w.f, w.inbox.Take())
		w.print(&out)
	case "end":
		for _, a := range w.r.End(w.inbox.Take()) {
			w.say("answer to %s: %+v", a.Asker, a.Answer)
		}
	default:
		w.t.Fatalf("unknown: %v", f)
	}
}

var whats = []string{"announce", "views", "foundation", "admission", "group", "outlived", "raise"}

func (w *world) say(format string, args ...any) { fmt.Fprintf(w.out, format+"\n", args...) }

func (w *world) print(out *Output) {
	w.say("step at %d:", w.f.Now/ms)
	if out.Barred {
		w.say("  bar %v", slices.Sorted(maps.Keys(out.Bar)))
	}
	if out.Listen {
		w.say("  listen")
	}
	for _, p := range out.Proposals {
		w.say("  propose %s %s in term %d, ended %v, limit %d", whats[p.What], p.Command, p.Only.Term, p.Only.Ended, p.Limit/ms)
	}
	for _, o := range out.Orders {
		w.say("  order to %d: seal %v, hand over %v", o.Node, o.Seal, o.HandOver)
	}
	if out.Group != nil {
		w.say("  %v %d", out.Group.Change, out.Group.Raft)
	}
	for _, a := range out.Admitted {
		w.say("  answer to %s: %+v", a.Asker, a.Answer)
	}
	for _, l := range out.Left {
		w.say("  answer to %s: %d others", l.Asker, l.Others)
	}
	for _, text := range out.Alerts {
		w.say("  alert: %s", text)
	}
	if out.Problem != "" {
		w.say("  problem: %s", out.Problem)
	}
	if out.Fail != nil {
		w.say("  fail: %v", out.Fail)
	}
	w.say("  next at %d", out.Next/ms)
}
