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
		Columns: []string{"memory a lock", "to take one", "short lock", "random lock", "query"},
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
		t.add(strconv.Itoa(n)+" held", bytes(f.perLock), nanos(f.toTake), nanos(s/2), nanos(r/2), nanos(q))
	}
	last := len(sizes) - 1
	t.add("last / first", value{}, value{},
		ratio(short[last]/short[0]), ratio(random[last]/random[0]), value{})
	t.note("Processor time, the garbage collector's included, of one Step, half a pair. Short lock: a new name is taken and")
	t.note("released. Random lock: one of those held is released and taken again, so that nothing of it is in the caches.")
	t.note("Goal: last / first at most %.1f.", goalRatio)
	return []table{t}, nil
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

// fill makes a table that holds n static locks, names of about 20 bytes, each with a time limit of its own.
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
