package plan

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/opencluster/oclocks/bucket/chain"
	"github.com/opencluster/oclocks/conf"
	"github.com/opencluster/oclocks/conf/shared"
)

const (
	ms        = 1_000_000
	simLease  = 800 * ms
	simBucket = 8
)

// sim is a naive model of nodes and their copies around the real planner, FSM and chain.Takeover. It knows nothing of the
// planner's reasons, only what a copy may do, and what must never happen.
type sim struct {
	r        *rand.Rand
	rule     chain.Acks
	now      int64
	fsm      *shared.FSM
	states   []*shared.State // by change ID
	nodes    []*simNode      // index is number - 1
	planner  *Planner
	term     uint64
	takeFrom int64
	table    map[uint64]int64 // leases that this leader has granted
	barred   []uint64

	proposals [][]byte // may be committed at any time, in any order, or never
	orders    []SealOrder
	handovers []HandOverOrder
	reports   []BucketReport

	answered [simBucket][]int  // what clients were told, in order
	recovery [simBucket]string // that was asked for last, and in which term
	serial   int
	wrong    []string
	quiet    int // turns since the last committed view
}

type entry struct {
	epoch uint64
	id    int
}

type simNode struct {
	number  uint64
	id      string
	up, cut bool // cut: nothing passes between it and the leader
	leaving bool
	applied int // change ID
	until   int64
	under   uint64
	started int64
	copies  [simBucket]simCopy
}

type simCopy struct {
	member  chain.Member
	sealed  uint64
	epoch   uint64 // of the newest view that was installed, over restarts
	led     uint64 // it has taken over in this epoch and led ever since
	floor   int
	log     []entry
	pending *chain.View
	hand    chain.Member // to whom it is to hand over
}

func newSim(seed uint64, nodes int, rule chain.Acks) *sim {
	s := &sim{r: rand.New(rand.NewPCG(seed, 1)), rule: rule, fsm: shared.New(), table: map[uint64]int64{}, now: 1000 * ms}
	s.states = []*shared.State{s.fsm.State()}
	keys, err := conf.NewZoneKeys()
	if err != nil {
		panic(err)
	}
	s.mustCommit(shared.Command{Found: &shared.Found{
		Cluster: "sim", Buckets: simBucket, Settings: map[string]string{"acks": rule.String(), "give_up": "1s"},
		Zones: []conf.Zone{{Name: "z"}}, Keys: map[string]conf.ZoneKeys{"z": keys},
	}})
	for i := range nodes {
		n := &simNode{number: uint64(i + 1), id: fmt.Sprintf("aaaaaaaaaaaaaaaaaaaaaaaaa%c", 'a'+i), up: true}
		s.nodes = append(s.nodes, n)
		s.register(n, true)
	}
	s.elect()
	return s
}

func (s *sim) fail(format string, args ...any) {
	s.wrong = append(s.wrong, fmt.Sprintf(format, args...))
}

func (s *sim) mustCommit(c shared.Command) shared.Result {
	res := s.commit(c.Encode())
	if res.Err() != nil {
		panic(res.Err())
	}
	return res
}

func (s *sim) state() *shared.State { return s.states[len(s.states)-1] }

func (s *sim) commit(command []byte) shared.Result {
	before := s.state()
	got, err := s.fsm.Apply(uint64(len(s.states)), command)
	if err != nil {
		panic(err)
	}
	res := got.(shared.Result)
	s.states = append(s.states, s.fsm.State())
	for _, b := range res.Taken {
		s.quiet = 0
		s.judge(b, &before.Views[b], &s.state().Views[b])
	}
	return res
}

// judge looks at a view that was just committed.
func (s *sim) judge(b uint32, old, v *chain.View) {
	head := s.nodes[v.Primary().Node-1].copies[b]
	if head.member != v.Primary() {
		s.fail("bucket %d: %v: the primary does not exist any more", b, v)
	}
	recovers := !old.Recovery || !old.Counts(v.Primary()) || s.rule == chain.Majority && v.InSync < old.InSync
	if v.Recovery && recovers {
		s.answered[b] = nil // told in the view
		for _, e := range head.log {
			s.answered[b] = append(s.answered[b], e.id)
		}
		return
	}
	s.covers(b, &head, v)
}

