package journal

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// segments gives the numbers of the segments that are there.
func (d *disk) segments() (numbers []uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, name := range sorted(d.files) {
		if number, ok := segmentNumber(filepath.Base(name)); ok {
			numbers = append(numbers, number)
		}
	}
	return numbers
}

func segmentsAre(t *testing.T, d *disk, want ...uint64) {
	t.Helper()
	if got := d.segments(); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("segments %v, want %v", got, want)
	}
}

func compacted(t *testing.T, j *Journal) {
	t.Helper()
	waitFor(t, "the end of the compaction", func() bool { return !j.Stats().Compacting })
	j.syncing.Lock() // whoever ends it holds this until the files are gone
	defer j.syncing.Unlock()
}

func TestOldSegmentsGoWhenEveryBucketHasASnapshot(t *testing.T) {
	d := newDisk()
	j, _ := open(t, options(d))
	check(t, j.Append(records([]entry{{1, 1, Change, "a"}, {2, 1, Change, "b"}, {1, 1, Snapshot, "before"}})))
	check(t, j.StartCompaction())
	segmentsAre(t, d, 1, 2)
	check(t, j.Append(records([]entry{{1, 2, Change, "c"}, {2, 2, Change, "d"}, {3, 1, Change, "e"}})))
	check(t, j.Append(records([]entry{{1, 2, Snapshot, "AC"}})))
	check(t, j.StartCompaction()) // one is running: it goes on
	if !j.Stats().Compacting {
		t.Fatal("ended without a snapshot of bucket 2")
	}
	segmentsAre(t, d, 1, 2)
	check(t, j.Append(records([]entry{{2, 2, Snapshot, "BD"}}))) // bucket 3 began after: it needs none
	compacted(t, j)
	segmentsAre(t, d, 2)
	check(t, j.Append(records([]entry{{2, 3, Change, "f"}})))
	check(t, j.Close(true))
	_, replay := open(t, options(d))
	same(t, entries(t, replay), []entry{
		{3, 1, Change, "e"}, {1, 2, Snapshot, "AC"}, {2, 2, Snapshot, "BD"}, {2, 3, Change, "f"},
	})
}

func TestCompactionOfNothing(t *testing.T) {
	d := newDisk()
	j, _ := open(t, options(d))
	check(t, j.StartCompaction())
	compacted(t, j)
	segmentsAre(t, d, 2)
	check(t, j.Append(records([]entry{{1, 1, Change, "a"}})))
	check(t, j.Close(true))
	_, replay := open(t, options(d))
	same(t, entries(t, replay), []entry{{1, 1, Change, "a"}})
}

// A compaction that the process did not live to end counts for nothing; the next one deletes all that is old.
func TestInterruptedCompaction(t *testing.T) {
	d := newDisk()
	j, _ := open(t, options(d))
	appended := []entry{{1, 1, Change, "a"}, {2, 1, Change, "b"}}
	check(t, j.Append(records(appended)))
	check(t, j.StartCompaction())
	snapshot := entry{1, 1, Snapshot, "A"}
	check(t, j.Append(records([]entry{snapshot})))
	check(t, j.Close(false))
	j, replay := open(t, options(d))
	same(t, entries(t, replay), []entry{{2, 1, Change, "b"}, snapshot})
	segmentsAre(t, d, 1, 2, 3)
	check(t, j.StartCompaction())
	check(t, j.Append(records([]entry{{1, 1, Snapshot, "AA"}, {2, 1, Snapshot, "BB"}})))
	compacted(t, j)
	segmentsAre(t, d, 4)
	check(t, j.Close(true))
	_, replay = open(t, options(d))
	same(t, entries(t, replay), []entry{{1, 1, Snapshot, "AA"}, {2, 1, Snapshot, "BB"}})
}

// A snapshot whose first part is in an old segment, because the compaction began between two of its parts, does not count
// for that compaction; it is given back whole all the same.
func TestSnapshotBegunBeforeTheCompaction(t *testing.T) {
	d := newDisk()
	j, _ := open(t, options(d))
	check(t, j.Append(records([]entry{{1, 1, Change, "a"}})))
	part := func(h head, payload string) {
		h.bucket, h.seq, h.kind = 1, 1, Snapshot
		j.mu.Lock()
		defer j.mu.Unlock()
		j.put(h, []byte(payload))
		if h.last {
			j.snapshotDone(&Record{Bucket: 1, Seq: 1, Kind: Snapshot, Payload: []byte("whole")}, j.buckets[1], 1)
		}
		check(t, j.flush())
	}
	part(head{part: 0}, "wh")
	check(t, j.StartCompaction())
	part(head{part: 1, last: true}, "ole")
	j.mu.Lock()
	missing := j.compaction.missing[1]
	j.mu.Unlock()
	if !missing {
		t.Fatal("the segment with the first part is given up")
	}
	check(t, j.Close(false))
	j, replay := open(t, options(d))
	same(t, entries(t, replay), []entry{{1, 1, Snapshot, "whole"}})
	check(t, j.StartCompaction())
	check(t, j.Append(records([]entry{{1, 1, Snapshot, "again"}})))
	compacted(t, j)
	segmentsAre(t, d, 4)
}

