package bucket

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"
	"time"
)

// bytesChooser makes choices out of a fuzzer's bytes; when they are used up, all choices are 0.
func bytesChooser(data []byte) (choose func(n int) int, left func() bool) {
	choose = func(n int) int {
		if len(data) == 0 {
			return 0
		}
		v := int(data[0])
		data = data[1:]
		if n > 256 && len(data) > 0 {
			v = v<<8 | int(data[0])
			data = data[1:]
		}
		return v % n
	}
	return choose, func() bool { return len(data) > 0 }
}

// play feeds a table with what the choices make, and checks after each step what world checks.
func play(t tester, choose func(n int) int, left func() bool) {
	w := newWorld(t, Config{Bucket: 1, Buckets: 2, Journaled: true, Limits: Limits{Queue: 4, Requests: 4}})
	w.setZone("main", ZoneSettings{LockEvents: true})
	g := newGenerator(w, choose)
	for left() {
		switch choose(16) {
		case 0:
			g.pass()
		case 1:
			if s := g.sessions[choose(4)]; choose(3) > 0 {
				w.primary.Keep(w.now, "main", s, uint64(choose(100)))
			}
		case 2:
			if choose(8) == 0 {
				w.takeover(choose(2) == 0, time.Duration(choose(2))*20*time.Second)
			}
		default:
			effects, _ := w.step(g.input())
			g.saw(effects)
		}
		for n := 0; w.primary.Next() <= w.now.Boot; n++ {
			if n > 1000 {
				t.Fatalf("the clock stands at %d and a timer is always due\n%s", w.now.Boot, w.primary.Describe())
			}
			effects, _ := w.step(&Input{Kind: Tick})
			g.saw(effects)
		}
	}
	w.restore()
}

func FuzzSteps(f *testing.F) {
	f.Add([]byte("a quick brown fox jumps over the lazy dog, and over some locks that it holds"))
	f.Fuzz(func(t *testing.T, data []byte) {
		choose, left := bytesChooser(data)
		play(t, choose, left)
	})
}

// TestRandomSteps plays many random scripts.
func TestRandomSteps(t *testing.T) {
	n := 300
	if testing.Short() {
		n = 50
	}
	for seed := range n {
		random := uint64(seed)*0x9e3779b97f4a7c15 + 1
		steps := 2000
		choose := func(n int) int {
			random ^= random << 13
			random ^= random >> 7
			random ^= random << 17
			steps--
			return int(random >> 33 % uint64(n))
		}
		play(t, choose, func() bool { return steps > 0 })
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// corpus gives tables and changes for the fuzzers of what comes from outside: a short random history.
func corpus(f *testing.F, seen func(change, snapshot []byte)) {
	for seed := range uint64(12) {
		random := seed*0x9e3779b97f4a7c15 + 1
		choose := func(n int) int {
			random ^= random << 13
			random ^= random >> 7
			random ^= random << 17
			return int(random >> 33 % uint64(n))
		}
		w := newWorld(f, Config{Bucket: 1, Buckets: 2})
		g := newGenerator(w, choose)
		var changes []byte
		for range 40 {
			g.pass()
			in := g.input()
			if choose(4) == 0 {
				in = &Input{Kind: Tick}
			}
			effects, _ := w.step(in)
			g.saw(effects)
			if n := len(w.out.Change); n > 0 {
				changes = binary.AppendUvarint(changes, uint64(n))
				changes = append(changes, w.out.Change...)
			}
		}
		seen(changes, w.primary.AppendSnapshot(nil))
	}
}

// FuzzApply feeds a replica with changes from anywhere: it refuses them or is in order afterwards.
func FuzzApply(f *testing.F) {
	corpus(f, func(changes, _ []byte) { f.Add(changes) })
	f.Fuzz(func(t *testing.T, changes []byte) {
		table := New(Config{Bucket: 1, Buckets: 2})
		var first Output
		source := New(Config{Bucket: 1, Buckets: 2})
		if err := source.Promote(Now{}, Term{Term: 1, Epoch: 1}, 0, &first); err != nil {
			t.Fatal(err)
		}
		if err := table.Apply(first.Change, &first); err != nil {
			t.Fatal(err)
		}
		for len(changes) > 0 {
			n, used := binary.Uvarint(changes)
			if used <= 0 || n > uint64(len(changes)-used) {
				return
			}
			change := changes[used : used+int(n)]
			changes = changes[used+int(n):]
			var out Output
			if err := table.Apply(change, &out); err != nil {
				if !errors.Is(err, ErrChange) {
					t.Fatal(err)
				}
				// One with the wrong number, or none, has changed nothing.
				if table.Err() != nil {
					return
				}
				continue
			}
			if err := verify(table); err != nil {
				t.Fatalf("%v\n%s", err, drawOps(decodeOps(t, change)))
			}
		}
		again := New(Config{Bucket: 1, Buckets: 2})
		snapshot := table.AppendSnapshot(nil)
		if err := again.Restore(snapshot); err != nil {
			t.Fatalf("%v\n%s", err, table.Describe())
		}
		if !bytes.Equal(snapshot, again.AppendSnapshot(nil)) {
			t.Fatalf("restored:\n%s\nwas:\n%s", again.Describe(), table.Describe())
		}
	})
}

// FuzzRestore gives a table a snapshot from anywhere: it is refused, or the table is in order and can be primary.
func FuzzRestore(f *testing.F) {
	corpus(f, func(_, snapshot []byte) { f.Add(snapshot) })
	f.Fuzz(func(t *testing.T, snapshot []byte) {
		table := New(Config{Bucket: 1, Buckets: 2})
		if err := table.Restore(snapshot); err != nil {
			if !errors.Is(err, ErrSnapshot) {
				t.Fatal(err)
			}
			return
		}
		if err := verify(table); err != nil {
			t.Fatal(err)
		}
		var out Output
		now := Now{Boot: 1}
		if err := table.Promote(now, Term{Term: table.Term().Term + 1}, 0, &out); err != nil {
			return // its term was the last one, or its number
		}
		for range 100 {
			now.Boot = table.Next()
			if now.Boot == never {
				break
			}
			table.Step(now, &Input{Kind: Tick}, &out)
			if table.Err() != nil {
				t.Fatal(table.Err())
			}
		}
		if err := verify(table); err != nil {
			t.Fatal(err)
		}
	})
}