// judgeAsked looks at a recovery that the planner asks for, by what it was told then. It is looked at once for each leader: the view may be
// committed from then on, so that it is asked for until it is, though somebody of the old set has come back meanwhile.
func (s *sim) judgeAsked(in *Input, b uint32, v *chain.View) {
	old := &in.State.Views[b]
	this := fmt.Sprint(in.Term, v)
	if !v.Recovery || old.Recovery || s.recovery[b] == this {
		return
	}
	s.recovery[b] = this
	hope := 0
	for _, m := range old.Members() {
		lost := max(in.Nodes[m.Node-1].LeaseUntil, in.TakeFrom) + 1000*ms
		if s.nodes[m.Node-1].copies[b].member == m && in.Now < lost {
			hope++
		}
	}
	if hope >= seals(s.rule, old.InSync) {
		s.fail("bucket %d: %v after %v: it could have been a takeover", b, v, old)
	}
}

// covers says whether a primary's history begins with everything that was answered.
func (s *sim) covers(b uint32, c *simCopy, v *chain.View) {
	for i, id := range s.answered[b] {
		if i >= len(c.log) || c.log[i].id != id {
			s.fail("bucket %d: %v: answered change %d is lost", b, v, id)
			return
		}
	}
}

func (s *sim) register(n *simNode, fresh bool) {
	raft := n.number*1000 + 1
	res := s.mustCommit(shared.Command{Register: &shared.Register{ID: n.id, Raft: raft, Fresh: fresh && n.started > 0, Name: n.id}})
	n.started = s.now
	if fresh {
		for b := range n.copies {
			n.copies[b] = simCopy{member: chain.Member{Node: n.number, Inc: res.Life << 32}}
		}
	}
}

func (s *sim) elect() {
	s.term++
	s.planner = New(Config{Settle: 500 * ms, Move: 2000 * ms, Probe: 1000 * ms})
	if s.r.IntN(2) == 0 {
		s.planner = New(Config{Settle: 500 * ms, Move: 2000 * ms, Linger: 1, Grace: 1, Gather: 1}) // the waits are for convenience
	}
	s.table, s.barred, s.reports = map[uint64]int64{}, nil, nil
	s.takeFrom = s.now + simLease
	s.mustCommit(shared.Command{Lead: &shared.Lead{Term: s.term}})
}

// renew gives a node a lease for a request that it sent a while ago.
func (s *sim) renew(n *simNode) {
	if !n.up || n.cut || s.state().Node(n.number) == nil || slices.Contains(s.barred, n.number) {
		return
	}
	sent := max(n.started, s.now-int64(s.r.IntN(300))*ms)
	s.table[n.number] = max(s.table[n.number], s.now+simLease)
	if until := sent + simLease*3/4; until > n.until {
		n.until, n.under = until, s.state().Change
	}
}

// apply brings a node up to a change.
func (s *sim) apply(n *simNode, to int) {
	for n.up && n.applied < min(to, len(s.states)-1) {
		was := s.states[n.applied]
		n.applied++
		is := s.states[n.applied]
		for b := range is.Views {
			c := &n.copies[b]
			v, old := &is.Views[b], uint64(0)
			if len(was.Views) > 0 {
				old = was.Views[b].Epoch
			}
			if v.Epoch == old || v.Epoch < c.epoch {
				continue
			}
			if c.pending != nil && v.Epoch >= c.pending.Epoch {
				c.pending = nil
			}
			unknown := v.Epoch > c.epoch
			c.epoch = v.Epoch
			switch {
			case v.Primary() != c.member:
				c.led, c.hand = 0, chain.Member{}
			case c.led != 0 && c.sealed < old && v.Epoch == old+1:
			case unknown:
				c.led, c.floor = v.Epoch, len(c.log)
			}
		}
	}
}

func (s *sim) view(n *simNode, b int) *chain.View {
	if views := s.states[n.applied].Views; len(views) > 0 {
		return &views[b]
	}
	return &chain.View{}
}

