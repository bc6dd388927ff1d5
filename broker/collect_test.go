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

	"github.com/opencluster/oclocks/broker/edge"
	"github.com/opencluster/oclocks/bucket"
	"github.com/opencluster/oclocks/subjects"
)

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

func (m *moving) primaries(wanted edge.BucketSet) map[uint64]edge.BucketSet {
	m.mu.Lock()
	defer m.mu.Unlock()
	nodes := map[uint64]edge.BucketSet{}
	for number, node := range m.known {
		if node == 0 || !wanted.Has(uint32(number)) {
			continue
		}
		if nodes[node] == nil {
			nodes[node] = edge.NewBucketSet(len(m.known))
		}
		nodes[node].Add(uint32(number))
	}
	return nodes
}

func (m *moving) ask(ctx context.Context, node uint64, wanted edge.BucketSet) *edge.Part {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := &edge.Part{Buckets: len(m.primary), Covered: edge.NewBucketSet(len(m.primary)), Page: &subjects.Page{}}
	for number, is := range m.primary {
		if is == node && wanted.Has(uint32(number)) {
			p.Covered.Add(uint32(number))
			p.Released++
			p.Page.Locks = append(p.Page.Locks, subjects.Record{Name: fmt.Sprintf("n%04d", number)})
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
		p.Covered = edge.AllBuckets(len(m.primary))
		p.Covered.Remove(wanted)
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
		c := collect{Collect: edge.Collect{Limit: 1000}, pause: time.Millisecond, buckets: m.buckets, primaries: m.primaries, ask: m.ask}
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if refusal := c.run(ctx); refusal != nil {
			t.Fatal(refusal)
		}
		page := c.Page()
		if n := m.buckets(); c.Released() != n || len(page.Locks) != n || page.Next != "" {
			t.Fatalf("released %d, page %v", c.Released(), page)
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
	c.ask = func(context.Context, uint64, edge.BucketSet) *edge.Part { return &edge.Part{Refusal: overloaded()} }
	if refusal := c.run(t.Context()); refusal == nil || refusal.Why != subjects.WhyOverloaded {
		t.Errorf("refusal %v", refusal)
	}
}

// What one node asks another arrives as it was sent, and so does the answer.
func TestWhatNodesAskEachOther(t *testing.T) {
	wanted := edge.NewBucketSet(100)
	wanted.Add(3)
	wanted.Add(99)
	for _, req := range []subjects.Request{
		{Op: subjects.OpList, Prefix: "a\xff", Has: subjects.HasPrefix, After: edge.PageMark("a\xffb"), State: subjects.Held, Limit: 7, OlderThan: time.Minute},
		{Op: subjects.OpSessionClose, Session: "token", Number: 9, Done: 4, Has: subjects.HasRequest},
	} {
		in := &bucket.Input{Kind: bucket.Request, Zone: "z", User: "U1", Reply: edge.ShareReply, Session: bucket.Session{
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
	page := &subjects.Page{Locks: []subjects.Record{{Name: "a<b", Held: true, Holders: []subjects.Holder{{User: "U", Token: 4}}}}, Next: edge.PageMark("a<b")}
	p, err := readPart(partMessage(&edge.Part{Covered: wanted, Released: 5, Page: page}))
	if err != nil || p.Released != 5 || !slices.Equal(p.Covered, wanted) || string(p.Page.AppendJSON(nil)) != string(page.AppendJSON(nil)) {
		t.Errorf("%+v: %v", p, err)
	}
	if p, err = readPart(partMessage(&edge.Part{Refusal: overloaded()})); err != nil || p.Refusal == nil || p.Refusal.Why != subjects.WhyOverloaded {
		t.Errorf("%+v: %v", p, err)
	}
	if p, err = readPart(partMessage(&edge.Part{})); err != nil || p.Covered.Count() != 0 || p.Page != nil || p.Refusal != nil {
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
