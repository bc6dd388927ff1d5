package replicated

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/opencluster/oclocks/bucket"
	"github.com/opencluster/oclocks/subjects"
)

// BenchmarkPair takes and releases locks in a bucket that has one copy, in batches: the table, the history and its records, and
// the answers that wait for them, without journal and network. An operation is one acquire and its release.
func BenchmarkPair(b *testing.B) {
	for _, batch := range []int{1, 64} {
		b.Run(fmt.Sprintf("batch%d", batch), func(b *testing.B) {
			a := newSingle(b)
			acquires, releases := make([]bucket.Input, batch), make([]bucket.Input, batch)
			for i := range batch {
				key := uint64(i) + 1
				in := bucket.Input{Zone: testZone, User: "anyone", Reply: "_INBOX.sJ3kQ0V2mZ1x.7", Key: key}
				acquires[i], releases[i] = in, in
				name := "orders/" + strconv.Itoa(i)
				acquires[i].Req = &subjects.Request{Op: subjects.OpAcquire, Name: name, Take: 1}
				releases[i].Req = &subjects.Request{Op: subjects.OpRelease, Name: name, Key: key, Has: subjects.HasKey}
			}
			b.ReportAllocs()
			b.ResetTimer()
			for n := 0; n < b.N; n += batch {
				a.ask(acquires)
				a.ask(releases)
			}
		})
	}
}

// BenchmarkRound is what a bucket costs in a round in which it has nothing to do.
func BenchmarkRound(b *testing.B) {
	a := newSingle(b)
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		a.ask(nil)
	}
}

// single is the primary of a chain of one.
type single struct {
	*world
	h *host
}

func newSingle(b *testing.B) *single {
	w := newWorld(b, 1)
	a := &single{w, w.nodes[0]}
	for range 10 {
		w.pass(ms, func(*host) bool { return true })
		w.round(a.h)
	}
	if a.h.b.Turned() != Taken {
		b.Fatal("nobody is the primary")
	}
	return a
}

// ask gives requests to the bucket and waits for their answers.
func (a *single) ask(requests []bucket.Input) {
	a.pass(1000, func(*host) bool { return true })
	now := a.clock()
	for i := range requests {
		if turned := a.h.b.Request(now, &requests[i], nil); turned != Taken {
			a.t.Fatalf("request %d: %d", i, turned)
		}
	}
	a.h.out.Reset()
	a.h.b.Round(now, &a.h.out)
	if got := len(a.h.out.Released); got != len(requests) {
		a.t.Fatalf("%d answers for %d requests", got, len(requests))
	}
	for i := range a.h.out.Released {
		if refusal, ok := a.h.out.Released[i].Effect.Body.(*subjects.Refusal); ok {
			a.t.Fatalf("%v", refusal)
		}
	}
}
