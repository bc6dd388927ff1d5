package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/opencluster/oclocks/bucket/chain"
	"github.com/opencluster/oclocks/conf"
	"github.com/opencluster/oclocks/conf/shared"
)

// The files in testdata/golden are scripts: what the leader knows is set line by line, "step" prints what the planner wants. Times
// are milliseconds; member 2 is node 2's first copy, 2/3 that of its third life, 2/3+1 the one after that was thrown away.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata/golden", func(t *testing.T, path string) {
		s := &script{p: New(Config{}), in: Input{Leading: true, Term: 1, State: &shared.State{Term: 1, Settings: shared.DefaultSettings()}}}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			s.t, s.d = t, d
			if d.Cmd != "do" {
				d.Fatalf(t, "unknown command")
			}
			var out strings.Builder
			for line := range strings.Lines(d.Input) {
				if line = strings.TrimSpace(line); line != "" {
					s.run(&out, strings.Fields(line))
				}
			}
			return out.String()
		})
	})
}

type script struct {
	t    *testing.T
	d    *datadriven.TestData
	p    *Planner
	in   Input
	mute bool // probes are not answered
}

func (s *script) num(text string) int64 {
	var n int64
	if _, err := fmt.Sscan(text, &n); err != nil {
		s.d.Fatalf(s.t, "%q is not a number", text)
	}
	return n
}

// member reads 2, 2/3 or 2/3+1.
func (s *script) member(text string) chain.Member {
	text, low, _ := strings.Cut(text, "+")
	node, life, ok := strings.Cut(text, "/")
	m := chain.Member{Node: uint64(s.num(node)), Inc: 1 << 32}
	if ok {
		m.Inc = uint64(s.num(life)) << 32
	}
	if low != "" {
		m.Inc += uint64(s.num(low))
	}
	return m
}

func (s *script) run(out *strings.Builder, f []string) {
	st := *s.in.State
	st.Change++
	s.in.State = &st
	switch f[0] {
	case "acks":
		st.Settings.Acks = chain.Acks(slices.Index([]string{"first", "majority", "all"}, f[1]))
	case "set":
		if err := st.Settings.Set(f[1], f[2]); err != nil {
			s.d.Fatalf(s.t, "%v", err)
		}
	case "node": // node 1 [life=2] [prio=15] [drain] [arbiter] [raft=7]
		s.node(&st, f)
	case "remove":
		st.Nodes = slices.DeleteFunc(slices.Clone(st.Nodes), func(n shared.Node) bool { return n.Number == uint64(s.num(f[1])) })
	case "buckets":
		st.Views = make([]chain.View, s.num(f[1]))
	case "view": // view 0 e3 insync=2 1 2 3 [recovery]
		s.view(&st, f)
	case "pin":
		st.Pins = map[uint32]uint64{uint32(s.num(f[1])): uint64(s.num(f[2]))}
	case "seen": // seen 1 until=800 [cut] [leaving] [barred]
		s.seen(f)
	case "report": // report 0 member sealed=3 last=2@7 [failed]
		s.report(f)
	case "group": // group leader=1 voters=1,2 learners=3
		s.group(f)
	case "now":
		s.in.Now = s.num(f[1]) * ms
	case "term":
		s.in.Term, s.in.TakeFrom = uint64(s.num(f[1])), s.num(f[2])*ms
	case "mute": // probes are not answered from here on
		s.mute = true
	case "step":
		s.in.State.Change--
		s.step(out)
	default:
		s.d.Fatalf(s.t, "unknown: %v", f)
	}
}

// options splits key=value and words.
func options(f []string) map[string]string {
	m := map[string]string{}
	for _, o := range f {
		key, value, _ := strings.Cut(o, "=")
		m[key] = value
	}
	return m
}

func (s *script) node(st *shared.State, f []string) {
	n := shared.Node{Number: uint64(s.num(f[1])), Life: 1, Priority: shared.DefaultPriority}
	n.Raft = n.Number
	o := options(f[2:])
	if v, ok := o["life"]; ok {
		n.Life = uint64(s.num(v))
	}
	if v, ok := o["prio"]; ok {
		n.Priority = int(s.num(v))
	}
	if v, ok := o["raft"]; ok {
		n.Raft = uint64(s.num(v))
	}
	n.Location = o["at"]
	_, n.Drain = o["drain"]
	_, n.Arbiter = o["arbiter"]
	st.Nodes = slices.DeleteFunc(slices.Clone(st.Nodes), func(x shared.Node) bool { return x.Number == n.Number })
	st.Nodes = append(st.Nodes, n)
	slices.SortFunc(st.Nodes, func(a, b shared.Node) int { return int(a.Number) - int(b.Number) })
	st.Last = max(st.Last, n.Number)
}

