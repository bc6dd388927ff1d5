package bucket

import (
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/opencluster/oclocks/subjects"
)

// The benchmarks of one table, the largest room of the hot path. OCLOCKS_BENCH_LARGE=1 adds ten million held locks, which
// need 2 GB.

func benchCounts() []int {
	counts := []int{1_000, 1_000_000}
	if os.Getenv("OCLOCKS_BENCH_LARGE") != "" {
		counts = append(counts, 10_000_000)
	}
	return counts
}

// BenchmarkStep measures one Step, by pairs, while a number of static locks are held: short is an acquire of a new name and
// its release, random the release of one of those held and its acquire, query a look at one of them, keep a keep-alive of one
// of a thousand sessions.
func BenchmarkStep(b *testing.B) {
	for _, held := range benchCounts() {
		var l *load
		fill := func(b *testing.B) { // once, and only if one of its benchmarks is asked for
			if l == nil {
				l = newLoad(b)
				l.hold(held)
			}
			b.ReportAllocs()
			b.ResetTimer()
		}
		b.Run(fmt.Sprintf("short/held=%d", held), func(b *testing.B) {
			fill(b)
			for i := range b.N {
				name := fresh[i%len(fresh)]
				l.acquire(name, 7)
				l.release(name, 7)
			}
		})
		b.Run(fmt.Sprintf("random/held=%d", held), func(b *testing.B) {
			fill(b)
			for range b.N {
				i := l.random.IntN(held)
				l.release(l.held[i], benchKey(i))
				l.acquire(l.held[i], benchKey(i))
			}
		})
		b.Run(fmt.Sprintf("query/held=%d", held), func(b *testing.B) {
			fill(b)
			for range b.N {
				l.request(subjects.Request{Op: subjects.OpQuery, Name: l.held[l.random.IntN(held)]})
			}
		})
	}
	b.Run("keep", func(b *testing.B) {
		l := newLoad(b)
		sessions := l.withSessions(1000)
		for i := range b.N {
			l.now.Boot += 1000
			if _, _, known, _ := l.table.Keep(l.now, "default", sessions[i%1000], uint64(i)); !known {
				b.Fatal("a session is not known")
			}
		}
	})
}

// BenchmarkMemory tells the live heap, in bytes, for each held lock, waiter and session of a table: names, reply subjects and
// the like included, which all are strings of their own as they are from the edge. A lock's name has 17 bytes.
func BenchmarkMemory(b *testing.B) {
	const n = 100_000
	measure := func(what string, prepare, fill func(l *load)) {
		b.Run(what, func(b *testing.B) {
			for range b.N {
				l := newLoad(b)
				prepare(l)
				before := heap()
				fill(l)
				b.ReportMetric(float64(heap()-before)/n, "B/"+what)
				runtime.KeepAlive(l)
			}
		})
	}
	nothing := func(*load) {}
	measure("lock", nothing, func(l *load) { l.hold(n); l.held = nil })
	measure("session", nothing, func(l *load) { l.withSessions(n) })
	measure("waiter", func(l *load) { l.hold(n / 100); l.withSessions(1000) }, func(l *load) {
		for i := range n {
			l.in.Session = benchSession(i % 1000)
			l.in.Reply = "_INBOX.sJ3kQ0V2mZ1x" + strconv.Itoa(i) + ".7"
			l.request(subjects.Request{
				Op: subjects.OpAcquire, Name: l.held[i%len(l.held)], Number: uint64(i/1000 + 2), Wait: time.Hour,
				Holder: "worker-" + strconv.Itoa(i%1000),
			})
		}
	})
}

