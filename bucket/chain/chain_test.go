package chain

import (
	"errors"
	"fmt"
	"slices"
	"testing"
)

var one, two, three = Member{1, 1}, Member{2, 1}, Member{3, 1}

func TestViewsThatCannotBe(t *testing.T) {
	for name, v := range map[string]View{
		"epoch 0":      {Chain: []Member{one}, InSync: 1},
		"nobody":       {Epoch: 1},
		"none count":   {Epoch: 1, Chain: []Member{one}},
		"too many":     {Epoch: 1, Chain: []Member{one}, InSync: 2},
		"node 0":       {Epoch: 1, Chain: []Member{{}}, InSync: 1},
		"a node twice": {Epoch: 1, Chain: []Member{one, {1, 2}}, InSync: 1},
		"too long":     {Epoch: 1, Chain: make([]Member, MaxChain+1), InSync: 1},
	} {
		if err := v.Validate(); !errors.Is(err, ErrView) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestConfigsThatCannotBe(t *testing.T) {
	for name, c := range map[string]Config{
		"no node":          {},
		"unknown rule":     {Self: one, Acks: 3},
		"negative":         {Self: one, Limits: Limits{Window: -1}},
		"too long":         {Self: one, Limits: Limits{Change: maxData + 1}},
		"drop too soon":    {Self: one, Limits: Limits{Resend: 5, Drop: 4}},
		"negative waiting": {Self: one, Recovery: -1},
	} {
		if _, err := New(c, Start{}); !errors.Is(err, ErrConfig) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := New(Config{Self: one}, Start{State: State{Self: two}}); !errors.Is(err, ErrConfig) {
		t.Errorf("the state of another node: %v", err)
	}
}

// How many have to be sealed is what is left over by an answer, and one: the two sets always meet.
func TestAnswersAndSealsMeet(t *testing.T) {
	for _, a := range []Acks{First, Majority, All} {
		for n := 1; n < 9; n++ {
			if a.need(n)+a.seals(n) != n+1 {
				t.Errorf("%v of %d: %d and %d", a, n, a.need(n), a.seals(n))
			}
		}
	}
	for _, c := range []struct {
		acks           Acks
		n, need, seals int
	}{{First, 2, 2, 1}, {All, 3, 3, 1}, {Majority, 3, 2, 2}, {Majority, 4, 3, 2}, {Majority, 5, 3, 3}} {
		if c.acks.need(c.n) != c.need || c.acks.seals(c.n) != c.seals {
			t.Errorf("%v of %d: %d, %d", c.acks, c.n, c.acks.need(c.n), c.acks.seals(c.n))
		}
	}
}

func TestTakeover(t *testing.T) {
	report := func(m Member, epoch, seq uint64) Report {
		return Report{Member: m, Epoch: 5, Last: Point{Epoch: epoch, Seq: seq}}
	}
	failed := func(r Report) Report { r.Failed = true; return r }
	stale := func(r Report) Report { r.Epoch = 4; return r }
	old := View{Epoch: 5, Chain: []Member{one, two, three}, InSync: 3}
	first := View{Epoch: 5, Chain: []Member{one, two, three}, InSync: 2}
	recovering := first
	recovering.Recovery = true
	for _, c := range []struct {
		name    string
		old     View
		acks    Acks
		reports []Report
		want    string
		err     error
	}{
		{"first: the first secondary", first, First, []Report{report(three, 5, 9), report(two, 5, 9)}, "e6 [2.1] 3.1", nil},
		{"first: both of the set", first, First, []Report{report(one, 5, 9), report(two, 5, 10)}, "e6 [2.1] 1.1", nil},
		{"first: nobody of the set", first, First, []Report{report(three, 5, 9)}, "", ErrTooFewSealed},
		{"first: another incarnation", first, First, []Report{report(Member{2, 2}, 5, 9)}, "", ErrTooFewSealed},
		{"first: damaged", first, First, []Report{failed(report(two, 5, 9))}, "", ErrTooFewSealed},
		{"first: sealed for an older epoch", first, First, []Report{stale(report(two, 5, 9))}, "", ErrTooFewSealed},
		{"all: the newest one", old, All, []Report{report(three, 5, 9), report(two, 5, 8)}, "e6 [3.1 2.1]", nil},
		{"all: of equals the first", old, All, []Report{report(three, 5, 9), report(two, 5, 9)}, "e6 [2.1 3.1]", nil},
		{"majority: one is not enough", old, Majority, []Report{report(two, 5, 9)}, "", ErrTooFewSealed},
		{"majority: epoch before number", old, Majority, []Report{report(two, 4, 19), report(three, 5, 8)}, "e6 [3.1 2.1 1.1]", nil},
		{"majority: a report from outside does not count", View{Epoch: 5, Chain: old.Chain, InSync: 2}, Majority,
			[]Report{report(three, 5, 9)}, "", ErrTooFewSealed},
		{"recovery goes on", recovering, First, []Report{report(two, 5, 9)}, "e6 [2.1] recovery", nil},
	} {
		v, err := Takeover(c.old, c.acks, c.reports)
		if !errors.Is(err, c.err) || c.err == nil && v.String() != c.want {
			t.Errorf("%s: %v, %v, want %v, %v", c.name, v, err, c.want, c.err)
		}
	}
	v, err := Recover(first, []Report{report(three, 5, 9), report(Member{9, 1}, 5, 10), failed(report(two, 5, 12))})
	if err != nil || v.String() != "e6 [9.1] 3.1 recovery" {
		t.Errorf("recover: %v, %v", v, err)
	}
	if _, err := Recover(first, nil); !errors.Is(err, ErrNoCopy) {
		t.Errorf("recover with nothing: %v", err)
	}
}

// Every part of a change is in its hash, and so is everything before it.
func TestHashes(t *testing.T) {
	c := Change{Epoch: 3, Seq: 4, Prev: 5, Data: []byte("some bytes")}
	c.Hash = chainHash(c.Prev, c.Epoch, c.Seq, c.Data)
	if !c.intact() {
		t.Fatal("not intact")
	}
	for bit := range 64 {
		for _, p := range []*uint64{&c.Epoch, &c.Seq, &c.Prev, &c.Hash} {
			*p ^= 1 << bit
			if c.intact() {
				t.Errorf("%+v passes", c)
			}
			*p ^= 1 << bit
		}
	}
	for bit := range 8 * len(c.Data) {
		c.Data[bit/8] ^= 1 << (bit % 8)
		if c.intact() {
			t.Errorf("%+v passes", c)
		}
		c.Data[bit/8] ^= 1 << (bit % 8)
	}
	if Origin(1) == Origin(2) {
		t.Error("two buckets begin at one point")
	}
}

func TestDamagedJournalsAreRefused(t *testing.T) {
	var changes []Change
	last := Origin(0)
	for i := range 4 {
		c := Change{Epoch: 1, Seq: last.Seq + 1, Prev: last.Hash, Data: []byte{byte(i)}}
		c.Hash = chainHash(c.Prev, c.Epoch, c.Seq, c.Data)
		changes, last = append(changes, c), c.point()
	}
	if _, err := New(Config{Self: one}, Start{Changes: changes, Confirmed: 3, Delivered: 2}); err != nil {
		t.Fatal(err)
	}
	for name, start := range map[string]Start{
		"a gap":                     {Changes: slices.Concat(changes[:1], changes[2:])},
		"not from the beginning":    {Changes: changes[1:]},
		"a wrong base":              {Base: Point{Seq: 1, Hash: 7}, Changes: changes[1:], Confirmed: 1, Delivered: 1},
		"more confirmed than there": {Changes: changes, Confirmed: 5},
		"more delivered":            {Changes: changes, Confirmed: 2, Delivered: 3},
		"a changed byte":            {Changes: append(slices.Clone(changes[:3]), Change{Epoch: 1, Seq: 4, Prev: changes[3].Prev, Hash: changes[3].Hash})},
	} {
		if _, err := New(Config{Self: one}, start); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// settle lets a cluster work for some rounds with everything in order.
func (c *cluster) settle(rounds int) {
	for range rounds {
		c.now += 25e6
		for _, nd := range c.nodes {
			c.grant(nd)
			for nd.views < len(c.plane.views) {
				c.apply(nd)
			}
			nd.r.Tick(c.now)
		}
		for range len(c.flying) {
			c.deliver(0)
		}
		for _, nd := range c.nodes {
			c.ready(nd, false)
			if nd.need {
				_ = c.snapshot(nd) // it may have changed its mind
			}
		}
		for _, v := range c.plane.proposals {
			c.plane.commit(v)
		}
		c.plane.proposals = nil
	}
}

func TestWhatIsRefused(t *testing.T) {
	c := newCluster(Config{Bucket: 7, Limits: small}, 2)
	c.plane.commit(View{Epoch: 1, Chain: []Member{one, two}, InSync: 2})
	p, s := c.node(1).r, c.node(2).r
	if _, err := p.Propose(nil); !errors.Is(err, ErrNotPrimary) {
		t.Errorf("before there is a view: %v", err)
	}
	c.settle(20)
	if _, err := s.Propose(nil); !errors.Is(err, ErrNotPrimary) {
		t.Errorf("a secondary: %v", err)
	}
	if _, err := p.Propose(make([]byte, small.Change+1)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("too large: %v", err)
	}
	if err := p.Snapshot(1, nil); !errors.Is(err, ErrSnapshot) {
		t.Errorf("a snapshot that nobody wants: %v", err)
	}
	if err := p.HandOver(three); !errors.Is(err, ErrMember) {
		t.Errorf("to a stranger: %v", err)
	}
	if err := s.HandOver(one); !errors.Is(err, ErrNotPrimary) {
		t.Errorf("by a secondary: %v", err)
	}
	if err := p.Leave(); !errors.Is(err, ErrMember) {
		t.Errorf("a primary leaves: %v", err)
	}
	if err := p.Install(View{Epoch: 9}); !errors.Is(err, ErrView) {
		t.Errorf("no view: %v", err)
	}
	for name, m := range map[string]Message{
		"another bucket": {Bucket: 8, From: two, To: one},
		"another sender": {Bucket: 7, From: three, To: one},
		"another node":   {Bucket: 7, From: two, To: three},
	} {
		if err := p.Receive(2, m); !errors.Is(err, ErrMisdirected) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// A message to an earlier life of this node is dropped.
	m := Message{Kind: Leave, Bucket: 7, Epoch: p.View().Epoch, From: two, To: Member{1, 0}}
	if err := p.Receive(2, m); err != nil {
		t.Error(err)
	}
	if out := p.Ready(c.now); out.Propose != nil {
		t.Errorf("it listened to what was for another one: %v", out.Propose)
	}
}

// All that a copy keeps has a bound, however slow the next one is.
func TestMemoryIsBounded(t *testing.T) {
	c := newCluster(Config{Bucket: 7, Limits: small}, 3)
	c.plane.commit(View{Epoch: 1, Chain: []Member{one, two, three}, InSync: 2})
	c.settle(20)
	for range 300 {
		_ = c.propose(c.node(1), "change") // ErrFull is what is tested
		c.now += 1e6
		for _, nd := range c.nodes[:2] {
			c.grant(nd)
			c.ready(nd, false)
		}
		for i := 0; i < len(c.flying); i++ {
			if c.flying[i].to == 3 { // it hears nothing
				c.flying = slices.Delete(c.flying, i, i+1)
				i--
			}
		}
		for range len(c.flying) {
			c.deliver(0)
		}
		for _, nd := range c.nodes[:2] {
			if n := len(nd.r.log.changes); n > small.Queue+small.Pending {
				t.Fatalf("node %d keeps %d changes", nd.id, n)
			}
		}
	}
	if n := c.node(1).r.Status().Confirmed; n < 200 {
		t.Errorf("the primary got no further than %d", n)
	}
	c.settle(120)
	if got, want := len(c.node(3).table), len(c.node(1).table); got != want {
		t.Errorf("the third has %d changes of %d", got, want)
	}
	if len(c.check.wrong) > 0 {
		t.Error(c.check.wrong)
	}
}

// A chain forks at a change: all copies begin the new one at the same point, and it works on under a view of its own.
func TestFork(t *testing.T) {
	c := newCluster(Config{Bucket: 7, Limits: small}, 3)
	c.plane.commit(View{Epoch: 1, Chain: []Member{one, two, three}, InSync: 2})
	c.settle(20)
	if err := c.propose(c.node(1), "fork"); err != nil {
		t.Fatal(err)
	}
	seq := uint64(len(c.node(1).table))
	if _, err := c.node(1).r.Fork(7+16, seq); !errors.Is(err, ErrFork) {
		t.Errorf("before it is confirmed: %v", err)
	}
	c.settle(20)
	child := newCluster(Config{Bucket: 7 + 16, Limits: small}, 3)
	child.plane.commit(c.plane.view())
	for i, nd := range c.nodes {
		start, err := nd.r.Fork(7+16, seq)
		if err != nil {
			t.Fatalf("node %d: %v", nd.id, err)
		}
		child.nodes[i].disk = disk{state: start.State, base: start.Base}
		child.start(child.nodes[i], start)
	}
	child.settle(20)
	if err := child.propose(child.node(1), "works"); err != nil {
		t.Fatal(err)
	}
	child.settle(20)
	for _, nd := range child.nodes {
		if got := nd.table[len(nd.table)-1]; got != "works" {
			t.Errorf("node %d: %v", nd.id, nd.table)
		}
	}
	if v := child.plane.view(); len(child.check.wrong) > 0 {
		t.Errorf("%v, %v", v, child.check.wrong)
	}
}

// Same inputs, same outputs: a run is the same each time, message by message.
func TestRunsRepeat(t *testing.T) {
	run := func() []string {
		var lines []string
		c := newCluster(Config{Bucket: 7, Acks: All, Limits: small}, 5)
		c.trace = func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
		c.plane.commit(View{Epoch: 1, Chain: []Member{one}, InSync: 1})
		for i := range uint64(5) {
			c.node(1).r.Score(5-i, int64(i))
		}
		c.settle(60)
		return lines
	}
	if a, b := run(), run(); !slices.Equal(a, b) || len(a) < 50 {
		t.Errorf("%d and %d lines", len(a), len(b))
	}
}