// leads says whether the node's copy may act as the primary now.
func (s *sim) leads(n *simNode, b int) bool {
	c, v := &n.copies[b], s.view(n, b)
	return n.up && s.now < n.until && uint64(n.applied) >= n.under && v.Epoch > 0 && v.Epoch == c.epoch &&
		v.Primary() == c.member && c.sealed < v.Epoch && c.led != 0
}

// check looks for two primaries.
func (s *sim) check() {
	for b := range simBucket {
		var who []uint64
		for _, n := range s.nodes {
			if s.leads(n, b) {
				who = append(who, n.number)
				if v := s.view(n, b); v.InSync == 1 {
					s.covers(uint32(b), &n.copies[b], v) // it can answer alone
				}
			}
		}
		if len(who) > 1 {
			s.fail("bucket %d has the primaries %v", b, who)
		}
	}
}

// copyTo gives a member everything that the primary has, if they are under the same view.
func (s *sim) copyTo(from *simNode, b int, m chain.Member) bool {
	n := s.nodes[m.Node-1]
	if n == from {
		return true
	}
	c, v := &n.copies[b], s.view(from, b)
	if !n.up || n.cut || from.cut || c.member != m || c.sealed >= v.Epoch || s.view(n, b).Epoch != v.Epoch || c.epoch != v.Epoch {
		return false
	}
	c.log = slices.Clone(from.copies[b].log)
	return true
}

// write tries one request at a node.
func (s *sim) write(n *simNode, b int) {
	if !s.leads(n, b) {
		return
	}
	c, v := &n.copies[b], s.view(n, b)
	s.serial++
	c.log = append(c.log, entry{v.Epoch, s.serial})
	sets := [][]chain.Member{v.Members()}
	if c.pending != nil {
		sets = append(sets, c.pending.Members())
	}
	for _, set := range sets {
		have := 0
		for _, m := range set {
			if s.r.IntN(8) > 0 && s.copyTo(n, b, m) || m == c.member {
				have++
			}
		}
		if have < len(set) && (s.rule != chain.Majority || have < len(set)/2+1) {
			return
		}
	}
	s.answered[b] = s.answered[b][:0]
	for _, e := range c.log {
		s.answered[b] = append(s.answered[b], e.id)
	}
}

// replan lets a primary ask for a view with who is there.
func (s *sim) replan(n *simNode, b int) {
	c, v := &n.copies[b], s.view(n, b)
	if n.up && s.now < n.until && uint64(n.applied) >= n.under && v.Epoch == c.epoch && v.Primary() == c.member && c.led == 0 &&
		c.sealed < v.Epoch && v.Epoch > 0 {
		next := v.Clone()
		next.Epoch++
		s.ask(b, next)
		return
	}
	if !s.leads(n, b) {
		return
	}
	if c.pending != nil {
		s.ask(b, *c.pending)
		return
	}
	if c.hand != (chain.Member{}) {
		s.yield(n, b)
		if c.hand != (chain.Member{}) && (c.pending != nil || c.sealed >= v.Epoch) {
			return
		}
	}
	next := chain.View{Epoch: v.Epoch + 1, Chain: []chain.Member{c.member}, Recovery: v.Recovery && s.r.IntN(2) > 0}
	var later []chain.Member
	for _, o := range s.nodes {
		m := o.copies[b].member
		switch {
		case o == n || !o.up || o.cut:
		case s.copyTo(n, b, m) && (s.rule != chain.First || len(next.Chain) < 2):
			next.Chain = append(next.Chain, m)
		default:
			later = append(later, m)
		}
	}
	next.InSync = len(next.Chain)
	for _, m := range later {
		if !slices.ContainsFunc(next.Chain, func(o chain.Member) bool { return o.Node == m.Node }) {
			next.Chain = append(next.Chain, m)
		}
	}
	same := next.InSync == v.InSync && next.Recovery == v.Recovery && slices.Equal(next.Chain, v.Chain)
	if same {
		return
	}
	c.pending = &next
	s.ask(b, next)
}

func (s *sim) ask(b int, v chain.View) {
	c := shared.Command{Views: &shared.ViewChange{Views: []shared.BucketView{{Bucket: uint32(b), View: v}}}}
	s.proposals = append(s.proposals, c.Encode())
}

