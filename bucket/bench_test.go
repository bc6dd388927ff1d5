package bucket

import (
	"fmt"
	"hash/maphash"
	"os"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/opencluster/oclocks/subjects"
)

// BenchmarkPair measures an acquire and the release of it, of a fresh name each time, while a number of static locks are
// held: all in one table, and spread over 32 of them. bytes/lock is what a held lock takes beyond its name.
//
// OCLOCKS_BENCH_LARGE=1 adds ten million held locks, which needs 3 GB.
func BenchmarkPair(b *testing.B) {
	counts := []int{1_000, 100_000, 1_000_000}
	if os.Getenv("OCLOCKS_BENCH_LARGE") != "" {
		counts = append(counts, 10_000_000)
	}
	for _, tables := range []int{1, 32} {
		for _, held := range counts {
			b.Run(fmt.Sprintf("tables=%d/held=%d", tables, held), func(b *testing.B) { benchmarkPair(b, tables, held) })
		}
	}
}

// load is a number of tables in which names are spread like those of buckets.
type load struct {
	tables []*Table
	out    Output
	in     Input
	req    subjects.Request
	now    Now
}

func newLoad(tables int) *load {
	seed := maphash.MakeSeed()
	l := &load{now: Now{Boot: int64(time.Hour), Wall: 1_790_000_000_000}}
	for i := range tables {
		t := New(Config{
			Bucket: uint32(i), Buckets: uint32(tables), Journaled: true,
			Hash: func(name string) uint64 { return maphash.String(seed, name) },
		})
		if err := t.Promote(l.now, Term{Epoch: 1, Term: 1}, 0, &l.out); err != nil {
			panic(err)
		}
		l.tables = append(l.tables, t)
	}
	l.in = Input{Zone: "default", User: "anyone", Reply: "_INBOX.sJ3kQ0V2mZ1x.7", Req: &l.req}
	return l
}

// names makes n names beforehand, in one piece of memory, as the broker's decoder is not what is measured.
func names(prefix string, n int) []string {
	var text []byte
	ends := make([]int, n)
	for i := range n {
		text = append(text, prefix...)
		text = strconv.AppendInt(text, int64(i), 10)
		ends[i] = len(text)
	}
	all := string(text)
	list := make([]string, n)
	at := 0
	for i, end := range ends {
		list[i] = all[at:end]
		at = end
	}
	return list
}

func (l *load) step(op subjects.Op, name string, key uint64) *Table {
	t := l.tables[subjects.BucketOf(name, uint32(len(l.tables)))]
	l.req = subjects.Request{Op: op, Name: name, Take: 1}
	if op == subjects.OpRelease {
		l.req.Key, l.req.Has = key, subjects.HasKey
	}
	l.in.Key = key
	l.now.Boot += 1000
	l.out.Effects = l.out.Effects[:0]
	t.Step(l.now, &l.in, &l.out)
	return t
}

func benchmarkPair(b *testing.B, tables, held int) {
	fixed := names("orders/held/", held)
	before := heap()
	l := newLoad(tables)
	for i, name := range fixed {
		l.step(subjects.OpAcquire, name, uint64(i)+1)
	}
	perLock := float64(heap()-before) / float64(held)
	fresh := names("orders/fresh/", min(b.N, 1<<20))
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		name := fresh[i&(1<<20-1)]
		key := uint64(held + i + 1)
		l.step(subjects.OpAcquire, name, key)
		l.step(subjects.OpRelease, name, key)
		if _, ok := l.out.Effects[0].Body.(*subjects.Released); !ok {
			b.Fatalf("not released: %s", l.out.Effects[0].Body.AppendJSON(nil))
		}
	}
	b.StopTimer()
	b.ReportMetric(perLock, "bytes/lock")
	runtime.KeepAlive(fixed)
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
