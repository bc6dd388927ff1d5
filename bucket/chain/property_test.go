package chain

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestMain makes the runs of rapid longer than its default of 30 steps, unless a flag says otherwise: before anything
// interesting happens, a cluster has to have worked for a while. What runs without a flag takes a few seconds, with -race
// too; a deep run is go test -run TestNothingAnsweredIsLost -timeout 0 -rapid.checks=1000000.
func TestMain(m *testing.M) {
	flag.Parse()
	for name, value := range map[string]string{"rapid.steps": "150", "rapid.checks": "500", "rapid.shrinktime": "10s"} {
		f := flag.Lookup(name)
		if f != nil && f.Value.String() != f.DefValue {
			deep = deep || name == "rapid.checks"
			continue
		}
		if f != nil {
			if err := flag.Set(name, value); err != nil {
				panic(err)
			}
		}
	}
	os.Exit(m.Run())
}

// patience is how long the runs of TestNothingAnsweredIsLost may take together on a slow machine, unless deep, which is a
// number of runs that was asked for.
const patience = 10 * time.Second

var deep bool

// traced is how many lines of what happened before a failure are shown.
var traced = 120

// small limits, so that every one of them is met.
var small = Limits{
	Pending: 12, PendingBytes: 400, Change: 64, Window: 5, WindowBytes: 120, Batch: 60, Keep: 4, KeepBytes: 100,
	Queue: 12, QueueBytes: 400, Chunk: 40, Chunks: 2, Lag: 3, Resend: 50e6, Drop: 400e6,
}

// chaos is a cluster with an adversary for a network, a scheduler and an operator.
type chaos struct {
	*cluster
	text int

	carried int   // messages so far in this phase
	losing  []int // which of them the network loses

	cut map[uint64]bool // nodes that hear nothing and are not heard; their leases go on until they end
}

func newChaos(t *rapid.T) *chaos {
	acks := rapid.SampledFrom([]Acks{First, Majority, All}).Draw(t, "acks")
	n := rapid.IntRange(2, 5).Draw(t, "nodes")
	c := &chaos{cut: map[uint64]bool{},
		cluster: newCluster(Config{Bucket: 7, Acks: acks, Limits: small, Recovery: second}, n)}
	var lines []string
	c.trace = func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	t.Cleanup(func() {
		if t.Failed() {
			for _, l := range lines[max(0, len(lines)-traced):] {
				t.Log(l)
			}
		}
	})
	first := View{Epoch: 1, InSync: 1}
	size := rapid.IntRange(1, n).Draw(t, "chain")
	for _, nd := range c.nodes[:size] {
		first.Chain = append(first.Chain, Member{Node: nd.id, Inc: 1})
	}
	first.InSync = size
	if acks == First {
		first.InSync = min(size, 2)
	}
	c.plane.commit(first)
	for _, nd := range c.nodes {
		c.grant(nd)
		c.apply(nd)
	}
	return c
}

// up draws a node that runs.
func (c *chaos) up(t *rapid.T) *node {
	var list []*node
	for _, nd := range c.nodes {
		if nd.r != nil {
			list = append(list, nd)
		}
	}
	if len(list) == 0 {
		t.Skip("all are down")
	}
	return list[rapid.IntRange(0, len(list)-1).Draw(t, "node")]
}

func (c *chaos) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"":        c.verdict,
		"propose": c.actPropose, "propose2": c.actPropose, "propose3": c.actPropose,
		"ready": c.actReady, "ready2": c.actReady, "ready3": c.actReady,
		"deliver": c.actDeliver, "deliver2": c.actDeliver, "settle": c.actSettle, "settle2": c.actSettle,
		"network": c.actNetwork, "plane": c.actPlane, "plane2": c.actPlane, "time": c.actTime,
		"work": c.actWork, "work2": c.actWork, "work3": c.actWork, "propose4": c.actPropose,
		"cut": c.actCut, "cut2": c.actCut, "work4": c.actWork,
		"crash": c.actCrash, "restart": c.actRestart, "takeover": c.actTakeOver, "operate": c.actOperate,
	}
}