func (s *script) view(st *shared.State, f []string) {
	v := chain.View{Epoch: uint64(s.num(f[2][1:])), InSync: 1}
	for _, o := range f[3:] {
		if n, ok := strings.CutPrefix(o, "insync="); ok {
			v.InSync = int(s.num(n))
		} else if o == "recovery" {
			v.Recovery = true
		} else {
			v.Chain = append(v.Chain, s.member(o))
		}
	}
	st.Views = slices.Clone(st.Views)
	if b := f[1]; b != "all" {
		st.Views[s.num(b)] = v
		return
	}
	for b := range st.Views {
		st.Views[b] = v
	}
}

func (s *script) seen(f []string) {
	o := options(f[2:])
	_, cut := o["cut"]
	_, leaving := o["leaving"]
	_, barred := o["barred"]
	e := Evidence{Number: uint64(s.num(f[1])), Connected: !cut, Leaving: leaving, Barred: barred}
	if v, ok := o["until"]; ok {
		e.LeaseUntil = s.num(v) * ms
	}
	s.in.Nodes = slices.DeleteFunc(s.in.Nodes, func(x Evidence) bool { return x.Number == e.Number })
	s.in.Nodes = append(s.in.Nodes, e)
}

func (s *script) report(f []string) {
	o := options(f[3:])
	r := chain.Report{Member: s.member(f[2]), Epoch: uint64(s.num(o["sealed"]))}
	if seq, epoch, ok := strings.Cut(o["last"], "@"); ok {
		r.Last = chain.Point{Seq: uint64(s.num(seq)), Epoch: uint64(s.num(epoch))}
	}
	_, r.Failed = o["failed"]
	s.in.Reports = append(s.in.Reports, BucketReport{uint32(s.num(f[1])), r})
}

func (s *script) group(f []string) {
	o := options(f[1:])
	list := func(text string) (ids []uint64) {
		for _, id := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' }) {
			ids = append(ids, uint64(s.num(id)))
		}
		return ids
	}
	g := Group{Leader: uint64(s.num(o["leader"])), Voters: list(o["voters"]), Learners: list(o["learners"]), Last: 1000}
	behind, silent := list(o["behind"]), list(o["silent"])
	for _, id := range slices.Concat(g.Voters, g.Learners) {
		m := Match{Raft: id, Index: 1000, Heard: !slices.Contains(silent, id)}
		if slices.Contains(behind, id) {
			m.Index = 1
		}
		g.Match = append(g.Match, m)
	}
	s.in.Group = g
}

