package journal

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
)

// small makes a journal of three segments and gives its disk, all that was appended, and how many entries were there at
// each length of the last segment that ends with a record.
func small(t testing.TB) (d *disk, appended []entry, ends map[int]int) {
	t.Helper()
	d = newDisk()
	s := newScript(3, 3)
	ends = map[int]int{}
	j, _ := open(t, options(d))
	add := func(batch ...entry) {
		check(t, j.Append(records(batch)))
		appended = append(appended, batch...)
	}
	for range 2 {
		for bucket := range uint32(2) {
			add(s.change(), s.snapshot(bucket, 50), s.change())
		}
		check(t, j.Close(false))
		j, _ = open(t, options(d))
	}
	last := d.files["/j/journal-00000003.log"]
	ends[len(last.data)] = len(appended)
	for i := range 8 {
		if i == 4 {
			check(t, j.Sync()) // so that a mark comes next
		}
		add(s.change())
		ends[len(last.data)] = len(appended)
		if i == 4 {
			add(s.snapshot(1, 50))
			ends[len(last.data)] = len(appended)
		}
	}
	check(t, j.Close(false))
	return d, appended, ends
}

func reopen(d *disk, id string) (*Journal, *Replay, error) {
	opts := options(d)
	opts.BootID = boot(id)
	return Open(dir, opts)
}

func TestEveryPrefixOfTheLastSegment(t *testing.T) {
	whole, appended, ends := small(t)
	const name = "/j/journal-00000003.log"
	complete, kept := len(appended)-9, headerSize
	for length := range len(whole.files[name].data) + 1 {
		if n, ok := ends[length]; ok {
			complete, kept = n, length
		}
		d := whole.killed()
		d.files[name].data = d.files[name].data[:length:length]
		j, replay, err := reopen(d, "one")
		if err != nil {
			t.Fatalf("cut off at %d: %v", length, err)
		}
		same(t, entries(t, replay), replayOf(appended[:complete]))
		// Between two records may stand a mark, which has no entry: then less is torn than is behind the last entry.
		if torn := int64(max(0, length-kept)); replay.Torn != torn && replay.Torn != torn-headSize {
			t.Fatalf("cut off at %d, %d behind the last record: %d bytes torn", length, kept, replay.Torn)
		}
		if replay.Unclean {
			t.Fatalf("cut off at %d: unclean, but the kernel is the same", length)
		}
		// It goes on from there, and the next start finds nothing torn.
		next := entry{9, 1, Change, "next"}
		check(t, j.Append(records([]entry{next})))
		check(t, j.Close(true))
		j, replay, err = reopen(d, "one")
		check(t, err)
		same(t, entries(t, replay), append(replayOf(appended[:complete]), next))
		if replay.Torn != 0 || replay.Unclean {
			t.Fatalf("cut off at %d: the start after the next: %+v", length, replay)
		}
		check(t, j.Close(true))
	}
}

func TestPrefixesOfEarlierSegmentsAreDamage(t *testing.T) {
	whole, _, _ := small(t)
	const name = "/j/journal-00000002.log"
	for length := range len(whole.files[name].data) {
		d := whole.killed()
		d.files[name].data = d.files[name].data[:length:length]
		for _, id := range []string{"one", "two"} {
			refused(t, d, id, fmt.Sprintf("cut off at %d", length), name)
		}
	}
}

// refused wants Open to refuse, to say why, and to change nothing.
func refused(t *testing.T, d *disk, id, what, name string) {
	t.Helper()
	before := map[string]string{}
	for file, f := range d.files {
		before[file] = string(f.data)
	}
	j, _, err := reopen(d, id)
	if err == nil {
		check(t, j.Close(false))
		t.Fatalf("%s: accepted", what)
	}
	if !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrVersion) {
		t.Fatalf("%s: %v", what, err)
	}
	if name != "" && !strings.Contains(err.Error(), filepath.Base(name)) {
		t.Fatalf("%s: the error does not name %s: %v", what, filepath.Base(name), err)
	}
	if len(before) != len(d.files) {
		t.Fatalf("%s: the files have changed", what)
	}
	for file, f := range d.files {
		if before[file] != string(f.data) {
			t.Fatalf("%s: %s has changed", what, file)
		}
	}
}

