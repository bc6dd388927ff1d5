package replicated

import (
	"testing"

	"github.com/opencluster/oclocks/bucket"
	"github.com/opencluster/oclocks/bucket/chain"
)

// splitTable is bucket 1 of 2 after it was split, and its half.
func splitTable(t *testing.T, of uint32) (kept, half *bucket.Table) {
	t.Helper()
	table := bucket.New(bucket.Config{Bucket: of - 1, Buckets: of})
	var out bucket.Output
	if err := table.Promote(bucket.Now{}, bucket.Term{Epoch: 1, Term: 1}, 0, &out); err != nil {
		t.Fatal(err)
	}
	table.Step(bucket.Now{}, &bucket.Input{Kind: bucket.Split, Buckets: 2 * of}, &out)
	if out.Other == nil {
		t.Fatal("not split")
	}
	return table, out.Other
}

// What a bucket begins with at a start, in every order in which a doubling may have come to the journal.
func TestBegins(t *testing.T) {
	whole := func(table *bucket.Table) Start { return Start{Table: table, Number: 1} }
	pending := func(table, half *bucket.Table) Start {
		return Start{Table: table, Number: 1, Halves: []Half{{Seq: 2, Table: half}}}
	}
	empty := func(inc uint64, spoiled error) Start {
		self := chain.Member{Node: 7, Inc: inc}
		return Start{Table: bucket.New(bucket.Config{Bucket: 1, Buckets: 1 << 16}), Number: 1, Spoiled: spoiled, Chain: chain.Start{State: chain.State{Self: self}}}
	}
	unsplit := bucket.New(bucket.Config{Bucket: 1, Buckets: 2})
	var out bucket.Output
	if err := unsplit.Promote(bucket.Now{}, bucket.Term{Epoch: 1, Term: 1}, 0, &out); err != nil {
		t.Fatal(err)
	}
	kept, half := splitTable(t, 2)
	own := chain.Member{Node: 7, Inc: 3 << 32}
	other := func(number uint32) chain.Member { return chain.Member{Node: 7, Inc: missedInc(number, 3)} }
	for name, c := range map[string]struct {
		starts Past
		number uint32
		self   chain.Member
		later  bool
		old    bool // the bucket was there from the beginning
	}{
		"a new node":                 {number: 3, self: own},
		"only a state":               {starts: Past{1: whole(bucket.New(bucket.Config{Bucket: 1, Buckets: 1 << 16}))}, number: 3, self: other(3)},
		"only a state, no half":      {starts: Past{1: whole(bucket.New(bucket.Config{Bucket: 1, Buckets: 1 << 16}))}, number: 3, self: own, old: true},
		"nothing that it comes from": {starts: Past{2: empty(3<<32+1, nil)}, number: 3, self: own},
		"not known to be confirmed":  {starts: Past{1: empty(3<<32, nil)}, number: 3, self: other(3)},
		"born in a recovery":         {starts: Past{0: whole(unsplit)}, number: 1, self: other(1)},
		"begun anew, no half":        {starts: Past{1: empty(3<<32+1, nil)}, number: 3, self: own, old: true},
		"begun anew":                 {starts: Past{1: empty(3<<32+1, nil)}, number: 3, self: other(3)},
		"its half begun anew":        {starts: Past{1: empty(3<<32+1, nil)}, number: 7, self: other(7)},
		"a half that was missed":     {starts: Past{1: empty(missedInc(1, 3), nil)}, number: 3, self: other(3)},
		"a copy that is spoiled":     {starts: Past{1: empty(3<<32, ErrRecord)}, number: 3, self: other(3)},
		"begun anew, another split":  {starts: Past{0: empty(3<<32+1, nil), 3: whole(half)}, number: 2, self: other(2)},
		"there from the beginning":   {starts: Past{1: whole(unsplit)}, number: 0, self: own},
		"has records":                {starts: Past{1: whole(kept), 3: whole(half)}, number: 3, self: own},
		"not split yet":              {starts: Past{1: whole(unsplit)}, number: 3, later: true},
		"split, half to come":        {starts: Past{1: pending(kept, half)}, number: 3, later: true},
		"split, half gone":           {starts: Past{1: whole(kept)}, number: 3, self: other(3)},
		"the other one's half":       {starts: Past{1: pending(kept, half)}, number: 2, self: other(2)},
		"half of a half, to come":    {starts: Past{1: pending(kept, half)}, number: 7, later: true},
		"half of a half, not split":  {starts: Past{1: whole(kept), 3: whole(half)}, number: 7, later: true},
		"half of a half that is not": {starts: Past{1: whole(kept)}, number: 7, self: other(7)},
	} {
		_, self, ok := c.starts.Begin(c.number, !c.old, 7, 3)
		if ok == c.later || ok && self != c.self {
			t.Errorf("%s: %v %v", name, self, ok)
		}
	}
}

// TestMissedTwice: a bucket's copy missed its half, joined, and was in the chain when the bucket was split again. The views name it as a
// copy of the new bucket too, so one that misses this half must be another, however often the first one has begun anew (seed 7710369).
func TestMissedTwice(t *testing.T) {
	for number := uint32(1); number < 1<<12; number++ {
		child := &Fork{Bucket: number}
		for parent := ParentOf(number); ; parent = ParentOf(parent) {
			named := chain.Member{Node: 7, Inc: 3 << 32}
			if parent > 0 {
				named = (&Fork{Bucket: parent}).Self(7, 3)
			}
			named.Inc += 1 << 20 // began anew
			if self := child.Self(7, 3); self.Node != 7 || self.Inc <= named.Inc || self.Inc>>32 != 3 {
				t.Fatalf("bucket %d begins without its half as %v, and %v is what views may name for a copy of bucket %d", number, self, named, parent)
			}
			if parent == 0 {
				break
			}
		}
	}
}
