package control

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/opencluster/oclocks/arbiter/plan"
	"github.com/opencluster/oclocks/bucket/chain"
	"github.com/opencluster/oclocks/conf/shared"
)

// TestAnOrderOfAnOlderTermIsIgnored: a leader that was deposed and does not know it yet stops nothing any more.
func TestAnOrderOfAnOlderTermIsIgnored(t *testing.T) {
	_, nodes := three(t)
	lead, others := leader(t, nodes...)
	n := others[0]
	term := lead.c.Status().Term
	seal := func(term uint64, bucket uint32) {
		n.c.box.notice(order{Term: term, Seal: []plan.SealOrder{{Node: n.number(), Bucket: bucket}}})
	}
	n.copies.note(func() { clear(n.copies.sealed) })
	seal(term-1, 0)
	seal(term, 1)
	seal(term+1, 2)
	seal(term, 3)
	seal(term+1, 4)
	n.copies.until("the orders of newer terms are carried out", func(c *copies) bool {
		_, two := c.sealed[2]
		_, four := c.sealed[4]
		return two && four
	})
	n.copies.mu.Lock()
	defer n.copies.mu.Unlock()
	for bucket, want := range map[uint32]bool{0: false, 1: true, 3: false} {
		if _, got := n.copies.sealed[bucket]; got != want {
			t.Errorf("bucket %d sealed: %t", bucket, got)
		}
	}
}

// routes are routes that a test opens and closes.
type routes struct {
	mu    sync.Mutex
	watch func(string, bool)
	up    []string
}

func (r *routes) Watch(f func(string, bool)) (stop func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.watch = f
	for _, id := range r.up {
		f(id, true)
	}
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.watch = nil
	}
}

func (r *routes) set(id string, up bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.watch != nil {
		r.watch(id, up)
	}
}

// TestAClosedRouteIsToldAtOnce: and that it is open again only when something comes over it.
func TestAClosedRouteIsToldAtOnce(t *testing.T) {
	k := newCluster(t)
	first := k.config(1)
	first.Found = k.found
	r := &routes{up: []string{identifier(2), identifier(3)}}
	first.Watch = r.Watch
	a := k.join(first)
	b, c := k.join(k.config(2)), k.join(k.config(3))
	k.complete(a, b, c)

	r.set(identifier(2), false)
	a.copies.until("node 2 is away", func(c *copies) bool { return c.away[2] && !c.away[3] })
	if s := a.c.Status(); !slices.Equal(s.Away, []uint64{2}) {
		t.Errorf("away: %v", s.Away)
	}
	// Frames of node 2 still come, since the server of this test is one for all: they count for nothing while the route is
	// closed, and once it is open one of them, or the answer to a greeting, brings the node back.
	r.set(identifier(2), true)
	a.copies.until("node 2 is back", func(c *copies) bool { return !c.away[2] })
	k.complete(a, b, c)
	r.set(identifier(3), false)
	r.set(identifier(3), true)
	a.copies.until("node 3 was away for a moment", func(c *copies) bool { _, told := c.away[3]; return told && !c.away[3] })
}

// TestANodeWithoutRouteIsAway: one that was never seen, though others know it.
func TestANodeWithoutRouteIsAway(t *testing.T) {
	k := newCluster(t)
	first := k.config(1)
	first.Found = k.found
	r := &routes{up: []string{identifier(2)}}
	first.Watch = r.Watch
	a := k.join(first)
	k.join(k.config(2))
	k.join(k.config(3))
	a.copies.until("node 3 is away and node 2 is not", func(c *copies) bool { return c.away[3] && !c.away[2] })
}

// TestRefusedViews: what cannot be is refused, and others in the same command are not.
func TestRefusedViews(t *testing.T) {
	_, nodes := three(t)
	n := nodes[0]
	n.copies.note(func() { n.copies.idle = true })
	for _, m := range nodes[1:] {
		m.copies.note(func() { m.copies.idle = true })
	}
	view := func(b uint32, head chain.Member) chain.View {
		v := n.c.State().Views[b].Clone()
		v.Epoch++
		v.Chain = append([]chain.Member{head}, slices.DeleteFunc(v.Chain, func(m chain.Member) bool { return m.Node == head.Node })...)
		return v
	}
	wrong := view(1, chain.Member{Node: 2, Inc: 7 << 32}) // a life that never was
	n.c.Propose(1, wrong)
	n.c.Propose(1, wrong)
	n.copies.until("the view of a life that is not is refused", func(c *copies) bool { return len(c.refused) > 0 })
	n.copies.mu.Lock()
	for _, v := range n.copies.refused {
		if fmt.Sprint(v) != fmt.Sprint(wrong) {
			t.Errorf("%v is refused", v)
		}
	}
	n.copies.mu.Unlock()

	right := view(2, n.copies.self)
	n.c.Propose(2, right)
	n.c.Propose(99, right)       // there is no such bucket
	n.c.Propose(3, chain.View{}) // and no such view
	n.copies.until("another view is committed", func(c *copies) bool { return c.views[2].Epoch >= right.Epoch })
}

