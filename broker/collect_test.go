package broker

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"pgregory.net/rapid"

	"github.com/opencluster/oclocks/bucket"
	"github.com/opencluster/oclocks/subjects"
)

func TestBucketSets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const buckets = 200
		draw := func(label string) (bucketSet, map[uint32]bool) {
			set, model := newBucketSet(buckets), map[uint32]bool{}
			for _, number := range rapid.SliceOf(rapid.Uint32Range(0, buckets-1)).Draw(t, label) {
				set.add(number)
				model[number] = true
			}
			return set, model
		}
		a, inA := draw("a")
		b, inB := draw("b")
		if a.count() != len(inA) {
			t.Fatalf("%d of %d", a.count(), len(inA))
		}
		back, err := readBucketSet(a.text())
		if err != nil || !slices.Equal(back, a) {
			t.Fatalf("%v read back as %v: %v", a, back, err)
		}
		within := true
		for number := range inB {
			within = within && inA[number]
		}
		if b.within(a) != within {
			t.Fatalf("%v within %v: %v", inB, inA, !within)
		}
		if within {
			a.remove(b)
		}
		for number := range uint32(buckets + 64) {
			if want := inA[number] && !(within && inB[number]); a.has(number) != want {
				t.Fatalf("bucket %d: %v", number, !want)
			}
		}
	})
	for _, text := range []string{"x", "AA", "AAAAAAAAAAA!"} {
		if _, err := readBucketSet(text); err == nil {
			t.Errorf("%q is a set", text)
		}
	}
}

// moving is a cluster whose buckets move between its nodes, and whose nodes answer or not, as drawn.
type moving struct {
	mu      sync.Mutex
	primary []uint64 // by bucket, as it is
	known   []uint64 // by bucket, as the asking node knows it
	act     func(node uint64) string
}

func (m *moving) buckets() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.primary)
}

func (m *moving) primaries(wanted bucketSet) map[uint64]bucketSet {
	m.mu.Lock()
	defer m.mu.Unlock()
	nodes := map[uint64]bucketSet{}
	for number, node := range m.known {
		if node == 0 || !wanted.has(uint32(number)) {
			continue
		}
		if nodes[node] == nil {
			nodes[node] = newBucketSet(len(m.known))
		}
		nodes[node].add(uint32(number))
	}
	return nodes
}

func (m *moving) ask(ctx context.Context, node uint64, wanted bucketSet) *part {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := &part{buckets: len(m.primary), covered: newBucketSet(len(m.primary)), page: &subjects.Page{}}
	for number, is := range m.primary {
		if is == node && wanted.has(uint32(number)) {
			p.covered.add(uint32(number))
			p.released++
			p.page.Locks = append(p.page.Locks, subjects.Record{Name: fmt.Sprintf("n%04d", number)})
		}
	}
	copy(m.known, m.primary) // it learns
	switch m.act(node) {
	case "silent":
		return nil
	case "double":
		m.primary = slices.Concat(m.primary, m.primary)
		m.known = slices.Clone(m.primary)
	case "wrong": // answers for what it was not asked
		p.covered = allBuckets(len(m.primary))
		p.covered.remove(wanted)
	}
	return p
}

// However buckets move and nodes fail to answer meanwhile, each bucket counts once in the end, or there is no answer.
func TestEveryBucketCountsOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const buckets = 8
		node := rapid.Uint64Range(1, 3)
		m := &moving{primary: make([]uint64, buckets), known: make([]uint64, buckets)}
		for i := range buckets {
			m.primary[i], m.known[i] = node.Draw(t, "primary"), rapid.Uint64Range(0, 3).Draw(t, "known")
		}
		acts := rapid.SliceOfN(rapid.SampledFrom([]string{"", "silent", "wrong", "move", "double"}), 0, 6).Draw(t, "acts")
		moves := rapid.SliceOfN(node, 6, 6).Draw(t, "moves")
		m.act = func(uint64) string {
			if len(acts) == 0 {
				return ""
			}
			act := acts[0]
			acts = acts[1:]
			if act == "move" {
				m.primary[len(acts)] = moves[len(acts)]
			}
			return act
		}
		for i := range m.known { // somebody is asked at first, and so it learns
			if m.known[i] == 0 {
				m.known[i] = m.primary[i]
			}
		}
		c := collect{limit: 1000, pause: time.Millisecond, buckets: m.buckets, primaries: m.primaries, ask: m.ask}
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if refusal := c.run(ctx); refusal != nil {
			t.Fatal(refusal)
		}
		page := c.page.page()
		if n := m.buckets(); c.released != n || len(page.Locks) != n || page.Next != "" {
			t.Fatalf("released %d, page %v", c.released, page)
		}
		for i, rec := range page.Locks {
			if rec.Name != fmt.Sprintf("n%04d", i) {
				t.Fatalf("page %v", page)
			}
		}
	})
}

