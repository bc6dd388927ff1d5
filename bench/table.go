package main

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"time"

	"github.com/opencluster/oclocks/bucket"
	"github.com/opencluster/oclocks/subjects"
)

// goalRatio is how much slower an operation may be with the most locks than with the fewest.
const goalRatio = 1.5

// measureTable measures one lock table alone, without NATS and journal: memory for each held lock, and the time of one
// Step while that many are held.
func measureTable(ctx context.Context) ([]table, error) {
	sizes := []int{1_000, 100_000, 1_000_000}
	if os.Getenv("BENCH_10M") == "1" {
		sizes = append(sizes, 10_000_000)
	}
	t := table{
		Title:   "One lock table: acquire and release while many locks are held",
		Columns: []string{"memory a lock", "beyond its name", "to take one", "short lock", "random lock", "query"},
	}
	var short, random []float64
	for _, n := range sizes {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		f, err := fill(n)
		if err != nil {
			return nil, err
		}
		s, err := timeOf(f.shortPair)
		if err != nil {
			return nil, err
		}
		r, err := timeOf(f.randomPair)
		if err != nil {
			return nil, err
		}
		q, err := timeOf(f.query)
		if err != nil {
			return nil, err
		}
		short, random = append(short, s/2), append(random, r/2)
		t.add(strconv.Itoa(n)+" held", bytes(f.perLock), bytes(f.perLock-float64(len(name(0)))), nanos(f.toTake), nanos(s/2), nanos(r/2), nanos(q))
	}
	last := len(sizes) - 1
	t.add("last / first", nothing, nothing, nothing,
		ratio(short[last]/short[0]), ratio(random[last]/random[0]), nothing)
	t.note("Processor time, the garbage collector's included, of one Step, half a pair. Short lock: a new name is taken and")
	t.note("released. Random lock: one of those held is released and taken again, so that nothing of it is in the caches.")
	t.note("Goal: last / first at most %.1f.", goalRatio)
	waiters, err := measureWaiters()
	return []table{t, waiters}, err
}

// measureWaiters measures what a waiter takes, with the reply subject, request and holder that the Go client sends.
func measureWaiters() (table, error) {
	const locks, waiters = 1_000, 100_000
	t := table{Title: "One lock table: memory of what waits, and of what was", Columns: []string{"memory"}}
	f, err := fill(locks)
	if err != nil {
		return t, err
	}
	before := heap()
	for i := range waiters {
		f.req = subjects.Request{Op: subjects.OpAcquire, Name: name(i % locks), Slots: 1, Take: 1, Wait: time.Hour,
			Holder: "worker-" + strconv.Itoa(i%locks), Session: "-", Number: uint64(i/locks + 1), Kind: subjects.Connection}
		f.in = bucket.Input{Zone: "default", User: "anyone", Reply: "_INBOX.sJ3kQ0V2mZ1x." + strconv.Itoa(i), Req: &f.req, Key: key(i),
			Session: bucket.Session{ID: fmt.Sprintf("s%010d", i%locks), Incarnation: 1, Lease: time.Hour}}
		f.now.Boot += 1000
		f.out.Effects = f.out.Effects[:0]
		if f.table.Step(f.now, &f.in, &f.out); f.table.Usage("default").Waiters != i+1 {
			return t, fmt.Errorf("request %d does not wait", i)
		}
	}
	t.add("a waiter", bytes((heap()-before)/waiters))
	runtime.KeepAlive(f)
	busy, idle, err := zoneThatWasBusy()
	if err != nil {
		return t, err
	}
	t.add("a zone that was busy, in one bucket", bytes(busy))
	t.add("the same ten minutes later", bytes(idle))
	t.note("A zone: %d locks of each of many zones were taken and given back, with ids that are remembered for two minutes.", busyPairs)
	t.note("%d waiters of %d sessions on %d locks, the sessions included. Goal: 600 B.", waiters, locks, locks)
	return t, nil
}

const busyPairs = 3_000 // in each zone

// zoneThatWasBusy is what a table keeps of a zone in which many locks were taken and given back, at once and when that is long ago.
func zoneThatWasBusy() (busy, idle float64, err error) {
	const zones = 100
	f, err := fill(0)
	if err != nil {
		return 0, 0, err
	}
	if err := f.shortPair(); err != nil { // what all zones share is there then
		return 0, 0, err
	}
	before := heap()
	for z := range zones {
		for i := range busyPairs {
			zone := "zone-" + strconv.Itoa(z)
			f.request(zone, i)
			if err := f.step(); err != nil {
				return 0, 0, err
			}
			f.req = subjects.Request{Op: subjects.OpRelease, Name: name(i), Has: subjects.HasKey, Key: key(i)}
			f.in = bucket.Input{Zone: zone, User: "anyone", Reply: "_INBOX.bench.1", Req: &f.req}
			if err := f.step(); err != nil {
				return 0, 0, err
			}
		}
	}
	busy = (heap() - before) / zones
	f.now.Boot += int64(11 * time.Minute)
	for f.table.Next() <= f.now.Boot {
		f.out.Effects = f.out.Effects[:0]
		f.table.Step(f.now, &bucket.Input{Kind: bucket.Tick}, &f.out)
	}
	idle = (heap() - before) / zones
	runtime.KeepAlive(f)
	return busy, idle, nil
}

