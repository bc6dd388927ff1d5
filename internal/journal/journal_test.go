package journal

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestAnEmptyJournal(t *testing.T) {
	d := newDisk()
	for range 3 {
		j, replay := open(t, options(d))
		if replay.Unclean || replay.Torn != 0 {
			t.Fatalf("replay of nothing: %+v", replay)
		}
		same(t, entries(t, replay), nil)
		check(t, j.Append(nil))
		check(t, j.Close(false))
		if names := sorted(d.files); len(names) != 1 {
			t.Fatalf("files after a start in vain: %v", names)
		}
	}
}

func TestReplayBeginsAtTheNewestSnapshot(t *testing.T) {
	d := newDisk()
	j, _ := open(t, options(d))
	appended := []entry{
		{1, 1, Change, "a"}, {2, 1, Change, "b"}, {1, 2, Change, ""}, {1, 2, Snapshot, "A"}, {2, 2, Change, "c"},
		{1, 3, Change, "d"}, {3, 0, Snapshot, ""}, {3, 1, Change, "e"}, {1, 3, Snapshot, "B"}, {1, 4, Change, "f"},
	}
	check(t, j.Append(records(appended)))
	check(t, j.Close(true))
	_, replay := open(t, options(d))
	same(t, entries(t, replay), []entry{
		{2, 1, Change, "b"}, {2, 2, Change, "c"}, {3, 0, Snapshot, ""}, {3, 1, Change, "e"},
		{1, 3, Snapshot, "B"}, {1, 4, Change, "f"},
	})
	same(t, entries(t, replay), replayOf(appended)) // again, and by the model
}

func TestSnapshotsOfManyParts(t *testing.T) {
	for _, size := range []int{0, 1, partSize - 1, partSize, partSize + 1, 3 * partSize, 3*partSize + 7} {
		d := newDisk()
		j, _ := open(t, options(d))
		appended := []entry{
			{1, 1, Change, "a"}, {1, 1, Snapshot, strings.Repeat("x", size)}, {2, 7, Snapshot, strings.Repeat("y", size/2)},
			{1, 2, Change, "b"}, {2, 8, Change, "c"},
		}
		check(t, j.Append(records(appended)))
		check(t, j.Close(false))
		_, replay := open(t, options(d))
		same(t, entries(t, replay), replayOf(appended))
	}
}

// What was appended is what comes back, whatever snapshots, compactions and restarts were between.
func TestReplayEqualsWhatWasAppended(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		d := newDisk()
		opts := options(d)
		opts.CompactBytes, opts.partBytes, opts.writeBytes = 4096, 200, 500
		s := newScript(rapid.Uint64().Draw(rt, "seed"), rapid.IntRange(1, 5).Draw(rt, "buckets"))
		var appended []entry
		j, _, err := Open(dir, opts)
		if err != nil {
			rt.Fatal(err)
		}
		defer func() { check(t, j.Close(false)) }()
		add := func(batch ...entry) {
			if err := j.Append(records(batch)); err != nil {
				rt.Fatal(err)
			}
			appended = append(appended, batch...)
		}
		rt.Repeat(map[string]func(*rapid.T){
			"append": func(rt *rapid.T) { add(s.changes(rapid.IntRange(1, 20).Draw(rt, "n"))...) },
			"snapshot": func(rt *rapid.T) {
				size := rapid.SampledFrom([]int{1, 100, 200, 5000}).Draw(rt, "size")
				add(s.change(), s.snapshot(uint32(s.rng.IntN(s.buckets)), size), s.change())
			},
			"compact": func(rt *rapid.T) {
				if err := j.StartCompaction(); err != nil {
					rt.Fatal(err)
				}
				for bucket := range uint32(s.buckets) {
					if rapid.IntRange(0, 9).Draw(rt, "leave out") > 0 {
						add(s.change())
						add(s.snapshot(bucket, 200))
					}
				}
			},
			"restart": func(rt *rapid.T) {
				clean := rapid.Bool().Draw(rt, "clean")
				if err := j.Close(clean); err != nil {
					rt.Fatal(err)
				}
				opts.BootID = boot(rapid.SampledFrom([]string{"one", "two"}).Draw(rt, "boot"))
				next, replay, err := Open(dir, opts)
				if err != nil {
					rt.Fatal(err)
				}
				j = next
				if replay.Torn != 0 {
					rt.Fatalf("%d bytes torn", replay.Torn)
				}
				same(rt, entries(rt, replay), replayOf(appended))
			},
		})
	})
}