// BenchmarkWhole measures what looks at every lock: nanoseconds for each of a hundred thousand.
func BenchmarkWhole(b *testing.B) {
	const n = 100_000
	l := newLoad(b)
	l.hold(n)
	l.random.Shuffle(n, func(i, j int) { l.held[i], l.held[j] = l.held[j], l.held[i] })
	image := l.table.AppendSnapshot(nil)
	each := func(b *testing.B) { b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/lock") }
	b.Run("snapshot", func(b *testing.B) {
		for range b.N {
			image = l.table.AppendSnapshot(image[:0])
		}
		each(b)
	})
	b.Run("restore", func(b *testing.B) {
		for range b.N {
			if err := New(Config{}).Restore(image); err != nil {
				b.Fatal(err)
			}
		}
		each(b)
	})
	b.Run("list", func(b *testing.B) {
		for range b.N {
			req := subjects.Request{Limit: 1000}
			for done := false; !done; {
				_, req.After, done = l.table.List("default", &req, l.now)
			}
		}
		each(b)
	})
}

// load is a table that is being asked.
type load struct {
	b      testing.TB
	table  *Table
	out    Output
	in     Input
	req    subjects.Request
	now    Now
	held   []string
	random *rand.Rand
}

func newLoad(b testing.TB) *load {
	seed := maphash.MakeSeed()
	l := &load{b: b, now: Now{Boot: int64(time.Hour), Wall: 1_790_000_000_000}, random: rand.New(rand.NewPCG(1, 2))}
	l.table = New(Config{Buckets: 1, Journaled: true, Hash: func(name string) uint64 { return maphash.String(seed, name) }})
	if err := l.table.Promote(l.now, Term{Epoch: 1, Term: 1}, 0, &l.out); err != nil {
		b.Fatal(err)
	}
	l.in = Input{Zone: "default", User: "anyone", Reply: "_INBOX.sJ3kQ0V2mZ1x.7", Req: &l.req}
	return l
}

// fresh are names that nobody holds.
var fresh = func() (names [1 << 16]string) {
	for i := range names {
		names[i] = "orders/fresh/" + strconv.Itoa(i)
	}
	return names
}()

func benchKey(i int) uint64 { return uint64(i)*0x9e3779b97f4a7c15 | 1 }

func benchSession(i int) Session {
	return Session{
		ID: fmt.Sprintf("session%04d", i), Incarnation: 1, Lease: time.Minute, Conn: Conn{Server: "NBSERVER" + strconv.Itoa(i/50_000), CID: uint64(i)},
	}
}

// hold takes locks until n are held, each with a time limit of its own.
func (l *load) hold(n int) {
	for i := len(l.held); i < n; i++ {
		name := "orders/" + strconv.Itoa(1_000_000_000+i)
		l.held = append(l.held, name)
		l.acquire(name, benchKey(i))
	}
}

// withSessions makes n sessions known, each by a lock that it holds.
func (l *load) withSessions(n int) (sessions []Session) {
	for i := range n {
		l.in.Session, l.in.Key = benchSession(i), benchKey(i)
		sessions = append(sessions, l.in.Session)
		l.request(subjects.Request{Op: subjects.OpAcquire, Name: "own/" + strconv.Itoa(i), Number: 1})
	}
	l.in.Session = Session{}
	return sessions
}

func (l *load) acquire(name string, key uint64) {
	l.in.Key = key
	ttl := time.Minute + time.Duration(key%3_600)*time.Second
	l.request(subjects.Request{Op: subjects.OpAcquire, Name: name, Kind: subjects.Static, Has: subjects.HasTTL, TTL: ttl, Take: 1})
}

func (l *load) release(name string, key uint64) {
	l.request(subjects.Request{Op: subjects.OpRelease, Name: name, Has: subjects.HasKey, Key: key})
}

func (l *load) request(r subjects.Request) {
	l.req = r
	l.now.Boot += 1000
	l.out.Effects = l.out.Effects[:0]
	l.table.Step(l.now, &l.in, &l.out)
	for _, e := range l.out.Effects {
		if refusal, ok := e.Body.(*subjects.Refusal); ok {
			l.b.Fatal(refusal)
		}
	}
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