func (c *chaos) verdict(t *rapid.T) {
	c.covered()
	if len(c.check.wrong) > 0 {
		for _, w := range c.check.wrong {
			t.Log(w)
		}
		t.Fatalf("%s\n%s", c.check.wrong[0], c)
	}
}

func (c *chaos) actPropose(t *rapid.T) {
	nd := c.up(t)
	for range rapid.IntRange(1, 4).Draw(t, "n") {
		c.text++
		if c.propose(nd, fmt.Sprintf("change %d by %d", c.text, nd.id)) == nil {
			c.trace("-- %d proposes %d", nd.id, len(nd.table))
		}
	}
}

func (c *chaos) actReady(t *rapid.T) {
	c.ready(c.up(t), rapid.IntRange(0, 19).Draw(t, "die") == 19)
}

func (c *chaos) actDeliver(t *rapid.T) {
	if len(c.flying) == 0 {
		t.Skip("nothing is on its way")
	}
	i := 0
	if rapid.IntRange(0, 3).Draw(t, "overtake") == 3 {
		i = rapid.IntRange(0, len(c.flying)-1).Draw(t, "which")
	}
	c.trace("-- deliver %d to %d", c.flying[i].from, c.flying[i].to)
	c.deliver(i)
}

// actSettle delivers all that is there now, and lets everybody answer.
func (c *chaos) actSettle(t *rapid.T) {
	for range rapid.IntRange(1, 4).Draw(t, "rounds") {
		for range len(c.flying) {
			c.deliver(0)
		}
		c.all()
	}
}

// actWork lets a while go by in which everything works for those who are up and not cut off, and those who are go on by
// themselves.
func (c *chaos) actWork(t *rapid.T) {
	manage := rapid.IntRange(0, 2).Draw(t, "manage") > 0
	for range rapid.IntRange(1, 8).Draw(t, "rounds") {
		c.now += 20e6
		c.keep()
		if manage {
			c.manage()
		}
		if rapid.Bool().Draw(t, "propose") {
			for _, nd := range c.nodes {
				if nd.r != nil && nd.r.Proposable() == nil {
					c.text++
					_ = c.propose(nd, fmt.Sprintf("work %d by %d", c.text, nd.id)) // it may not be able to
				}
			}
		}
	}
}

// actCut cuts nodes off, or lets them back in. While a node is cut off it may get a lease once more, before it has heard of
// the view that the lease was granted under.
func (c *chaos) actCut(t *rapid.T) {
	nd := c.nodes[rapid.IntRange(0, len(c.nodes)-1).Draw(t, "node")]
	v := c.plane.view()
	switch rapid.IntRange(0, 4).Draw(t, "what") {
	case 0:
		clear(c.cut)
		c.trace("-- all are connected")
	case 1:
		if c.cut[nd.id] {
			c.grant(nd)
			c.trace("-- %d gets a lease", nd.id)
		}
	case 2:
		c.cut[v.Primary().Node] = true
		c.trace("-- the primary %v is cut off", v.Primary())
	default:
		c.cut[nd.id] = !c.cut[nd.id]
		c.trace("-- %d is cut off: %v", nd.id, c.cut[nd.id])
	}
}

// keep is one step of those who are up, and of the control plane.
func (c *chaos) keep() {
	for _, nd := range c.nodes {
		if nd.r == nil {
			continue
		}
		if !c.cut[nd.id] {
			c.grant(nd)
			for nd.views < len(c.plane.views) {
				c.apply(nd)
			}
		}
		if nd.r.Next(c.now) <= c.now {
			nd.r.Tick(c.now)
		}
	}
	for i := len(c.flying); i > 0; i-- {
		if p := c.flying[0]; c.cut[p.from] != c.cut[p.to] {
			c.flying = append(c.flying[1:], p) // it comes when nobody thinks of it any more
			continue
		}
		if c.carried++; slices.Contains(c.losing, c.carried) {
			c.trace("-- lost %d to %d", c.flying[0].from, c.flying[0].to)
			c.flying = c.flying[1:]
			continue
		}
		c.deliver(0)
	}
	if n := len(c.flying); n > 200 {
		c.flying = slices.Delete(c.flying, 0, n-200)
	}
	for _, nd := range c.nodes { // and nobody else: Next must not have forgotten anything
		if nd.r != nil && nd.r.Next(c.now) <= c.now {
			c.ready(nd, false)
			c.answer(nd)
		}
	}
	for _, v := range c.plane.proposals {
		if !c.cut[v.Chain[0].Node] || v.Chain[0] != c.plane.view().Chain[0] {
			c.plane.commit(v)
		}
	}
	c.plane.proposals = nil
}