// A bucket that nobody answers for in time has the whole request refused, with the word to ask again.
func TestNoAnswerIsARefusal(t *testing.T) {
	m := &moving{primary: []uint64{1, 2}, known: []uint64{1, 2}, act: func(node uint64) string {
		if node == 2 {
			return "silent"
		}
		return ""
	}}
	c := collect{pause: time.Millisecond, buckets: m.buckets, primaries: m.primaries, ask: m.ask}
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	refusal := c.run(ctx)
	if refusal == nil || refusal.Code != 503 || refusal.Reason != subjects.ReasonUnavailable || refusal.RetryAfter <= 0 {
		t.Errorf("refusal %v", refusal)
	}
	m.act = func(uint64) string { return "" }
	c.ask = func(context.Context, uint64, bucketSet) *part { return &part{refusal: overloaded()} }
	if refusal := c.run(t.Context()); refusal == nil || refusal.Why != subjects.WhyOverloaded {
		t.Errorf("refusal %v", refusal)
	}
}

// What one node asks another arrives as it was sent, and so does the answer.
func TestWhatNodesAskEachOther(t *testing.T) {
	wanted := newBucketSet(100)
	wanted.add(3)
	wanted.add(99)
	for _, req := range []subjects.Request{
		{Op: subjects.OpList, Prefix: "a\xff", Has: subjects.HasPrefix, After: pageMark("a\xffb"), State: subjects.Held, Limit: 7, OlderThan: time.Minute},
		{Op: subjects.OpSessionClose, Session: "token", Number: 9, Done: 4, Has: subjects.HasRequest},
	} {
		in := &bucket.Input{Kind: bucket.Request, Zone: "z", User: "U1", Reply: shareReply, Session: bucket.Session{
			ID: "abc", Incarnation: 1 << 60, Lease: time.Second, Conn: bucket.Conn{Server: "s", CID: 4}}}
		msg, err := (&question{zone: "z", in: in, req: &req, wanted: wanted}).message(2)
		if err != nil {
			t.Fatal(err)
		}
		q, err := readQuestion(msg)
		if err != nil {
			t.Fatal(err)
		}
		if msg.Subject != "node.2.gather" || q.zone != "z" || fmt.Sprintf("%+v", *q.in) != fmt.Sprintf("%+v", *in) ||
			fmt.Sprintf("%+v", *q.req) != fmt.Sprintf("%+v", req) || !slices.Equal(q.wanted, wanted) {
			t.Errorf("%s: %+v of %+v", msg.Subject, q, req)
		}
	}
	page := &subjects.Page{Locks: []subjects.Record{{Name: "a<b", Held: true, Holders: []subjects.Holder{{User: "U", Token: 4}}}}, Next: pageMark("a<b")}
	p, err := readPart((&part{covered: wanted, released: 5, page: page}).message())
	if err != nil || p.released != 5 || !slices.Equal(p.covered, wanted) || string(p.page.AppendJSON(nil)) != string(page.AppendJSON(nil)) {
		t.Errorf("%+v: %v", p, err)
	}
	if p, err = readPart((&part{refusal: overloaded()}).message()); err != nil || p.refusal == nil || p.refusal.Why != subjects.WhyOverloaded {
		t.Errorf("%+v: %v", p, err)
	}
	if p, err = readPart((&part{}).message()); err != nil || p.covered.count() != 0 || p.page != nil || p.refusal != nil {
		t.Errorf("%+v: %v", p, err)
	}
	for name, header := range map[string]nats.Header{
		"nothing":       {},
		"another op":    {headerOp: {"acquire"}, headerSession: {"{}"}},
		"no session":    {headerOp: {"list"}, headerSession: {"x"}},
		"no buckets":    {headerOp: {"list"}, headerSession: {"{}"}, headerBuckets: {"!"}},
		"not a request": {headerOp: {"session-close"}, headerSession: {"{}"}},
	} {
		if q, err := readQuestion(&nats.Msg{Header: header}); err == nil {
			t.Errorf("%s: %+v", name, q)
		}
		if p, err := readPart(&nats.Msg{Header: header}); err == nil && name != "another op" {
			t.Errorf("%s: %+v", name, p)
		}
	}
}