// request is an acquire with an id of its own.
func (f *filled) request(zone string, i int) {
	f.req = subjects.Request{Op: subjects.OpAcquire, Name: name(i), Kind: subjects.Static, Has: subjects.HasTTL, TTL: time.Minute, Slots: 1, Take: 1,
		RequestID: "request-" + strconv.Itoa(i)}
	f.in = bucket.Input{Zone: zone, User: "anyone", Reply: "_INBOX.bench.1", Req: &f.req, Key: key(i)}
}

// filled is a table that holds many locks.
type filled struct {
	table   *bucket.Table
	now     bucket.Now
	out     bucket.Output
	req     subjects.Request
	in      bucket.Input
	random  *rand.Rand
	n       int
	fresh   int
	perLock float64 // bytes of heap
	toTake  float64 // nanoseconds for each, while the table grew
}

// fill makes a table that holds n static locks, names of 17 bytes, each with a time limit of its own.
func fill(n int) (*filled, error) {
	f := &filled{now: bucket.Now{Boot: 1, Wall: 1_800_000_000_000}, random: rand.New(rand.NewPCG(1, 2)), n: n}
	before := heap()
	seed := maphash.MakeSeed()
	f.table = bucket.New(bucket.Config{Buckets: 1, Hash: func(name string) uint64 { return maphash.String(seed, name) }})
	if err := f.table.Promote(f.now, bucket.Term{Epoch: 1, Term: 1}, 0, &f.out); err != nil {
		return nil, fmt.Errorf("promote the table: %w", err)
	}
	begin, err := processorTime()
	if err != nil {
		return nil, err
	}
	for i := range n {
		if err := f.acquire(name(i), key(i)); err != nil {
			return nil, fmt.Errorf("take lock %d: %w", i, err)
		}
	}
	end, err := processorTime()
	if err != nil {
		return nil, err
	}
	f.toTake = float64((end - begin).Nanoseconds()) / float64(n)
	f.perLock = (heap() - before) / float64(n)
	return f, nil
}

func name(i int) string { return "orders/" + strconv.Itoa(1_000_000_000+i) }
func key(i int) uint64  { return uint64(i)*0x9e3779b97f4a7c15 | 1 }

// heap is the live heap in bytes.
func heap() float64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

func (f *filled) acquire(name string, key uint64) error {
	f.req = subjects.Request{Op: subjects.OpAcquire, Name: name, Kind: subjects.Static, Has: subjects.HasTTL,
		TTL: time.Minute + time.Duration(key%3_600)*time.Second, Slots: 1, Take: 1}
	f.in = bucket.Input{Zone: "default", User: "anyone", Reply: "_INBOX.bench.1", Req: &f.req, Key: key}
	return f.step()
}

func (f *filled) release(name string, key uint64) error {
	f.req = subjects.Request{Op: subjects.OpRelease, Name: name, Has: subjects.HasKey, Key: key}
	f.in = bucket.Input{Zone: "default", User: "anyone", Reply: "_INBOX.bench.1", Req: &f.req}
	return f.step()
}

// step does one Step; time goes on by a microsecond with each.
func (f *filled) step() error {
	f.now.Boot += 1000
	f.out.Effects = f.out.Effects[:0]
	f.table.Step(f.now, &f.in, &f.out)
	if len(f.out.Effects) == 0 {
		return errors.New("the table gave no answer")
	}
	if refusal, ok := f.out.Effects[0].Body.(*subjects.Refusal); ok {
		return refusal
	}
	return nil
}

func (f *filled) shortPair() error {
	f.fresh++
	name, key := "short/"+strconv.Itoa(f.fresh), key(f.n+f.fresh)
	if err := f.acquire(name, key); err != nil {
		return err
	}
	return f.release(name, key)
}

func (f *filled) randomPair() error {
	i := f.random.IntN(f.n)
	if err := f.release(name(i), key(i)); err != nil {
		return err
	}
	return f.acquire(name(i), key(i))
}

func (f *filled) query() error {
	f.req = subjects.Request{Op: subjects.OpQuery, Name: name(f.random.IntN(f.n))}
	f.in = bucket.Input{Zone: "default", User: "anyone", Reply: "_INBOX.bench.1", Req: &f.req}
	return f.step()
}