// manage is a control plane that replaces a primary which is down or cut off, as soon as it may.
func (c *chaos) manage() {
	v := c.plane.view()
	head := c.node(v.Primary().Node)
	if head.r != nil && !c.cut[head.id] && head.r.Self() == v.Primary() && head.r.stopped == "" && head.r.state.Sealed < v.Epoch {
		return
	}
	for _, nd := range c.nodes {
		if nd.r != nil && !c.cut[nd.id] {
			nd.r.Seal(v.Epoch)
			c.ready(nd, false)
		}
	}
	if c.takeOver() == nil {
		c.trace("-- managed: view %v", c.plane.view())
	}
}

func (c *chaos) all() {
	for _, nd := range c.nodes {
		if nd.r != nil {
			c.ready(nd, false)
		}
		c.answer(nd)
	}
}

// answer gives a snapshot to whoever wants one.
func (c *chaos) answer(nd *node) {
	if nd.r != nil && nd.need {
		_ = c.snapshot(nd) // it may have changed its mind
	}
}

func (c *chaos) actNetwork(t *rapid.T) {
	if len(c.flying) == 0 {
		t.Skip("nothing is on its way")
	}
	i := rapid.IntRange(0, len(c.flying)-1).Draw(t, "which")
	p := c.flying[i]
	switch rapid.IntRange(0, 4).Draw(t, "what") {
	case 0, 1:
		c.trace("-- drop %d to %d", p.from, p.to)
		c.flying = slices.Delete(c.flying, i, i+1)
	case 2:
		c.trace("-- double %d to %d", p.from, p.to)
		c.flying = append(c.flying, p)
	case 4: // damage that the sum of a message does not see: in the memory of who sends it
		m, err := Decode(slices.Clone(p.raw))
		if err != nil || len(m.Changes) == 0 {
			t.Skip("nothing to damage")
		}
		ch := &m.Changes[rapid.IntRange(0, len(m.Changes)-1).Draw(t, "change")]
		if len(ch.Data) > 0 && rapid.Bool().Draw(t, "data") {
			ch.Data[rapid.IntRange(0, len(ch.Data)-1).Draw(t, "byte")] ^= 1
		} else {
			ch.Hash ^= 1 << rapid.IntRange(0, 63).Draw(t, "bit")
		}
		c.trace("-- damage %v", &m)
		c.flying[i].raw = m.Encode(nil)
	case 3:
		c.trace("-- flip a bit %d to %d", p.from, p.to)
		raw := slices.Clone(p.raw)
		bit := rapid.IntRange(0, 8*len(raw)-1).Draw(t, "bit")
		raw[bit/8] ^= 1 << (bit % 8)
		_, before := Decode(p.raw) // the network may have damaged it once already
		if _, err := Decode(raw); err == nil && before == nil {
			t.Fatalf("a flipped bit %d of %x is not noticed", bit, p.raw)
		}
		c.flying[i].raw = raw
	}
}

func (c *chaos) actPlane(t *rapid.T) {
	nd := c.up(t)
	switch rapid.IntRange(0, 5).Draw(t, "what") {
	case 0, 1:
		c.apply(nd)
	case 2:
		c.grant(nd)
	case 3:
		for _, nd := range c.nodes {
			if nd.r != nil {
				c.grant(nd)
				c.apply(nd)
			}
		}
	default:
		if len(c.plane.proposals) == 0 {
			t.Skip("nothing is proposed")
		}
		i := rapid.IntRange(0, len(c.plane.proposals)-1).Draw(t, "proposal")
		v := c.plane.proposals[i]
		c.plane.proposals = slices.Delete(c.plane.proposals, i, i+1)
		c.trace("-- commit %v: %v", v, c.plane.commit(v))
	}
}

