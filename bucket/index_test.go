package bucket

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

// TestIndexAgainstMap compares the index with a map, with hashes that collide and enough entries to split segments.
func TestIndexAgainstMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var x index
		hashes := map[uint32]uint32{} // by number
		width := rapid.SampledFrom([]uint32{1, 7, 1 << 12, 1 << 31}).Draw(t, "width")
		random := randomChooser(rapid.Uint64().Draw(t, "seed"))
		steps := rapid.SampledFrom([]int{20, 500, 12_000}).Draw(t, "steps")
		if width < 100 {
			steps = min(steps, 500) // all in one place: every step looks at all of them
		}
		for i := range uint32(steps) {
			if i > 0 && random(4) == 0 {
				id := uint32(random(int(i))) + 1
				if hash, ok := hashes[id]; ok {
					x.remove(hash, id)
					delete(hashes, id)
				}
				continue
			}
			hash := uint32(random(int(width))) * uint32(1<<32/uint64(max(width, 2))+1)
			x.add(hash, i+1)
			hashes[i+1] = hash
		}
		if x.n != len(hashes) {
			t.Fatalf("%d entries, the map has %d", x.n, len(hashes))
		}
		for id := range uint32(steps) {
			hash, have := hashes[id+1]
			if !have {
				hash = uint32(random(1 << 31))
			}
			found := x.find(hash, func(each uint32) bool { return each == id+1 })
			if found != 0 != have {
				t.Fatalf("number %d: found %v, there %v", id+1, found != 0, have)
			}
		}
		for id, hash := range hashes {
			x.remove(hash, id)
		}
		if x.n != 0 || len(x.segments) > 1 || len(x.segments) == 1 && len(x.segments[0].entries) > segmentKeep {
			t.Fatal("an empty index keeps memory")
		}
	})
}

// TestIndexGrowsBySegments checks what is promised about the cost of growing: no segment beyond its size while the hashes
// differ, and no more memory than an entry needs twice over.
func TestIndexGrowsBySegments(t *testing.T) {
	var x index
	const n = 300_000
	random := randomChooser(7)
	for id := range uint32(n) {
		x.add(uint32(random(1<<32-1)), id+1)
	}
	seen := map[*segment]bool{}
	slots := 0
	for _, s := range x.segments {
		if seen[s] {
			continue
		}
		seen[s] = true
		slots += len(s.entries)
		if len(s.entries) > segmentMax || s.depth > x.depth {
			t.Fatalf("a segment of %d entries, depth %d of %d", len(s.entries), s.depth, x.depth)
		}
	}
	if slots > 2*n+segmentMax {
		t.Errorf("%d places for %d entries", slots, n)
	}
}

// TestSlab checks that numbers are used again, that records do not move, and that an empty slab lets its memory go.
func TestSlab(t *testing.T) {
	s := slab[[2]int]{bits: 2}
	var first *[2]int
	for i := range 100 {
		id, p := s.take()
		if id == 0 {
			t.Fatal("number 0 was given out")
		}
		if i == 0 {
			first = p
		}
		p[0] = int(id)
	}
	if s.at(1) != first {
		t.Error("a record has moved")
	}
	s.release(40)
	if id, p := s.take(); id != 40 || p[0] != 0 {
		t.Errorf("number %d with %d in it, want an empty 40", id, p[0])
	}
	for id := uint32(1); id < s.end(); id++ {
		s.release(id)
	}
	if s.live != 0 || len(s.chunks) != 1 || s.end() != 1 {
		t.Errorf("%d records in %d chunks", s.live, len(s.chunks))
	}
	if id, _ := s.take(); id != 1 {
		t.Errorf("number %d after all were released", id)
	}
}

func TestIntern(t *testing.T) {
	var n intern
	a, b := n.take("ann"), n.take("bob")
	if a == b || n.take("ann") != a || n.text(b) != "bob" {
		t.Fatal("names are mixed up")
	}
	n.release(b)
	if c := n.take("cy"); c != b || n.text(c) != "cy" {
		t.Errorf("the number of a name that is gone is not used again")
	}
	n.release(a)
	if n.take("ann") != a {
		t.Error("a name that is still used was forgotten")
	}
}

// TestOrderedAgainstSort checks the lazily fed order against a sorted list, with names that come and go before and after
// they are merged.
func TestOrderedAgainstSort(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table := New(Config{})
		z := table.openZone("z")
		ids := map[string]uint32{}
		random := randomChooser(rapid.Uint64().Draw(t, "seed"))
		for range rapid.SampledFrom([]int{10, 300, 5000}).Draw(t, "steps") {
			name := fmt.Sprint(random(3000))
			switch id, have := ids[name]; {
			case random(500) == 0:
				z.order.deal()
			case have:
				z.order.remove(id)
				table.locks.release(id)
				delete(ids, name)
			default:
				id, _ := table.locks.open(name)
				z.order.add(id)
				ids[name] = id
			}
		}
		from, n, last := fmt.Sprint(random(3000)), 0, ""
		z.order.ascend(from, func(id uint32) bool {
			name := table.locks.name(table.locks.at(id))
			if name < from || n > 0 && name <= last || ids[name] != id {
				t.Fatalf("%q after %q, from %q", name, last, from)
			}
			n, last = n+1, name
			return true
		})
		for name := range ids {
			if name >= from {
				n--
			}
		}
		if n != 0 {
			t.Fatalf("%d names too many", n)
		}
	})
}

// TestWindowAgainstMap compares the window of a session's requests with a map: numbers come in and out of order, leave at
// the beginning and in the middle, and come again.
func TestWindowAgainstMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var w window
		have := map[uint64]uint32{}
		random := randomChooser(rapid.Uint64().Draw(t, "seed"))
		top := uint64(0)
		for i := range uint32(rapid.SampledFrom([]int{20, 2000}).Draw(t, "steps")) {
			number := max(1, top-min(top, uint64(random(100))))
			switch {
			case random(3) == 0:
				top = max(top, number) + uint64(random(3)) + 1
				w.put(top, i+1)
				have[top] = i + 1
			case have[number] != 0:
				w.cut(number)
				delete(have, number)
			case random(4) == 0:
				w.put(number, i+1)
				have[number] = i + 1
			}
			if at := max(1, top-min(top, uint64(random(120)))); w.find(at) != have[at] {
				t.Fatalf("number %d is %d, want %d", at, w.find(at), have[at])
			}
			dead := 0
			for _, s := range w.slots[w.head:] {
				if s.entry == 0 {
					dead++
				}
			}
			if live := len(w.slots) - w.head - dead; dead != w.dead || live != len(have) || len(w.slots) > 2*live+65 {
				t.Fatalf("%d slots, %d empty, counted %d, for %d numbers", len(w.slots), dead, w.dead, len(have))
			}
		}
	})
}
