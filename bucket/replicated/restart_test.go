package replicated

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/opencluster/oclocks/bucket/chain"
	"github.com/opencluster/oclocks/subjects"
)

// restarted is a node that comes up from its journal, which was read before anybody said how many buckets there are.
func restarted(t *testing.T, cfg Config, records []Record) *Bucket {
	t.Helper()
	unknown := cfg.Table
	unknown.Buckets = 1 << 16
	replay := NewReplay(unknown)
	for _, r := range records {
		if err := replay.Add(r.Number, r.Whole, r.Payload); err != nil {
			t.Fatal(err)
		}
	}
	b, err := New(cfg, replay.Start())
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// A process that ends between its first view and its first change has no table yet. What it begins with then must be a table
// of as many buckets as there are, or it would send every name elsewhere for ever.
func TestRestartBeforeTheFirstChange(t *testing.T) {
	w := newWorld(t, 1)
	h := w.nodes[0]
	w.round(h)
	if h.b.Table().Seq() != 0 || len(h.records) != 1 {
		t.Fatalf("expected a state and no change, got %d records and %d changes", len(h.records), h.b.Table().Seq())
	}
	h.b = restarted(t, w.config(h), h.records)
	if err := h.b.Chain().Install(chain.View{Epoch: 2, Chain: w.view.Chain, InSync: 1}); err != nil {
		t.Fatal(err)
	}
	h.b.Chain().Applied(w.change)
	w.pass(0, func(*host) bool { return true })
	w.round(h)
	if !h.turn || h.b.Table().Buckets() != 8 {
		t.Fatalf("it is the primary: %v, of %d buckets", h.turn, h.b.Table().Buckets())
	}
	name := "n"
	for i := 0; subjects.BucketOf(name, 8) != 3; i++ {
		name += "n"
	}
	a := &ask{user: "u", reply: "_INBOX.a"}
	a.req = subjects.Request{Op: subjects.OpAcquire, Name: name}
	if turned := w.send(a); turned != Taken {
		t.Fatalf("the request is turned away: %d", turned)
	}
}

// A primary that loses its place before it may act again in an epoch that began anew with it is a replica like any other: it
// takes its successor's changes.
func TestDemotedBeforeItActsAgain(t *testing.T) {
	w, h := alone(t)
	h.b.Chain().Seal(w.view.Epoch)
	w.round(h)
	w.now += nodeLease // it may not act
	again := w.view.Clone()
	again.Epoch++
	w.commit(again)
	w.round(h)
	if h.b.Turned() != Later {
		t.Fatalf("turned %d", h.b.Turned())
	}
	h.b.Wait("mark")
	w.commit(chain.View{Epoch: again.Epoch + 1, Chain: []chain.Member{{Node: 2, Inc: 1}, h.b.Chain().Self()}, InSync: 1})
	w.round(h)
	if h.b.Table().Primary() || h.turn || w.lost != 1 {
		t.Fatalf("primary %v, asked %v, %d marks lost", h.b.Table().Primary(), h.turn, w.lost)
	}
}

// pair is two nodes with a bucket that both have, the first one being its primary.
func pair(t *testing.T) (w *world, p, s *host) {
	t.Helper()
	w = newWorld(t, 2)
	w.settle(40)
	if w.view.InSync != 2 || w.view.Primary().Node != 1 {
		t.Fatal(w.view)
	}
	return w, w.nodes[0], w.nodes[1]
}

// settle lets time go by in which everything arrives.
func (w *world) settle(steps int) {
	for range steps {
		w.pass(5*ms, func(*host) bool { return true })
		for _, h := range w.nodes {
			w.round(h)
		}
		for len(w.net) > 0 {
			w.deliver(0)
		}
	}
}

func (w *world) query(id, name string) *ask {
	a := &ask{user: "u" + id, reply: "_INBOX." + id, req: subjects.Request{Op: subjects.OpQuery, Name: name}}
	w.asked[id] = a
	w.order = append(w.order, id)
	w.send(a)
	return a
}

// A planned hand-over leaves no request without an answer, also of those that change nothing and that a successor does not
// know of.
func TestAHandOverLeavesNobodyWaiting(t *testing.T) {
	w, p, s := pair(t)
	w.acquire("a", "n", 0)
	q := w.query("q", "n")
	if err := p.b.Chain().HandOver(s.b.Chain().Self()); err != nil {
		t.Fatal(err)
	}
	w.settle(40)
	if w.view.Primary().Node != 2 || !s.turn {
		t.Fatal(w.view)
	}
	if w.asked["a"].grant == nil || q.told == "" {
		t.Fatalf("acquire: %q, query: %q", w.asked["a"].told, q.told)
	}
}

// A reply whose change was not confirmed when its primary lost the place is given if that one takes over again, and not told
// otherwise: its successor did not live to.
func TestRepliesOfAPrimaryThatComesBack(t *testing.T) {
	w, p, s := pair(t)
	w.acquire("a", "n", 0)
	w.acquire("b", "n", 0)
	q := w.query("q", "n")
	w.round(p)
	if w.asked["a"].told != "" {
		t.Fatal("told before it was confirmed")
	}
	w.net = nil
	chain01 := w.view.Chain
	p.b.Chain().Seal(w.view.Epoch)
	w.commit(chain.View{Epoch: w.view.Epoch + 1, Chain: []chain.Member{chain01[1], chain01[0]}, InSync: 2})
	w.round(p)
	if !q.again || q.told != "" || w.asked["a"].again {
		t.Fatalf("who asked for nothing that the other one knows is told %q, and to ask again: %v", q.told, q.again)
	}
	s.b = nil
	w.commit(chain.View{Epoch: w.view.Epoch + 1, Chain: []chain.Member{chain01[0]}, InSync: 1})
	w.pass(ms, func(*host) bool { return true })
	for range 3 {
		w.round(p)
	}
	if w.asked["a"].grant == nil {
		t.Fatalf("the grant is not told: %q", w.asked["a"].told)
	}
	if w.asked["b"].told == "" {
		t.Fatal("what the other one was told is remembered, and was not told")
	}
}

// A grant that was never confirmed, and comes back in a recovery, is not told in it: another one may trust a grant of the history that is
// lost. Who asks again has it when the recovery is over.
func TestARecoveryTellsNoGrantAgain(t *testing.T) {
	for _, how := range []string{"restarted", "demoted", "not told of the view between"} {
		w, p, s := pair(t)
		members := w.view.Chain
		w.acquire("a", "n", 0)
		w.round(p)
		was := p.b
		if how == "demoted" {
			p.b.Chain().Seal(w.view.Epoch)
		} else {
			p.b, p.turn = nil, false
		}
		w.net = nil
		w.commit(chain.View{Epoch: w.view.Epoch + 1, Chain: members[1:], InSync: 1})
		w.round(p)
		for range 3 {
			w.pass(ms, func(*host) bool { return true })
			w.round(s)
		}
		w.acquire("b", "n", 0)
		w.round(s)
		if w.asked["b"].grant == nil || w.asked["a"].told != "" {
			t.Fatalf("the second primary says %q, the first one said %q", w.asked["b"].told, w.asked["a"].told)
		}
		w.net, s.b, s.turn, w.tokens = nil, nil, false, map[string]uint64{}
		if how == "not told of the view between" {
			p.b, p.turn = was, true
			p.b.Tick(w.clock())
		}
		w.commit(chain.View{Epoch: w.view.Epoch + 1, Chain: members[:1], InSync: 1, Recovery: true})
		if how == "restarted" {
			w.start(p)
		}
		rounds := func(n int) {
			for range n {
				w.pass(100*ms, func(*host) bool { return true })
				w.round(p)
				w.send(w.asked["a"])
				w.round(p)
			}
		}
		rounds(8)
		if a := w.asked["a"]; a.grant != nil || !a.again || !p.b.recovering {
			t.Errorf("%s: in the recovery (%v) it is told %q", how, p.b.recovering, a.told)
		}
		rounds(8)
		if w.asked["a"].grant == nil || p.b.recovering {
			t.Errorf("%s: after the recovery it is told %q", how, w.asked["a"].told)
		}
	}
}

// In a recovery, a table that is not split yet tells nobody of the end of his wait, who may be waiting at the bucket that has the name
// now. Who waits for a name that is its own hears it when he asks again.
func TestATableThatIsBehindTellsNoEndOfAWait(t *testing.T) {
	w, p, s := pair(t)
	const doubled = 16
	names := map[uint32]string{}
	for i := 0; len(names) < 2; i++ {
		name := fmt.Sprint("n", i)
		if b := subjects.BucketOf(name, doubled); b%8 == 3 {
			names[b] = name
		}
	}
	s.b = nil
	w.net = nil
	p.b.Grow(w.clock(), doubled, false)
	p.b.Chain().Seal(w.view.Epoch)
	w.commit(chain.View{Epoch: w.view.Epoch + 1, Chain: []chain.Member{{Node: 2, Inc: 9}}, InSync: 1})
	w.round(p)
	w.commit(chain.View{Epoch: w.view.Epoch + 1, Chain: []chain.Member{p.b.Chain().Self()}, InSync: 1, Recovery: true})
	for range 3 {
		w.pass(ms, func(*host) bool { return true })
		w.round(p)
	}
	w.acquire("own", names[3], 300*time.Millisecond)
	w.acquire("moved", names[3+8], 300*time.Millisecond)
	for range 6 {
		w.pass(100*ms, func(*host) bool { return true })
		w.round(p)
	}
	if !p.b.recovering || p.b.Table().Usage(testZone).Waiters != 0 {
		t.Fatalf("recovering %v, %+v", p.b.recovering, p.b.Table().Usage(testZone))
	}
	for id, a := range w.asked { // order: each by itself
		if a.told != "" || a.again {
			t.Errorf("%s is told %q (again: %v)", id, a.told, a.again)
		}
	}
	w.send(w.asked["own"])
	w.round(p)
	if a := w.asked["own"]; !strings.Contains(a.told, `"code":408`) {
		t.Errorf("who asks again is told %q", a.told)
	}
}

// Whatever beginning of its records has come to the journal: a copy that has thrown everything away is another member.
func TestAnEndBetweenTwoRecords(t *testing.T) {
	w, h := alone(t)
	self := h.b.Chain().Self()
	had := len(h.records)
	h.b.Chain().Seal(w.view.Epoch)
	w.commit(chain.View{Epoch: w.view.Epoch + 1, Chain: []chain.Member{{Node: 2, Inc: 1}, self}, InSync: 1})
	w.round(h)
	if err := h.b.Chain().Leave(); err != nil {
		t.Fatal(err)
	}
	w.commit(chain.View{Epoch: w.view.Epoch + 1, Chain: []chain.Member{{Node: 2, Inc: 1}}, InSync: 1})
	w.round(h)
	if h.b.Table().Seq() != 0 {
		t.Fatal("nothing is thrown away")
	}
	for n := had; n <= len(h.records); n++ {
		b := restarted(t, w.config(h), h.records[:n])
		if b.Table().Seq() == 0 && b.Chain().Self() == self {
			t.Fatalf("after record %d of %d it is %v, with nothing", n, len(h.records), self)
		}
	}
}
