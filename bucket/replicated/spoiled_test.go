package replicated

import (
	"errors"
	"strings"
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
	if err := replay.Start().Spoiled; err != nil {
		t.Fatal(err)
	}
	if w.asked["a"].grant == nil || w.asked["b"].grant == nil || p.b.Err() != nil {
		t.Fatal("somebody has no answer")
	}
}

// A primary is not made of such a copy.
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
	if err := replay.Start().Spoiled; err != nil {
		t.Fatal("the journal is as it was: its table takes the change", err)
	}
}

// A node whose journal ends with such a copy starts: the copy is the member that it was, counts for nothing, and begins anew once
// it is dropped; also if the views have it as the primary.
func TestAJournalThatEndsWithASpoiledCopy(t *testing.T) {
	for _, primary := range []bool{false, true} {
		w, p, s := pair(t)
		w.acquire("a", "n", 0)
		w.settle(10)
		if primary {
			p, s = s, p
		}
		replay := NewReplay(w.config(s).Table)
		for _, r := range s.records {
			if err := replay.Add(r.Number, r.Whole, r.Payload); err != nil {
				t.Fatal(err)
			}
		}
		start := replay.Start()
		start.Spoiled, start.Table = errors.New("it does not take it"), nil
		start.Chain.Delivered = start.Chain.Base.Seq
		w.spoils = true
		before := s.b.Chain().Self()
		w.begin(s, start)
		if now := s.b.Chain().Self(); now != before || !s.b.spoiled {
			t.Fatalf("it is %v and was %v, spoiled %t", now, before, s.b.spoiled)
		}
		for range 200 {
			w.settle(1)
			if len(s.reports) > 0 && w.view.Primary() == before && (!w.replace(nil) || w.view.Primary() != p.b.Chain().Self()) {
				t.Fatalf("it is sealed, and nobody takes over: %v", w.view)
			}
			if w.view.Counts(before) && s.b.Chain().Status().Acting {
				t.Fatal("it acts")
			}
		}
		if now := s.b.Chain().Self(); now == before || !w.view.Counts(now) || s.b.spoiled || w.alerts == 0 {
			t.Fatalf("it is %v and was %v, %d alerts\n%s", now, before, w.alerts, w.describe())
		}
		w.spoils = false
		w.acquire("c", "m", 0)
		w.heal()
		w.acquire("d", "k", 0)
		w.heal()
		w.check()
	}
}

// What a table does not take is found when the journal is read, and is told of with the bucket.
func TestAJournalThatATableDoesNotTake(t *testing.T) {
	cfg := bucket.Config{Bucket: 3, Buckets: 8}
	r, err := chain.New(chain.Config{Bucket: 3, Self: chain.Member{Node: 1, Inc: 1 << 32}}, chain.Start{})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Install(chain.View{Epoch: 1, Chain: []chain.Member{r.Self()}, InSync: 1}); err != nil {
		t.Fatal(err)
	}
	r.Grant(chain.Lease{Until: nodeLease})
	r.Ready(1)
	if _, err := r.Propose([]byte("no change of a table")); err != nil {
		t.Fatal(err)
	}
	past, err := ReadPast(func(uint32) bucket.Config { return cfg }, func(take func(uint32, uint64, bool, []byte) error) error {
		for i, c := range r.Ready(2).Append {
			if err := take(3, uint64(i+1), false, appendChange(nil, &c, c.Seq)); err != nil {
				return err
			}
		}
		return take(4, 1, false, []byte{byte(recordDrop)})
	})
	if err != nil || len(past) != 2 || past[4].Spoiled != nil {
		t.Fatal(past, err)
	}
	if err := past.Spoiled(); err == nil || !strings.Contains(err.Error(), "bucket 3") || past[3].Chain.Delivered != 0 || past[3].Table.Seq() != 0 {
		t.Fatalf("%v: %+v", err, past[3])
	}
	_, err = ReadPast(func(uint32) bucket.Config { return cfg }, func(take func(uint32, uint64, bool, []byte) error) error {
		return take(3, 1, false, []byte("?"))
	})
	if !errors.Is(err, ErrRecord) {
		t.Fatal(err)
	}
}
