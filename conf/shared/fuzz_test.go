package shared

import (
	"bytes"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/opencluster/oclocks/bucket/chain"
	"github.com/opencluster/oclocks/conf"
)

// FuzzApply: whatever the bytes are, a command is carried out or refused, all nodes come to the same, and snapshots hold it.
func FuzzApply(f *testing.F) {
	found := testFound(f, 4).Encode()
	for _, c := range []Command{
		testFound(f, 2), testRegister(1), {Lead: &Lead{Term: 4}}, {Lock: &Lock{}}, {Set: &Set{map[string]string{"voters": "3"}}},
		{Views: &ViewChange{Views: []BucketView{{1, chain.View{Epoch: 1, InSync: 1, Chain: []chain.Member{{Node: 1, Inc: 1 << 32}}}}}}},
		{Double: &Double{4}}, {Pin: &Pin{1, 1}}, {Remove: &Remove{1}},
		{Users: &Users{Zone: "default", Put: []conf.User{testUser(f, "default", 1)}}},
	} {
		f.Add(c.Encode(), c.Encode())
	}
	f.Add([]byte(`{"op":"unlock","unlock":null}`), []byte(`[]`))
	first := testRegister(0).Encode()
	f.Fuzz(func(t *testing.T, a, b []byte) {
		one, two := newWorld(), newWorld()
		for _, command := range [][]byte{found, first, a, b, a} {
			x, err := one.apply(command)
			if err != nil {
				t.Fatal(err)
			}
			y, err := two.apply(command)
			if err != nil {
				t.Fatal(err)
			}
			if fmt.Sprint(x) != fmt.Sprint(y) || one.fsm.Digest() != two.fsm.Digest() {
				t.Fatalf("two nodes differ: %v and %v", x, y)
			}
		}
	})
}

// FuzzRestore: a snapshot is taken whole, and is the same when it is made again; or it is refused and nothing changes.
func FuzzRestore(f *testing.F) {
	w := newWorld()
	for _, c := range []Command{testFound(f, 4), testRegister(1), {Pin: &Pin{1, 1}}} {
		if res, err := w.apply(c.Encode()); err != nil || res.Err() != nil {
			f.Fatal(err, res)
		}
	}
	f.Add(w.fsm.Snapshot())
	f.Fuzz(func(t *testing.T, text []byte) {
		x := New()
		before, digest := x.Newest()
		if err := x.Restore(7, text); err != nil {
			if after, d := x.Newest(); after != before || d != digest {
				t.Fatal("refused, and has changed something")
			}
			return
		}
		y := New()
		if err := y.Restore(7, x.Snapshot()); err != nil || !bytes.Equal(x.Snapshot(), y.Snapshot()) || x.Digest() != y.Digest() {
			t.Fatalf("another state: %v", err)
		}
	})
}

// TestAnyOrder applies commands at random and keeps a naive account of the nodes and views.
func TestAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld()
		numbers := map[string]uint64{} // present nodes
		lives, rafts := map[string]uint64{}, map[string]uint64{}
		gone := map[uint64]bool{}
		var last uint64
		epochs := make([]uint64, 2)
		do := func(c Command) Result {
			res, err := w.apply(c.Encode())
			if err != nil {
				t.Fatal(err)
			}
			return res
		}
		keys, err := conf.NewZoneKeys()
		if err != nil {
			t.Fatal(err)
		}
		do(Command{Found: &Found{Cluster: "c", Buckets: 2, Zones: []conf.Zone{{Name: "z"}}, Keys: map[string]conf.ZoneKeys{"z": keys}}})
		for range rapid.IntRange(1, 40).Draw(t, "n") {
			id := testID(rapid.IntRange(0, 4).Draw(t, "id"))
			raft := rapid.Uint64Range(1, 12).Draw(t, "raft")
			switch rapid.IntRange(0, 3).Draw(t, "op") {
			case 0, 1:
				fresh := rapid.Bool().Draw(t, "fresh")
				taken := gone[raft]
				for other, r := range rafts {
					taken = taken || r == raft && other != id
				}
				res := do(Command{Register: &Register{ID: id, Raft: raft, Fresh: fresh, Name: "n"}})
				if taken != (res.Err() != nil) {
					t.Fatalf("raft ID taken %t: %v", taken, res)
				}
				if taken {
					continue
				}
				switch {
				case numbers[id] == 0:
					last++
					numbers[id], lives[id] = last, 1
				case fresh || rafts[id] != raft:
					lives[id]++
				}
				if rafts[id] != 0 && rafts[id] != raft {
					gone[rafts[id]] = true
				}
				rafts[id] = raft
				if res.Number != numbers[id] || res.Life != lives[id] {
					t.Fatalf("%+v, expected number %d life %d", res, numbers[id], lives[id])
				}
			case 2:
				refused := numbers[id] == 0 || len(numbers) == 1
				if res := do(Command{Remove: &Remove{numbers[id]}}); refused != (res.Err() != nil) {
					t.Fatalf("%v", res)
				}
				if !refused {
					gone[rafts[id]] = true
					delete(numbers, id)
					delete(rafts, id)
					delete(lives, id)
				}
			case 3:
				b := rapid.IntRange(0, 1).Draw(t, "bucket")
				life := rapid.Uint64Range(1, 2).Draw(t, "life")
				v := chain.View{Epoch: rapid.Uint64Range(1, 4).Draw(t, "epoch"), InSync: 1, Chain: []chain.Member{{Node: max(1, numbers[id]), Inc: life << 32}}}
				fits := v.Epoch == epochs[b]+1 && numbers[id] != 0 && lives[id] == life
				if numbers[id] == 0 {
					continue
				}
				res := do(Command{Views: &ViewChange{Views: []BucketView{{uint32(b), v}}}})
				if fits != (len(res.Taken) == 1) {
					t.Fatalf("%v: %+v", v, res)
				}
				if fits {
					epochs[b]++
				}
			}
		}
	})
}

// BenchmarkViews is one command with a next view for each of 1,024 buckets.
func BenchmarkViews(b *testing.B) {
	f := New()
	change := uint64(0)
	apply := func(text []byte) Result {
		change++
		res, _ := f.Apply(change, text)
		return res.(Result)
	}
	apply(testFound(b, 1024).Encode())
	apply(testRegister(1).Encode())
	list := make([]BucketView, 1024)
	b.ReportAllocs()
	epoch := uint64(0)
	for b.Loop() {
		b.StopTimer()
		epoch++
		for i := range list {
			list[i] = BucketView{uint32(i), chain.View{Epoch: epoch, InSync: 2, Chain: []chain.Member{{Node: 1, Inc: 1 << 32}, {Node: 2, Inc: 1 << 32}, {Node: 3, Inc: 1 << 32}}}}
		}
		text := Command{Views: &ViewChange{Views: list}}.Encode()
		b.StartTimer()
		if res := apply(text); len(res.Taken) != len(list) {
			b.Fatal(res)
		}
	}
}