// step lets the leader plan.
func (s *sim) step() Output {
	in := Input{Now: s.now, Leading: true, Term: s.term, TakeFrom: s.takeFrom, State: s.state(), Reports: s.reports}
	s.reports = nil
	for _, n := range s.nodes {
		in.Nodes = append(in.Nodes, Evidence{
			Number: n.number, LeaseUntil: s.table[n.number], Connected: n.up && !n.cut, Leaving: n.leaving,
			Barred: slices.Contains(s.barred, n.number),
		})
	}
	if s.r.IntN(4) == 0 {
		s.renew(s.nodes[s.r.IntN(len(s.nodes))]) // a lease that the planner does not know of yet
	}
	out := s.planner.Step(in)
	s.barred = out.Bar
	for _, o := range out.Views {
		s.judgeAsked(&in, o.Bucket, &o.View)
	}
	if len(out.Views) > 0 {
		s.proposals = append(s.proposals, shared.Command{Views: &shared.ViewChange{Term: out.Term, Views: out.Views}}.Encode())
	}
	s.orders = append(s.orders, out.Seal...)
	s.handovers = append(s.handovers, out.HandOver...)
	return out
}

// obey carries out one order, if the node can be reached.
func (s *sim) obey(o SealOrder) {
	n := s.nodes[o.Node-1]
	if !n.up || n.cut {
		return
	}
	c := &n.copies[o.Bucket]
	c.sealed = max(c.sealed, o.Epoch)
	s.report(c, o.Bucket)
}

func (s *sim) report(c *simCopy, b uint32) {
	r := chain.Report{Member: c.member, Epoch: c.sealed}
	if k := len(c.log); k > 0 {
		r.Last = chain.Point{Epoch: c.log[k-1].epoch, Seq: uint64(k)}
	}
	s.reports = append(s.reports, BucketReport{b, r})
}

// handOver notes whom a primary is to hand over to.
func (s *sim) handOver(o HandOverOrder) {
	n := s.nodes[o.Node-1]
	b := int(o.Bucket)
	if v := s.view(n, b); !n.cut && s.leads(n, b) && v.Epoch == o.Epoch && v.Place(o.To) > 0 {
		n.copies[b].hand = o.To
	}
}

// yield takes a step of a hand-over.
func (s *sim) yield(n *simNode, b int) {
	c, v := &n.copies[b], s.view(n, b)
	next := v.Clone()
	next.Epoch++
	others := slices.DeleteFunc(slices.Clone(v.Chain), func(m chain.Member) bool { return m == c.hand || m == c.member })
	switch {
	case v.Place(c.hand) < 1 || !s.copyTo(n, b, c.hand):
		c.hand = chain.Member{}
		return
	case v.Counts(c.hand):
		next.Chain = append([]chain.Member{c.hand, c.member}, slices.DeleteFunc(slices.Clone(v.Chain), func(m chain.Member) bool {
			return m == c.hand || m == c.member
		})...)
		next.InSync = v.InSync
		c.sealed = v.Epoch
		s.report(c, uint32(b))
	case s.rule == chain.First: // first of all it has to become one who may take over
		next.Chain = append([]chain.Member{c.member, c.hand}, others...)
		next.InSync = 2
		c.pending = &next
	default:
		return
	}
	s.ask(b, next)
}

// round lets everything happen that can, for a time.
func (s *sim) round(step int64) {
	s.now += step
	for _, n := range s.nodes {
		s.renew(n)
		if n.up && !n.cut {
			s.apply(n, len(s.states))
		}
	}
	s.step()
	for _, o := range s.orders {
		s.obey(o)
	}
	s.orders = nil
	for range 2 {
		s.step()
		for _, p := range s.proposals {
			s.commit(p)
		}
		s.proposals = nil
		for _, n := range s.nodes {
			if n.up && !n.cut {
				s.apply(n, len(s.states))
			}
		}
	}
	for _, o := range s.handovers {
		s.handOver(o)
	}
	s.handovers = nil
	for _, n := range s.nodes {
		for b := range simBucket {
			s.write(n, b)
			s.replan(n, b)
		}
	}
	s.check()
	s.quiet++
}