func TestChangesOfTools(t *testing.T) {
	_, nodes := three(t)
	lead, others := leader(t, nodes...)
	set := shared.Command{Set: &shared.Set{Settings: map[string]string{"min_quorum": "2"}}}
	result, err := others[0].c.Change(within(t), set)
	if err != nil || result.Err() != nil {
		t.Fatal(err, result.Err())
	}
	state, err := others[1].c.Read(within(t))
	if err != nil || state.Settings.MinQuorum != 2 || state.Change < result.Change {
		t.Fatalf("another node reads %+v, %v", state.Settings, err)
	}
	if result, err = lead.c.Change(within(t), shared.Command{Lock: &shared.Lock{}}); err != nil || result.Err() != nil {
		t.Fatal(err, result.Err())
	}
	if result, err = others[0].c.Change(within(t), set); err != nil || result.Kind != "locked" {
		t.Errorf("a change of a locked configuration: %+v, %v", result, err)
	}
	for _, command := range []shared.Command{{}, {Views: &shared.ViewChange{}}, {Register: &shared.Register{}}, {Lock: &shared.Lock{}, Unlock: &shared.Lock{}}} {
		if _, err := lead.c.Change(within(t), command); err == nil {
			t.Errorf("%+v is carried out", command)
		}
	}
	// The same from a tool that only has a connection.
	unlock := others[0].request(subjectChange, shared.Command{Unlock: &shared.Lock{}}.Encode())
	if answer, err := decodeMessage[changed](unlock); err != nil || answer.Err() != nil || answer.Change == 0 {
		t.Errorf("unlock: %s, %v", unlock, err)
	}
	before := lead.c.State()
	for text, kind := range map[string]string{ // order: each is refused
		`{`: "command",
		`{"op":"set","set":{"settings":{"min_quorum":"1"}},"also":1}`:    "command",
		`{"op":"set","set":{"settings":{"min_quorum":"1"},"at":"noon"}}`: "command",
		`{"op":"set","set":{"settings":{"min_quorum":"1"}}}{}`:           "command",
		`{"op":"lock","set":{"settings":{"min_quorum":"1"}}}`:            "command",
		`{"set":{"settings":{"min_quorum":"1"}}}`:                        "command",
		`{"op":"raise","raise":{"level":2}}`:                             "command",
		`{"op":"set","needs":2,"set":{"settings":{"min_quorum":"1"}}}`:   "level",
	} {
		refusal := others[0].request(subjectChange, []byte(text))
		if answer, err := decodeMessage[changed](refusal); err != nil || answer.Kind != kind || answer.Problem == "" {
			t.Errorf("%s: %s, %v", text, refusal, err)
		}
	}
	if after := lead.c.State(); after.Settings != before.Settings || after.AppliedBy() != before.AppliedBy() {
		t.Errorf("they have changed something: %+v", after.Settings)
	}
}

// A node whose program knows more than the leader's says more when it registers than the leader can read, and is registered: otherwise no
// cluster could be upgraded node by node.
func TestARegistrationThatSaysMore(t *testing.T) {
	k := newCluster(t)
	first := k.config(1)
	first.Found = k.found
	a := k.join(first)
	leader(t, a)
	text := `{"id":"zzzzzzzzzzzzzzzzzzzzzzzzzz","raft":77,"name":"later","level":1000,"start":5,"of_tomorrow":{"x":1}}`
	answer := admission{WaitMS: 1}
	for answer.WaitMS > 0 {
		var err error
		if answer, err = decodeMessage[admission](a.request(subjectRegister, []byte(text))); err != nil {
			t.Fatal(err)
		}
	}
	if n := a.c.State().Node(answer.Number); answer.Number == 0 || n == nil || n.Name != "later" || n.Level != 1000 {
		t.Errorf("%+v: %+v", answer, n)
	}
}

func TestAlertsReachAllNodes(t *testing.T) {
	k := newCluster(t)
	first := k.config(1)
	first.Found = k.found
	heard := make([]chan Alert, 2)
	for i := range heard {
		heard[i] = make(chan Alert, 16)
	}
	first.Alert = func(a Alert) { heard[0] <- a }
	second := k.config(2)
	second.Alert = func(a Alert) { heard[1] <- a }
	a, b := k.join(first), k.join(second)
	k.complete(a, b)
	b.c.Alert(3, "the first")
	b.c.Alert(3, "the first") // is not repeated at once
	b.c.Alert(-1, "the second")
	for _, ch := range heard {
		for _, want := range []Alert{{Node: 2, Bucket: 3, Text: "the first"}, {Node: 2, Bucket: -1, Text: "the second"}} {
			select {
			case got := <-ch:
				if got.Time.IsZero() || got.Node != want.Node || got.Bucket != want.Bucket || got.Text != want.Text {
					t.Errorf("got %+v, want %+v", got, want)
				}
			case <-within(t).Done():
				t.Fatalf("no alert, want %+v", want)
			}
		}
	}
}

// TestANodeThatHasComeApartIsToldOf: its state differs at the same change, so it gets no lease, and all are alerted.
func TestANodeThatHasComeApartIsToldOf(t *testing.T) {
	k := newCluster(t)
	heard := make(chan Alert, 64)
	first := k.config(1)
	first.Found = k.found
	first.Alert = func(a Alert) { heard <- a }
	a, b := k.join(first), k.join(k.config(2))
	k.complete(a, b)
	b.copies.note(func() { b.copies.idle = true })
	at := b.c.State().Change
	_, _ = b.c.fsm.FSM.Apply(at, shared.Command{Set: &shared.Set{Settings: map[string]string{"voters": "3"}}}.Encode())
	if _, err := a.c.Change(within(t), shared.Command{Set: &shared.Set{Settings: map[string]string{"min_quorum": "2"}}}); err != nil {
		t.Fatal(err)
	}
	select {
	case got := <-heard:
		t.Log(got.Text)
		if got.Node != 1 || got.Bucket != -1 {
			t.Errorf("%+v", got)
		}
	case <-within(t).Done():
		t.Fatal("no alert")
	}
	eventually(t, "it is told why it gets no lease", func() bool { return b.c.Status().Refused != "" })
}
