package replicated

import (
	"testing"

	"github.com/opencluster/oclocks/bucket"
	"github.com/opencluster/oclocks/bucket/chain"
)

// A copy whose table does not take a confirmed change is stopped: it counts for nothing, the primary drops it, and it begins
// anew with a state from the others. Nobody else is disturbed, and its journal can be read afterwards.
func TestAChangeThatATableDoesNotTake(t *testing.T) {
	w, p, s := pair(t)
	w.acquire("a", "n", 0)
	w.settle(10)
	before := s.b.Chain().Self()
	w.spoils = true
	s.b.table = bucket.New(w.config(s).Table) // it is not where it believes to be
	w.acquire("b", "m", 0)
	for n := 0; w.alerts == 0 && n < 50; n++ {
		w.settle(1)
	}
	if !s.b.spoiled || s.b.Chain().Status().Stopped == "" || w.alerts == 0 || s.b.Err() != nil {
		t.Fatalf("spoiled %v, %d alerts, %v\n%s", s.b.spoiled, w.alerts, s.b.Err(), w.describe())
	}
	replay := NewReplay(w.config(s).Table)
	s.b.Image(w.now, "mark") // no snapshot is made of it
	for range 100 {
		w.settle(1)
		if w.view.Counts(before) && s.b.Chain().Status().Acting {
			t.Fatal("it acts")
		}
	}
	if now := s.b.Chain().Self(); now == before || !w.view.Counts(now) || s.b.spoiled {
		t.Fatalf("it is %v and was %v\n%s", now, before, w.describe())
	}
	w.spoils = false
	w.acquire("c", "n", 0)
	w.heal()
	w.acquire("d", "k", 0) // with the next change it hears that the last one is confirmed
	w.heal()
	w.check()
	for _, r := range s.records {
		if err := replay.Add(r.Number, r.Whole, r.Payload); err != nil {
			t.Fatal(err)
		}
	}
	if err := replay.Err(); err != nil {
		t.Fatal(err)
	}
	if w.asked["a"].grant == nil || w.asked["b"].grant == nil || p.b.Err() != nil {
		t.Fatal("somebody has no answer")
	}
}

// A primary is not made of such a copy, and a journal that ends with one says so.
func TestASpoiledCopyIsNoSuccessor(t *testing.T) {
	w, p, s := pair(t)
	w.spoils = true
	s.b.table = bucket.New(w.config(s).Table)
	w.acquire("a", "n", 0)
	w.round(p)
	for len(w.net) > 0 {
		w.deliver(0)
	}
	w.round(s) // it has the change, and does not know that it is confirmed
	p.b = nil
	w.now += nodeLease
	w.net = nil
	if !w.takeover() {
		t.Fatal("nobody takes over")
	}
	w.settle(4)
	if s.turn || !s.b.spoiled || s.b.Turned() == Taken {
		t.Fatalf("it is asked: %v\n%s", s.turn, w.describe())
	}
	s.b.Chain().Seal(w.view.Epoch)
	w.round(s)
	if _, err := chain.Takeover(w.view, chain.First, s.reports); err == nil {
		t.Fatalf("it takes over again: %v", s.reports)
	}
	replay := NewReplay(w.config(s).Table)
	for _, r := range s.records {
		if err := replay.Add(r.Number, r.Whole, r.Payload); err != nil {
			t.Fatal(err)
		}
	}
	if replay.Err() != nil {
		t.Fatal("the journal is as it was: its table takes the change", replay.Err())
	}
}
