package chain

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// The files in testdata are scripts that drive a cluster of pure copies; what they print is the expectation (-rewrite). A
// script begins with "new"; messages move and time passes only when it says so. After each command nothing that must never
// happen may have happened.
func TestScripts(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.txt") // rapid puts what failed beside them
	if err != nil || len(paths) == 0 {
		t.Fatalf("%d scripts: %v", len(paths), err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) { runScript(t, path) })
	}
}

func runScript(t *testing.T, path string) {
	var s *script
	datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
		if d.Cmd == "new" {
			s = newScript(t, d)
			return s.flush()
		}
		run, ok := commands[d.Cmd]
		if !ok {
			d.Fatalf(t, "unknown command")
		}
		s.d = d
		if err := run(s, d); err != nil {
			s.trace("error: %v", err)
		}
		for _, w := range s.check.wrong {
			s.trace("WRONG: %s", w)
		}
		s.check.wrong = nil
		return s.flush()
	})
}

type script struct {
	*cluster
	d   *datadriven.TestData
	out strings.Builder
}

// newScript: new nodes=3 chain=(1,2) insync=2 acks=first
func newScript(t *testing.T, d *datadriven.TestData) *script {
	nodes, insync, acks := 3, 0, "first"
	var chain []uint64
	d.MaybeScanArgs(t, "nodes", &nodes)
	d.MaybeScanArgs(t, "acks", &acks)
	d.ScanArgs(t, "chain", &chain)
	rule := Acks(slices.Index(ackNames[:], acks))
	lim := small
	lim.Lag = 8
	s := &script{cluster: newCluster(Config{Bucket: 7, Acks: rule, Limits: lim, Recovery: 2 * second}, nodes)}
	s.trace = func(format string, args ...any) { fmt.Fprintf(&s.out, format+"\n", args...) }
	v := View{Epoch: 1, InSync: len(chain)}
	if rule == First {
		v.InSync = min(2, len(chain))
	}
	if d.MaybeScanArgs(t, "insync", &insync) {
		v.InSync = insync
	}
	for _, id := range chain {
		v.Chain = append(v.Chain, Member{Node: id, Inc: 1})
	}
	s.plane.commit(v)
	for _, nd := range s.nodes {
		s.grant(nd)
		s.apply(nd)
	}
	s.trace("%v", v)
	return s
}

func (s *script) flush() string {
	text := s.out.String()
	s.out.Reset()
	if text == "" {
		return "ok"
	}
	return text
}

// args gives the arguments without a name as node numbers; none means all that are up.
func (s *script) args() []*node {
	var list []*node
	for _, a := range s.d.CmdArgs {
		if id, err := strconv.Atoi(a.Key); err == nil && len(a.Vals) == 0 {
			list = append(list, s.node(uint64(id)))
		}
	}
	if list == nil {
		for _, nd := range s.nodes {
			if nd.r != nil {
				list = append(list, nd)
			}
		}
	}
	return list
}

// number is the argument name=value, or other.
func (s *script) number(name string, other int64) int64 {
	for _, a := range s.d.CmdArgs {
		if a.Key == name && len(a.Vals) == 1 {
			n, err := strconv.ParseInt(a.Vals[0], 10, 64)
			if err == nil {
				return n
			}
		}
	}
	return other
}

// match says whether a packet is what from=, to= and kind= mean.
func (s *script) match(p packet) bool {
	m, err := Decode(p.raw)
	if err != nil || s.number("from", int64(p.from)) != int64(p.from) || s.number("to", int64(p.to)) != int64(p.to) {
		return false
	}
	for _, a := range s.d.CmdArgs {
		if a.Key == "kind" && a.Vals[0] != m.Kind.String() {
			return false
		}
	}
	return true
}

// each calls f with the place of each packet on its way that matches, the last one first if backwards is an argument.
func (s *script) each(f func(i int)) error {
	var hits []packet
	for _, p := range s.flying {
		if s.match(p) {
			hits = append(hits, p)
		}
	}
	if len(hits) == 0 {
		return fmt.Errorf("no such message")
	}
	if s.d.HasArg("backwards") {
		slices.Reverse(hits)
	}
	for _, p := range hits {
		f(slices.IndexFunc(s.flying, func(q packet) bool { return &q.raw[0] == &p.raw[0] }))
	}
	return nil
}

