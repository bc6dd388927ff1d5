package bucket

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/opencluster/oclocks/subjects"
)

// Splitting gives every name, with its holders, waiters and remembered requests, to exactly one half; a replica gets the
// same halves; and both go on as if they had always been two.
func TestSplitGivesEveryNameToOneHalf(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := Config{Bucket: 1, Buckets: 4}
		primary, replica := New(cfg), New(cfg)
		now := Now{Boot: 1e9, Wall: 1}
		var out Output
		apply := func() {
			if len(out.Change) > 0 {
				if err := replica.Apply(out.Change, &Output{}); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := primary.Promote(now, Term{Epoch: 1, Term: 1}, 0, &out); err != nil {
			t.Fatal(err)
		}
		apply()
		var names []string
		for i := 0; len(names) < 20; i++ {
			if name := fmt.Sprint("n", i); subjects.BucketOf(name, 4) == 1 {
				names = append(names, name)
			}
		}
		key := uint64(0)
		ask := func(table *Table, name string, session Session, number uint64) {
			key++
			req := subjects.Request{Op: subjects.OpAcquire, Name: name, Number: number, Wait: time.Hour, Has: subjects.HasWait}
			if session.ID == "" {
				req.Kind, req.RequestID, req.Number = subjects.Static, fmt.Sprint("r", number), 0
			} else {
				req.Session = session.ID
			}
			table.Step(now, &Input{Zone: "z", User: "u", Reply: fmt.Sprint("_INBOX.", key), Session: session, Req: &req, Key: key}, &out)
		}
		sessions := []Session{{}, {ID: "AAAAAAAAAAA", Incarnation: 1, Lease: time.Minute}, {ID: "BBBBBBBBBBB", Incarnation: 1, Lease: time.Minute}}
		held := make(map[string]int)
		for n := range rapid.IntRange(0, 60).Draw(t, "requests") {
			name := rapid.SampledFrom(names).Draw(t, "name")
			ask(primary, name, rapid.SampledFrom(sessions).Draw(t, "session"), uint64(n+1))
			apply()
			held[name]++
		}
		before := primary.Totals()
		primary.Step(now, &Input{Kind: Split, Buckets: 8}, &out)
		if primary.Err() != nil || out.Other == nil {
			t.Fatalf("split: %v", primary.Err())
		}
		other := out.Other
		var copied Output
		if err := replica.Apply(out.Change, &copied); err != nil {
			t.Fatal(err)
		}
		same(t, primary, replica)
		same(t, other, copied.Other)
		for _, table := range []*Table{primary, other, replica} {
			if err := verify(table); err != nil {
				t.Fatal(err)
			}
		}
		sum, half := primary.Totals(), other.Totals()
		if sum.Names+half.Names != before.Names || sum.Holds+half.Holds != before.Holds || sum.Waiters+half.Waiters != before.Waiters {
			t.Fatalf("%+v and %+v of %+v", sum, half, before)
		}
		if err := other.Promote(now, Term{Epoch: 2, Term: 2}, 0, &out); err != nil {
			t.Fatal(err)
		}
		for name := range held { // order: each is asked by itself
			table := primary
			if subjects.BucketOf(name, 8) == 5 {
				table = other
			}
			recs, _, _ := table.List("z", &subjects.Request{Op: subjects.OpList, Prefix: name, Limit: 100}, now)
			if len(recs) == 0 || recs[0].Name != name {
				t.Fatalf("%s is not where it belongs", name)
			}
		}
		// A request from before the split is answered the same where its name is now.
		for _, table := range []*Table{primary, other} {
			out.Effects = out.Effects[:0]
			for _, name := range names {
				if subjects.BucketOf(name, 8) == table.cfg.Bucket {
					ask(table, name, sessions[1], 1000)
					break
				}
			}
			if err := verify(table); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func same(t *rapid.T, a, b *Table) {
	if string(a.AppendSnapshot(nil)) != string(b.AppendSnapshot(nil)) {
		t.Fatalf("two copies differ:\n%s\n%s", a.Describe(), b.Describe())
	}
}
