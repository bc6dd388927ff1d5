package bucket

import (
	"fmt"
	"testing"
	"time"

	"github.com/opencluster/oclocks/subjects"
)

// followed is a table with a replica, which applies its changes.
type followed struct {
	*load
	copy    *Table
	applied Output
	follow  bool
	number  uint64 // of the last request in a session
}

func newFollowed(b testing.TB) *followed {
	f := &followed{load: newLoad(b), copy: New(Config{Buckets: 1, Journaled: true}), follow: true}
	f.apply()
	return f
}

func (f *followed) apply() {
	f.applied.Effects = f.applied.Effects[:0]
	if err := f.copy.Apply(f.out.Change, &f.applied); err != nil {
		f.b.Fatal(err)
	}
}

// pair takes a lock and releases it, in a session as a client does that waits for each answer.
func (f *followed) pair(inSession bool) {
	for _, op := range [...]subjects.Op{subjects.OpAcquire, subjects.OpRelease} {
		r := subjects.Request{Op: op, Name: "orders/4711", Take: 1}
		f.in.Key = 7
		if op == subjects.OpRelease {
			r.Has, r.Key = subjects.HasKey, 7
		}
		if inSession {
			f.number++
			r.Number, r.Done = f.number, f.number
		} else if op == subjects.OpAcquire {
			r.Kind, r.Has, r.TTL = subjects.Static, subjects.HasTTL, time.Minute
		}
		f.request(r)
		if f.follow {
			f.apply()
		}
	}
}

// TestAllocationsOfAPair holds what a lock and its release make: on the primary the two answers, on a replica a text for each change
// and its answer, all of which live on for some seconds. Nothing more, however many requests are remembered and forgotten.
func TestAllocationsOfAPair(t *testing.T) {
	for _, inSession := range []bool{false, true} {
		for _, follow := range []bool{false, true} {
			t.Run(fmt.Sprintf("session=%v/replica=%v", inSession, follow), func(t *testing.T) {
				f := newFollowed(t)
				if f.follow = follow; inSession {
					f.in.Session = benchSession(1)
				}
				most := 2.0
				if follow {
					most = 2 + 4
				}
				for range 100 {
					f.pair(inSession)
				}
				if got := testing.AllocsPerRun(1000, func() { f.pair(inSession) }); got > most {
					t.Errorf("%v allocations for a pair, want %v", got, most)
				}
			})
		}
	}
}

// BenchmarkApply is a pair on a replica, and before it on its primary.
func BenchmarkApply(b *testing.B) {
	for _, inSession := range []bool{false, true} {
		b.Run(fmt.Sprintf("session=%v", inSession), func(b *testing.B) {
			f := newFollowed(b)
			if inSession {
				f.in.Session = benchSession(1)
			}
			b.ReportAllocs()
			for b.Loop() {
				f.pair(inSession)
			}
		})
	}
}

// TestAReplicaKeepsNoChange: what a table keeps of a change that it applies is its own, however the bytes are read.
func TestAReplicaKeepsNoChange(t *testing.T) {
	f := newFollowed(t)
	for i := range 40 {
		f.in.User = fmt.Sprint("user-", i%3)
		f.in.Session, f.in.Key = Session{}, benchKey(i)
		switch i % 4 {
		case 0:
			f.request(subjects.Request{Op: subjects.OpAcquire, Name: fmt.Sprint("orders/with/a/name/that/is/rather/long/", i), Take: 1,
				RequestID: fmt.Sprint("id-", i), Holder: fmt.Sprint("holder ", i)})
		default:
			f.in.Session = benchSession(i % 5)
			f.in.User = fmt.Sprint("user of ", f.in.Session.ID)
			f.number++
			f.request(subjects.Request{Op: subjects.OpAcquire, Name: "wanted", Number: f.number, Wait: time.Hour, Take: 1, Data: []byte("data"),
				Holder: fmt.Sprint("holder ", i%2)})
		}
		change := append([]byte(nil), f.out.Change...)
		f.out.Change = change
		f.apply()
		clear(change) // whoever kept a part of it has something else now
		if err := verify(f.copy); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := string(f.copy.AppendSnapshot(nil)), string(f.table.AppendSnapshot(nil)); got != want {
		t.Errorf("the replica is\n%s\nnot\n%s", f.copy.Describe(), f.table.Describe())
	}
}