// With the kernel that wrote it still running, a flipped bit is damage wherever it is, but in the last record, where it
// looks like a crash: that record is dropped then, and Unclean is told.
func TestEveryFlippedByteIsNoticed(t *testing.T) {
	whole, appended, _ := small(t)
	for _, name := range []string{"/j/journal-00000001.log", "/j/journal-00000002.log", "/j/journal-00000003.log"} {
		size := len(whole.files[name].data)
		lastRecord := size
		if strings.Contains(name, "3") {
			lastRecord -= headSize + len(appended[len(appended)-1].payload)
		}
		for at := range size {
			for _, flip := range []byte{1 << (at % 8), 0xff} {
				d := whole.killed()
				d.files[name].data[at] ^= flip
				what := fmt.Sprintf("%s: byte %d ^ %#x", name, at, flip)
				if at < lastRecord {
					refused(t, d, "one", what, name)
					continue
				}
				j, replay, err := reopen(d, "one")
				if err != nil {
					t.Fatalf("%s: %v", what, err)
				}
				same(t, entries(t, replay), replayOf(appended[:len(appended)-1]))
				if replay.Torn != int64(size-lastRecord) {
					t.Fatalf("%s: %+v", what, replay)
				}
				// A flipped length that makes the record seem cut off cannot pass: the head has its own check.
				if !replay.Unclean {
					t.Fatalf("%s: a record was lost without a word", what)
				}
				check(t, j.Close(false))
			}
		}
	}
}

// After another boot, what was not synced may be missing in any order; but never what a mark says was on disk.
func TestEveryFlippedByteAfterAnotherBoot(t *testing.T) {
	whole, appended, ends := small(t)
	const name = "/j/journal-00000003.log"
	synced := int(markedSynced(t, whole.files[name].data))
	if synced <= headerSize {
		t.Fatalf("no mark in %s", name)
	}
	for at := range whole.files[name].data {
		d := whole.killed()
		d.files[name].data[at] ^= 0x10
		what := fmt.Sprintf("byte %d", at)
		if at < synced {
			refused(t, d, "two", what, name)
			continue
		}
		j, replay, err := reopen(d, "two")
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		n := prefix(appended, entries(t, replay))
		if n < ends[synced] || !replay.Unclean || replay.Torn == 0 {
			t.Fatalf("%s: %d records came back, %d had been synced; %+v", what, n, ends[synced], replay)
		}
		check(t, j.Close(false))
	}
}

// markedSynced finds the highest mark of a segment by reading its records from the beginning.
func markedSynced(t testing.TB, data []byte) (synced uint64) {
	t.Helper()
	d := newDisk()
	d.files["x"] = &inode{data: data}
	f, err := d.Open("x")
	check(t, err)
	r, err := newReader(f, int64(len(data)))
	check(t, err)
	for {
		rec, _, err := r.next()
		if err != nil {
			return synced
		}
		if rec.kind == markSynced {
			synced = max(synced, rec.seq)
		}
	}
}

// What follows a bad record is found wherever the windows of the search end.
func TestSearchFindsAHeadBetweenTwoWindows(t *testing.T) {
	const window = 1 << 20
	for before := 1; before < headSize; before += 5 { // bytes of the head in the first window
		d := newDisk()
		j, _ := open(t, options(d))
		check(t, j.Append(records([]entry{{1, 1, Change, "a"}})))
		bad := len(d.files["/j/journal-00000001.log"].data)
		large := window + 1 - before - headSize
		check(t, j.Append(records([]entry{{1, 2, Change, strings.Repeat("x", large)}, {1, 3, Change, "c"}})))
		check(t, j.Close(false))
		d.files["/j/journal-00000001.log"].data[bad+headSize] ^= 1
		refused(t, d, "one", fmt.Sprint(before), "journal-00000001.log")
	}
}