func (c *chaos) actTime(t *rapid.T) {
	c.now += rapid.SampledFrom([]int64{1e6, 30e6, 60e6, 60e6, 60e6, 300e6, 700e6}).Draw(t, "pass")
	for _, nd := range c.nodes {
		if nd.r != nil {
			nd.r.Tick(c.now)
		}
	}
}

func (c *chaos) actCrash(t *rapid.T) {
	if rapid.IntRange(0, 3).Draw(t, "really") != 0 {
		t.Skip("not so often")
	}
	nd := c.up(t)
	c.trace("-- crash %d", nd.id)
	c.crash(nd)
}

func (c *chaos) actRestart(t *rapid.T) {
	nd := c.nodes[rapid.IntRange(0, len(c.nodes)-1).Draw(t, "node")]
	if nd.r != nil {
		t.Skip("it runs")
	}
	switch rapid.IntRange(0, 5).Draw(t, "how") {
	case 0:
		c.lose(nd, false)
	case 1:
		c.lose(nd, true)
	default:
		c.restart(nd)
	}
	c.trace("-- restart %v", nd.r.Self())
}

func (c *chaos) actTakeOver(t *rapid.T) {
	v := c.plane.view()
	for _, nd := range c.nodes {
		if nd.r != nil && rapid.IntRange(0, 2).Draw(t, "seal") > 0 {
			nd.r.Seal(v.Epoch)
			c.ready(nd, false)
		}
	}
	if rapid.Bool().Draw(t, "replace") {
		c.plane.not = v.Primary()
	}
	err := c.takeOver()
	c.plane.not = Member{}
	if err != nil {
		c.trace("-- no takeover: %v", err)
		if rapid.IntRange(0, 3).Draw(t, "give up") == 0 {
			if err := c.recover(); err != nil {
				c.trace("-- no recovery: %v", err)
				return
			}
		}
	}
	c.trace("-- view %v", c.plane.view())
}

func (c *chaos) actOperate(t *rapid.T) {
	nd := c.up(t)
	other := c.nodes[rapid.IntRange(0, len(c.nodes)-1).Draw(t, "other")]
	switch rapid.IntRange(0, 4).Draw(t, "what") {
	case 0:
		for _, m := range nd.r.View().Chain {
			if m.Node == other.id && nd.r.HandOver(m) == nil {
				c.trace("-- %d hands over to %d", nd.id, other.id)
			}
		}
	case 1:
		nd.r.Score(other.id, int64(rapid.IntRange(0, 3).Draw(t, "score")))
	case 2:
		nd.r.Away(other.id, rapid.Bool().Draw(t, "away"))
	case 3:
		if nd.r.Leave() == nil {
			c.trace("-- %d leaves", nd.id)
		}
	case 4:
		nd.r.Join()
	}
}

// Whatever a network, crashes, a slow control plane and an operator do: nothing answered is lost, no two primaries answer in
// one epoch, nobody delivers what was not answered, and when all of it ends the cluster comes together again.
func TestNothingAnsweredIsLost(t *testing.T) {
	began, runs, failing := time.Now(), 0, false
	rapid.Check(t, func(t *rapid.T) {
		if !deep && !failing && time.Since(began) > patience {
			return // the machine is slow, and a failure would have to be looked into with -rapid.checks anyway
		}
		defer func() {
			if wrong := recover(); wrong != nil {
				failing = true // from now on every run is needed, to make it small
				panic(wrong)
			}
		}()
		c := newChaos(t)
		t.Repeat(c.actions())
		c.heal(t)
		runs++
	})
	t.Logf("%d runs", runs)
	if !deep && runs < 20 {
		t.Errorf("only %d runs in %v", runs, patience)
	}
}
