package replicated

import (
	"testing"

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