func short(v chain.View) string {
	text := v.String()
	for life := range uint64(5) {
		for low := range uint64(2) {
			old, name := fmt.Sprintf(".%d", life<<32+low), ""
			if life > 1 || low > 0 {
				name = fmt.Sprintf("/%d", life)
			}
			if low > 0 {
				name += fmt.Sprintf("+%d", low)
			}
			text = strings.NewReplacer(old+" ", name+" ", old+"]", name+"]").Replace(text)
			text = strings.TrimSuffix(text, old) + strings.Repeat(name, b2i(strings.HasSuffix(text, old)))
		}
	}
	return text
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (s *script) step(out *strings.Builder) {
	o := s.p.Step(s.in)
	s.in.Reports = nil
	fmt.Fprintf(out, "%d:", s.in.Now/ms)
	if len(o.Bar) > 0 {
		fmt.Fprintf(out, " bar %v", o.Bar)
	}
	for _, v := range o.Views {
		fmt.Fprintf(out, "\n  view %d %s (term %d)", v.Bucket, short(v.View), o.Term)
	}
	probes := 0
	for _, x := range o.Seal {
		if x.Epoch == 0 {
			probes++
			for _, m := range s.in.State.Views[x.Bucket].Chain {
				if m.Node == x.Node && !s.mute {
					s.in.Reports = append(s.in.Reports, BucketReport{x.Bucket, chain.Report{Member: m}})
				}
			}
			continue
		}
		fmt.Fprintf(out, "\n  seal bucket %d e%d at %d", x.Bucket, x.Epoch, x.Node)
	}
	if probes > 0 {
		fmt.Fprintf(out, "\n  %d probes", probes)
	}
	for _, x := range o.HandOver {
		fmt.Fprintf(out, "\n  hand over bucket %d e%d from %d to %d", x.Bucket, x.Epoch, x.Node, x.To.Node)
	}
	for _, x := range o.Members {
		fmt.Fprintf(out, "\n  %v %d", x.Change, x.Raft)
	}
	if o.Next == Never {
		fmt.Fprintln(out, "\n  never again")
		return
	}
	fmt.Fprintf(out, "\n  next in %d\n", (o.Next-s.in.Now)/ms)
}

func TestSealsIsWhatATakeoverNeeds(t *testing.T) {
	for _, rule := range []chain.Acks{chain.First, chain.Majority, chain.All} {
		for n := 1; n <= 9; n++ {
			v := chain.View{Epoch: 1, InSync: n}
			var reports []chain.Report
			for i := range n {
				m := chain.Member{Node: uint64(i + 1), Inc: 1 << 32}
				v.Chain = append(v.Chain, m)
			}
			for need := 0; ; need++ {
				if _, err := chain.Takeover(v, rule, reports); err == nil {
					if need != seals(rule, n) {
						t.Errorf("%v of %d: %d, a takeover needs %d", rule, n, seals(rule, n), need)
					}
					break
				}
				reports = append(reports, chain.Report{Member: v.Chain[need], Epoch: 1})
			}
		}
	}
}

func TestScore(t *testing.T) {
	st := &shared.State{Settings: shared.DefaultSettings(), Views: make([]chain.View, 64)}
	for i, at := range []string{"eu/fra/r1", "eu/fra/r1", "eu/fra/r2", "us/nyc/r1", "us/nyc/r2"} {
		st.Nodes = append(st.Nodes, shared.Node{Number: uint64(i + 1), Life: 1, Priority: 5, Location: at})
	}
	st.Nodes[4].Drain = true
	st.Last = 5
	st.Settings.Copies = 3
	spread := map[uint64]int{}
	for b := range uint32(64) {
		st.Views[b] = chain.View{Epoch: 1, InSync: 1, Chain: []chain.Member{st.Nodes[0].Member()}}
		scores := map[int64]uint64{}
		for n := uint64(1); n <= 5; n++ {
			scores[Score(st, b, n)] = n
		}
		if len(scores) != 5 {
			t.Fatalf("bucket %d: equal scores", b)
		}
		if Score(st, b, 4) <= Score(st, b, 3) || Score(st, b, 3) <= Score(st, b, 2) || Score(st, b, 2) <= Score(st, b, 5) {
			t.Errorf("bucket %d: the farther one must be better, the draining one last", b)
		}
		kept := 0
		for n := uint64(1); n <= 5; n++ {
			if Keeps(st, b, n) {
				kept++
			}
		}
		if kept != 3 || !Keeps(st, b, 1) || !Keeps(st, b, 4) {
			t.Errorf("bucket %d: %d copies", b, kept)
		}
		if Score(st, b, 1) > Score(st, b, 2) {
			spread[1]++
		} else {
			spread[2]++
		}
	}
	if !Keeps(st, 64, 5) || Keeps(st, 64, 6) || Keeps(st, 0, 6) {
		t.Error("of a bucket that is not there yet all nodes keep a copy, and who is no node keeps none")
	}
	if spread[1] < 16 || spread[2] < 16 {
		t.Errorf("equal nodes are not preferred equally often: %v", spread)
	}
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"eu/fra/r1", "eu/fra/r1", 0}, {"eu/fra/r1", "eu/fra/r2", 1}, {"eu/fra/r1", "us", 3}, {"eu", "", 1}, {"/eu/", "eu", 0}} {
		if got := Distance(c.a, c.b); got != c.want || Distance(c.b, c.a) != c.want {
			t.Errorf("%q and %q: %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

// BenchmarkStep is a Step of a quiet cluster, and one in which a third of 1,024 buckets are taken over.
func BenchmarkStep(b *testing.B) {
	st := &shared.State{Settings: shared.DefaultSettings(), Views: make([]chain.View, 1024), Zones: []conf.Zone{}}
	in := Input{Now: 1000 * ms, Leading: true, Term: 1, State: st}
	for n := uint64(1); n <= 3; n++ {
		st.Nodes = append(st.Nodes, shared.Node{Number: n, Raft: n, Life: 1, Priority: 5})
		in.Nodes = append(in.Nodes, Evidence{Number: n, LeaseUntil: 1 << 60, Connected: true})
	}
	st.Last = 3
	for i := range st.Views {
		st.Views[i] = chain.View{Epoch: 1, InSync: 2}
		for k := range 3 {
			st.Views[i].Chain = append(st.Views[i].Chain, st.Nodes[(i+k)%3].Member())
		}
	}
	b.Run("quiet", func(b *testing.B) {
		p := New(Config{})
		for b.Loop() {
			in.Now += ms
			p.Step(in)
		}
	})
	b.Run("takeover", func(b *testing.B) {
		for b.Loop() {
			p := New(Config{})
			lost := in
			lost.Nodes = slices.Clone(in.Nodes)
			lost.Nodes[0].LeaseUntil, lost.Nodes[0].Barred = 0, true
			lost.Nodes[0].Connected = false
			out := p.Step(lost)
			for _, o := range out.Seal {
				if o.Epoch > 0 {
					lost.Reports = append(lost.Reports, BucketReport{o.Bucket, chain.Report{Member: st.Node(o.Node).Member(), Epoch: 1}})
				}
			}
			if out = p.Step(lost); len(out.Views) != 342 {
				b.Fatal(len(out.Views))
			}
		}
	})
}