// What is written while the old segment is being synced is synced too before the new one takes over.
func TestTheOldSegmentIsOnDiskBeforeTheNewOneBegins(t *testing.T) {
	d := newDisk()
	j, _ := open(t, options(d))
	check(t, j.Append(records([]entry{{1, 1, Change, "a"}})))
	d.after = once("sync", "journal-00000001.log", func() { check(t, j.Append(records([]entry{{1, 2, Change, "b"}}))) })
	check(t, j.StartCompaction())
	old := d.files["/j/journal-00000001.log"]
	if len(old.synced) != len(old.data) {
		t.Fatalf("%d of %d bytes are on disk", len(old.synced), len(old.data))
	}
	if n := j.Stats().UnsyncedBytes; n != 0 {
		t.Fatalf("%d bytes are said to be not", n)
	}
}

// once makes a hook that calls fn after the first such operation.
func once(op, name string, fn func()) func(op, name string) {
	done := false
	return func(o, n string) {
		if !done && o == op && n == name {
			done = true
			fn()
		}
	}
}

// Others get in between the parts of a large snapshot, but not with records of its bucket.
func TestOneWriterForEachBucket(t *testing.T) {
	d := newDisk()
	j, _ := open(t, options(d))
	check(t, j.Append(records([]entry{{1, 1, Change, "a"}})))
	j.mu.Lock()
	j.buckets[1].busy = true // as at a pause of a snapshot
	j.mu.Unlock()
	check(t, j.Append(records([]entry{{2, 1, Change, "b"}})))
	if err := j.Append(records([]entry{{1, 2, Change, "c"}})); !errors.Is(err, ErrSequence) {
		t.Fatalf("got %v", err)
	}
}

func TestWhenCompactionIsWanted(t *testing.T) {
	d := newDisk()
	opts := options(d)
	opts.CompactBytes = 10_000
	j, _ := open(t, opts)
	seq := uint64(0)
	grow := func(size int) {
		seq++
		check(t, j.Append(records([]entry{{1, seq, Change, strings.Repeat("x", size)}})))
	}
	wanted := func(want bool, when string) {
		t.Helper()
		if got := j.NeedsCompaction(); got != want {
			t.Fatalf("%s: %v, %+v", when, got, j.Stats())
		}
	}
	wanted(false, "empty")
	grow(9_000)
	wanted(false, "below CompactBytes")
	grow(1_000)
	wanted(true, "above CompactBytes")
	check(t, j.StartCompaction())
	wanted(false, "one is running")
	grow(100)
	wanted(false, "one is still running")
	check(t, j.Append(records([]entry{{1, seq, Snapshot, strings.Repeat("s", 5_000)}})))
	compacted(t, j)
	wanted(false, "compacted")
	grow(12_000)
	wanted(false, "below four times the snapshots")
	check(t, j.Close(true))
	j, _ = open(t, opts)
	wanted(false, "after a restart, below four times the snapshots")
	grow(3_000)
	wanted(true, "above four times the snapshots")
	check(t, j.Append(records([]entry{{1, seq, Snapshot, strings.Repeat("s", 1_000_000)}})))
	wanted(false, "a snapshot outside a compaction counts too")
	check(t, j.Close(true))
}

func TestManyRestartsMakeCompactionWanted(t *testing.T) {
	d := newDisk()
	for i := range maxSegments + 1 {
		j, _ := open(t, options(d))
		if want := i >= maxSegments; j.NeedsCompaction() != want {
			t.Fatalf("start %d: wanted is %v", i, !want)
		}
		check(t, j.Append(records([]entry{{1, uint64(i + 1), Change, ""}})))
		check(t, j.Close(true))
	}
}

func TestAFullSegmentIsFollowedByAnother(t *testing.T) {
	d := newDisk()
	opts := options(d)
	opts.SegmentBytes, opts.SyncEvery = 1000, 1
	j, _ := open(t, opts)
	s := newScript(4, 3)
	var appended []entry
	for j.Stats().Segments < 4 {
		batch := s.changes(10)
		check(t, j.Append(records(batch)))
		appended = append(appended, batch...)
	}
	check(t, j.Close(false))
	_, replay := open(t, opts)
	same(t, entries(t, replay), appended)
}

// While segments are deleted the machine may die, and any of the names may come back.
func TestNamesOfDeletedSegmentsMayComeBack(t *testing.T) {
	for _, back := range [][]uint64{{1}, {2}, {3}, {1, 3}, {1, 2, 3}} {
		d := newDisk()
		s := newScript(5, 2)
		for range 2 {
			j, _ := open(t, options(d))
			check(t, j.Append(records(s.changes(5))))
			check(t, j.Close(true))
		}
		j, _ := open(t, options(d))
		check(t, j.Append(records(s.changes(5))))
		old := map[uint64]*inode{}
		for number := range uint64(3) {
			old[number+1] = d.files[filepath.Join(dir, segmentName(number+1))]
		}
		check(t, j.StartCompaction())
		want := []entry{s.snapshot(0, 50), s.snapshot(1, 50)}
		check(t, j.Append(records(want)))
		compacted(t, j)
		check(t, j.Close(true))
		segmentsAre(t, d, 4)
		for _, number := range back {
			old[number].data[60] ^= 1 // and damaged at that
			d.files[filepath.Join(dir, segmentName(number))] = old[number]
		}
		_, replay := open(t, options(d))
		same(t, entries(t, replay), want)
		segmentsAre(t, d, 4, 5)
	}
}