var commands = map[string]func(*script, *datadriven.TestData) error{
	// propose 1 text=a [n=3]
	"propose": func(s *script, d *datadriven.TestData) error {
		text := "x"
		if d.HasArg("text") {
			for _, a := range d.CmdArgs {
				if a.Key == "text" {
					text = a.Vals[0]
				}
			}
		}
		nd := s.args()[0]
		for i := range s.number("n", 1) {
			if err := s.propose(nd, fmt.Sprintf("%s%d", text, i)); err != nil {
				return fmt.Errorf("after %d: %w", i, err)
			}
		}
		return nil
	},
	"ready": func(s *script, _ *datadriven.TestData) error {
		for _, nd := range s.args() {
			s.round(nd)
		}
		return nil
	},
	"deliver": func(s *script, _ *datadriven.TestData) error { return s.each(s.deliver) },
	"drop": func(s *script, _ *datadriven.TestData) error {
		return s.each(func(i int) { s.flying = slices.Delete(s.flying, i, i+1) })
	},
	"double": func(s *script, _ *datadriven.TestData) error {
		return s.each(func(i int) {
			p := s.flying[i]
			p.raw = slices.Clone(p.raw)
			s.flying = append(s.flying, p)
		})
	},
	// stabilize [1 2]: until nothing moves any more among these nodes; what goes to others is lost
	"stabilize": func(s *script, _ *datadriven.TestData) error {
		nodes := s.args()
		for range 100 {
			for _, nd := range nodes {
				s.round(nd)
			}
			if len(s.flying) == 0 {
				return nil
			}
			for range len(s.flying) {
				if !slices.Contains(nodes, s.node(s.flying[0].to)) {
					s.flying = s.flying[1:]
					continue
				}
				s.deliver(0)
			}
		}
		return fmt.Errorf("it never comes to rest")
	},
	// tick ms=60 [1 2]
	"tick": func(s *script, _ *datadriven.TestData) error {
		s.now += s.number("ms", 60) * 1e6
		for _, nd := range s.args() {
			nd.r.Tick(s.now)
		}
		return nil
	},
	// run ms=1000 [1 2]: lets all of it work by itself, the control plane too, with these nodes connected; messages are not
	// shown
	"run": func(s *script, _ *datadriven.TestData) error {
		c := &chaos{cluster: s.cluster, cut: map[uint64]bool{}}
		for _, nd := range s.nodes {
			c.cut[nd.id] = !slices.Contains(s.args(), nd)
		}
		s.quiet = true
		for until := s.now + s.number("ms", 1000)*1e6; s.now < until; {
			s.now += 25e6
			c.keep()
		}
		s.quiet = false
		return nil
	},
	"grant": func(s *script, _ *datadriven.TestData) error {
		for _, nd := range s.args() {
			s.grant(nd)
		}
		return nil
	},
	// believe 1: its clock stands still, and so it believes in a lease that has ended
	"believe": func(s *script, _ *datadriven.TestData) error {
		s.check.clocks = true
		for _, nd := range s.args() {
			nd.r.Grant(Lease{Until: s.now + second})
		}
		return nil
	},
	"install": func(s *script, _ *datadriven.TestData) error {
		for _, nd := range s.args() {
			for nd.views < len(s.plane.views) {
				s.apply(nd)
			}
		}
		return nil
	},
	"commit": func(s *script, _ *datadriven.TestData) error {
		for _, v := range s.plane.proposals {
			s.trace("%v committed=%v", v, s.plane.commit(v))
		}
		s.plane.proposals = nil
		return nil
	},
	// lapse [2]: the leases end, also of nodes that are down
	"lapse": func(s *script, d *datadriven.TestData) error {
		nodes := s.nodes
		if len(d.CmdArgs) > 0 {
			nodes = s.args()
		}
		for _, nd := range nodes {
			s.plane.leases[nd.id] = 0
			if nd.r != nil {
				nd.r.Grant(Lease{})
			}
		}
		return nil
	},
	"seal": func(s *script, _ *datadriven.TestData) error {
		for _, nd := range s.args() {
			nd.r.Seal(s.plane.view().Epoch)
			s.ready(nd, false)
		}
		return nil
	},
	"takeover": func(s *script, _ *datadriven.TestData) error {
		s.plane.not = Member{Node: uint64(s.number("not", 0)), Inc: 1}
		err := s.takeOver()
		s.trace("%v", s.plane.view())
		return err
	},
	"recover": func(s *script, _ *datadriven.TestData) error {
		err := s.recover()
		s.trace("%v", s.plane.view())
		return err
	},
	"crash": func(s *script, _ *datadriven.TestData) error {
		for _, nd := range s.args() {
			s.crash(nd)
		}
		return nil
	},
	"restart": func(s *script, _ *datadriven.TestData) error {
		for _, nd := range s.args() {
			s.restart(nd)
		}
		return nil
	},
	// lose 2 [old]: begins again without its journal, or with an old one
	"lose": func(s *script, d *datadriven.TestData) error {
		for _, nd := range s.args() {
			s.lose(nd, d.HasArg("old"))
			s.trace("%v", nd.r.Self())
		}
		return nil
	},
	"handover": func(s *script, _ *datadriven.TestData) error {
		nd := s.args()[0]
		return nd.r.HandOver(Member{Node: uint64(s.number("to", 0)), Inc: uint64(s.number("inc", 1))})
	},
	"score": func(s *script, _ *datadriven.TestData) error {
		s.args()[0].r.Score(uint64(s.number("of", 0)), s.number("is", 0))
		return nil
	},
	"away": func(s *script, _ *datadriven.TestData) error {
		s.args()[0].r.Away(uint64(s.number("node", 0)), true)
		return nil
	},
	"back": func(s *script, _ *datadriven.TestData) error {
		s.args()[0].r.Away(uint64(s.number("node", 0)), false)
		return nil
	},
	"join":  func(s *script, _ *datadriven.TestData) error { s.args()[0].r.Join(); return nil },
	"leave": func(s *script, _ *datadriven.TestData) error { return s.args()[0].r.Leave() },
	// damage from=1 to=2 times=1: a bit of the first change flips before the message is encoded
	"damage": func(s *script, _ *datadriven.TestData) error {
		from, to, times := s.number("from", 0), s.number("to", 0), s.number("times", 1)
		s.cluster.damage = func(m *Message) {
			if int64(m.From.Node) != from || int64(m.To.Node) != to || len(m.Changes) == 0 || times == 0 {
				return
			}
			times--
			c := &m.Changes[0]
			c.Data = slices.Clone(c.Data)
			c.Data[0] ^= 1
			s.trace("damaged:")
		}
		return nil
	},
	// rot 1 seq=2: a bit flips in a copy's memory
	"rot": func(s *script, _ *datadriven.TestData) error {
		l := &s.args()[0].r.log
		c := &l.changes[s.number("seq", 0)-int64(l.base.Seq)-1]
		c.Data = slices.Clone(c.Data)
		c.Data[0] ^= 1
		return nil
	},
	"status": func(s *script, _ *datadriven.TestData) error {
		for _, nd := range s.args() {
			s.trace("%s", nd.r.Describe())
		}
		s.trace("answered %d", len(s.check.answered))
		return nil
	},
	"tables": func(s *script, _ *datadriven.TestData) error {
		for _, nd := range s.args() {
			s.trace("%d: %s", nd.id, strings.Join(nd.table, " "))
		}
		return nil
	},
}

// round carries out what a node wants, and answers its question for a snapshot.
func (s *script) round(nd *node) {
	out := s.ready(nd, false)
	if out.Recovering > 0 {
		s.trace("%v recovering for %d ms", nd.r.Self(), (out.Recovering-s.now)/1e6)
	}
	if nd.need {
		if err := s.snapshot(nd); err != nil {
			s.trace("error: %v", err)
		}
	}
}