// Records that change places, are repeated or come from another file do not pass.
func TestRecordsHaveTheirPlace(t *testing.T) {
	d := newDisk()
	j, _ := open(t, options(d))
	const name = "/j/journal-00000001.log"
	lengths := []int{len(d.files[name].data)}
	for seq := range uint64(5) {
		check(t, j.Append(records([]entry{{1, seq + 1, Change, "same length"}})))
		lengths = append(lengths, len(d.files[name].data))
	}
	check(t, j.Close(false))
	data := d.files[name].data
	size := lengths[2] - lengths[1] // the first has the link before it
	nth := func(i int) []byte { return data[lengths[i] : lengths[i]+size] }

	swapped := d.killed()
	copy(swapped.files[name].data[lengths[1]:], nth(2))
	copy(swapped.files[name].data[lengths[2]:], nth(1))
	refused(t, swapped, "one", "two records swapped", name)

	repeated := d.killed()
	copy(repeated.files[name].data[lengths[2]:], nth(1))
	refused(t, repeated, "one", "a record repeated", name)

	left := d.killed()
	left.files[name].data = append(clone(data[:lengths[2]]), data[lengths[3]:]...)
	j, replay, err := reopen(left, "one") // what follows the gap is at another offset, so it is no record any more
	check(t, err)
	if replay.Torn != int64(2*size) || !replay.Unclean {
		t.Fatalf("a record left out: %+v", replay)
	}
	check(t, j.Close(false))

	other := newDisk()
	j, _ = open(t, options(other))
	for seq := range uint64(5) {
		check(t, j.Append(records([]entry{{1, seq + 1, Change, "same length"}})))
	}
	check(t, j.Close(false))
	stale := d.killed()
	copy(stale.files[name].data[lengths[3]:], other.files[name].data[lengths[3]:])
	j, replay, err = reopen(stale, "one")
	check(t, err)
	if replay.Torn != int64(2*size) || !replay.Unclean {
		t.Fatalf("records of another file: %+v", replay)
	}
	check(t, j.Close(false))
}