func TestWrongUse(t *testing.T) {
	d := newDisk()
	j, _ := open(t, options(d))
	check(t, j.Append([]Record{{Bucket: 1, Seq: 1, Kind: Change}}))
	before := d.count("write")
	for name, r := range map[string]Record{
		"no kind":      {Bucket: 1, Seq: 2},
		"a mark":       {Bucket: 1, Seq: 2, Kind: markClean},
		"unknown kind": {Bucket: 1, Seq: 2, Kind: 77},
	} {
		if err := j.Append([]Record{{Bucket: 1, Seq: 2, Kind: Change}, r}); !errors.Is(err, errKind) {
			t.Errorf("%s: %v", name, err)
		}
	}
	large := Record{Bucket: 1, Seq: 2, Kind: Change, Payload: make([]byte, MaxChange+1)}
	if err := j.Append([]Record{{Bucket: 1, Seq: 2, Kind: Change}, large}); !errors.Is(err, ErrTooLarge) {
		t.Errorf("too large: %v", err)
	}
	if now := d.count("write"); now != before {
		t.Errorf("something was written of a refused batch")
	}
	check(t, j.Append([]Record{{Bucket: 1, Seq: 2, Kind: Change}})) // refusals are not failures
	check(t, j.Close(true))
	check(t, j.Close(true))
	if err := j.Append([]Record{{Bucket: 1, Seq: 3, Kind: Change}}); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	if err := j.StartCompaction(); !errors.Is(err, ErrClosed) {
		t.Errorf("StartCompaction after Close: %v", err)
	}
	if err := j.Sync(); !errors.Is(err, ErrClosed) {
		t.Errorf("Sync after Close: %v", err)
	}
}

func TestChangesOutOfSequenceFailTheJournal(t *testing.T) {
	for name, batch := range map[string][]entry{
		"does not begin with 1": {{1, 2, Change, ""}},
		"a gap":                 {{1, 1, Change, ""}, {1, 3, Change, ""}},
		"a repetition":          {{1, 1, Change, ""}, {1, 1, Change, ""}},
		"after a snapshot":      {{1, 5, Snapshot, ""}, {1, 7, Change, ""}},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDisk()
			j, _ := open(t, options(d))
			err := j.Append(records(batch))
			if !errors.Is(err, ErrSequence) || !errors.Is(err, ErrFailed) {
				t.Fatalf("got %v", err)
			}
			if err := j.Append(records([]entry{{2, 1, Change, ""}})); !errors.Is(err, ErrFailed) {
				t.Fatalf("goes on: %v", err)
			}
			if err := j.Close(true); !errors.Is(err, ErrFailed) {
				t.Fatalf("close: %v", err)
			}
			_, replay := open(t, options(d))
			same(t, entries(t, replay), nil)
		})
	}
}

func TestErrorOfTheReceiverEndsTheReplay(t *testing.T) {
	d := newDisk()
	j, _ := open(t, options(d))
	check(t, j.Append(records(newScript(1, 2).changes(10))))
	check(t, j.Close(true))
	_, replay := open(t, options(d))
	mine, calls := errors.New("mine"), 0
	err := replay.Each(func(uint32, uint64, Kind, []byte) error {
		if calls++; calls == 3 {
			return mine
		}
		return nil
	})
	if !errors.Is(err, mine) || calls != 3 {
		t.Fatalf("%v after %d calls", err, calls)
	}
}