// Snapshots that were not ended, because the process died or the machine did, count for nothing.
func TestPartsThatMakeNoSnapshot(t *testing.T) {
	part := func(n uint16, last bool, payload string) record {
		return record{head{bucket: 1, seq: 1, kind: Snapshot, part: n, last: last}, []byte(payload)}
	}
	change := record{head{bucket: 1, seq: 1, kind: Change}, []byte("c")}
	for name, c := range map[string]struct {
		parts []record
		want  []entry
	}{
		"begun only":          {[]record{change, part(0, false, "a")}, []entry{{1, 1, Change, "c"}}},
		"the middle is gone":  {[]record{change, part(0, false, "a"), part(2, false, "b"), part(1, true, "c")}, []entry{{1, 1, Change, "c"}}},
		"the beginning is":    {[]record{change, part(1, true, "b")}, []entry{{1, 1, Change, "c"}}},
		"a change in between": {[]record{part(0, false, "a"), change, part(1, true, "b")}, []entry{{1, 1, Change, "c"}}},
		"begun twice":         {[]record{part(0, false, "a"), part(0, false, "A"), part(1, true, "B")}, []entry{{1, 1, Snapshot, "AB"}}},
		"begun after a whole": {
			[]record{part(0, false, "A"), part(1, true, "B"), part(0, false, "a")}, []entry{{1, 1, Snapshot, "AB"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := header{number: 1, boot: bootHash("one")}
			text := h.encode()
			chain := newChain(h)
			for _, rec := range c.parts {
				text = chain.append(text, int64(len(text)), rec.head, rec.payload)
			}
			d := newDisk()
			d.files["/j/journal-00000001.log"] = &inode{data: text}
			_, replay := open(t, options(d))
			same(t, entries(t, replay), c.want)
		})
	}
}

func TestMissingSegments(t *testing.T) {
	whole, appended, _ := small(t)
	for _, number := range []uint64{1, 2} {
		d := whole.killed()
		delete(d.files, filepath.Join(dir, segmentName(number)))
		refused(t, d, "one", "missing", segmentName(number))
	}
	// A segment under another's name.
	d := whole.killed()
	d.files["/j/journal-00000002.log"] = d.files["/j/journal-00000001.log"]
	refused(t, d, "one", "a copy of segment 1", "journal-00000002.log")

	// Other files are none of the journal's business.
	d = whole.killed()
	for _, name := range []string{"journal-1.log", "journal-00000009.log.bak", "notes.txt", "journal-0000000x.log", "journal-00000000.log"} {
		d.files[filepath.Join(dir, name)] = &inode{data: []byte("something, longer than the header of a segment is, by far")}
	}
	j, replay, err := reopen(d, "one")
	check(t, err)
	same(t, entries(t, replay), replayOf(appended))
	check(t, j.Close(false))
}

func TestFilesOfANewerVersionAreRefused(t *testing.T) {
	d, _, _ := small(t)
	for _, f := range d.files {
		f.data[8] = version + 1
	}
	j, _, err := reopen(d, "one")
	if !errors.Is(err, ErrVersion) {
		check(t, j.Close(false))
		t.Fatalf("got %v", err)
	}
}

// A machine dies at any moment: whatever reaches the disk, the journal opens, gives a prefix with all that was synced, and
// says so if something is missing.
func TestMachineDies(t *testing.T) {
	for _, mode := range []Sync{Background, Always} {
		t.Run(fmt.Sprint(mode), func(t *testing.T) {
			lost := 0
			for seed := range uint64(150) {
				lost += die(t, seed, mode)
			}
			if mode == Background && lost == 0 {
				t.Fatal("nothing was ever lost: the disk of this test loses nothing")
			}
		})
	}
}

// die runs a journal over several deaths of its machine, and gives how many records were lost.
func die(t *testing.T, seed uint64, mode Sync) (lost int) {
	t.Helper()
	d := newDisk()
	s := newScript(seed, 3)
	rng := rand.New(rand.NewPCG(seed, 2))
	var appended []entry
	for life := range 5 {
		opts := options(d)
		opts.Sync, opts.CompactBytes, opts.partBytes, opts.writeBytes = mode, 1, 60, 100
		opts.BootID = boot(fmt.Sprint("boot ", life))
		j, replay, err := Open(dir, opts)
		if err != nil {
			t.Fatalf("seed %d, life %d: %v", seed, life, err)
		}
		back := prefix(appended, entries(t, replay))
		if back < 0 {
			t.Fatalf("seed %d, life %d: what came back is no prefix of what was appended", seed, life)
		}
		if back < len(appended) && !replay.Unclean {
			t.Fatalf("seed %d, life %d: %d of %d records came back, and unclean is not told", seed, life, back, len(appended))
		}
		check(t, j.Settled())
		lost += len(appended) - back
		appended = appended[:back]
		s.rewind(appended)
		acked := live(t, j, s, rng, mode, &appended)
		var after *disk
		if rng.IntN(4) == 0 {
			check(t, j.Close(true))
			acked = len(appended)
			after = d.crashed(rng)
		} else {
			after = d.crashed(rng)
			check(t, j.Close(false))
		}
		d = after
		j, replay, err = Open(dir, Options{FS: d.killed(), SyncEvery: never, BootID: boot("look")})
		if err != nil {
			t.Fatalf("seed %d, after life %d: %v", seed, life, err)
		}
		if back := prefix(appended, entries(t, replay)); back < acked {
			t.Fatalf("seed %d, life %d: %d records came back, %d were synced", seed, life, back, acked)
		}
		check(t, j.Close(false))
	}
	return lost
}

// live appends, syncs and compacts for a while, and gives how many of the entries are certainly on disk.
func live(t *testing.T, j *Journal, s *script, rng *rand.Rand, mode Sync, appended *[]entry) (acked int) {
	t.Helper()
	acked = len(*appended) // Open has synced what it found
	add := func(batch ...entry) {
		check(t, j.Append(records(batch)))
		*appended = append(*appended, batch...)
		if mode == Always {
			acked = len(*appended)
		}
	}
	for range rng.IntN(12) {
		switch rng.IntN(6) {
		case 0:
			check(t, j.Sync())
			acked = len(*appended)
		case 1:
			check(t, j.StartCompaction())
			for bucket := range uint32(s.buckets) {
				if rng.IntN(8) > 0 {
					add(s.snapshot(bucket, 300))
				}
			}
		default:
			add(s.changes(1 + rng.IntN(5))...)
		}
	}
	return acked
}

// rewind sets the script to what is there after some records were lost.
func (s *script) rewind(appended []entry) {
	clear(s.seqs)
	for _, e := range appended {
		s.seqs[e.bucket] = e.seq
	}
}
