package journal

import "testing"

// A mark tells an older copy of the directory from the directory itself, whatever was written or compacted since, also if the
// process that the mark is of wrote nothing else.
func TestAnOlderDirectoryLacksTheMark(t *testing.T) {
	d := newDisk()
	var marks []string
	var copies []*disk
	for run := range 4 {
		j, replay := open(t, options(d))
		for i, mark := range marks {
			if replay.Lacks(mark) {
				t.Fatalf("run %d lacks the mark %s of run %d", run, mark, i)
			}
		}
		copies = append(copies, d.killed())
		mark, err := j.Mark()
		check(t, err)
		if again, err := j.Mark(); err != nil || again != mark {
			t.Fatalf("%s, then %s: %v", mark, again, err)
		}
		marks = append(marks, mark)
		if run%2 == 1 {
			check(t, j.Append([]Record{{Bucket: 1, Seq: 1, Kind: Snapshot, Payload: []byte("x")}}))
			check(t, j.StartCompaction())
			check(t, j.Append([]Record{{Bucket: 1, Seq: 1, Kind: Snapshot, Payload: []byte("y")}}))
			j.Turn()
		}
		check(t, j.Close(run%2 == 0))
	}
	for run, old := range copies { // each was made before the mark of its run, when that had begun its segment
		j, replay := open(t, options(old))
		for i, mark := range marks {
			if got := replay.Lacks(mark); got != (i > run) {
				t.Errorf("the copy of run %d lacks the mark %s of run %d: %t", run, mark, i, got)
			}
		}
		check(t, j.Close(true))
	}
	j, replay := open(t, options(newDisk()))
	if !replay.Lacks(marks[0]) || !replay.Lacks("?") {
		t.Error("an empty directory lacks nothing")
	}
	check(t, j.Close(true))
	if _, replay = open(t, options(copies[0])); !replay.Lacks("1-0000000000000001") {
		t.Error("a segment of the same number and another seed is taken for its own")
	}
}

// A process that has its mark begins a segment for a compaction and ends before it writes to it. The next one goes on with that segment,
// and has a mark all the same that a copy from between the two lacks.
func TestACopyWithAnEmptySegmentLacksTheMark(t *testing.T) {
	d := newDisk()
	j, _ := open(t, options(d))
	first, err := j.Mark()
	check(t, err)
	check(t, j.Append([]Record{{Bucket: 1, Seq: 1, Kind: Snapshot, Payload: []byte("x")}}))
	check(t, j.StartCompaction())
	old := d.killed()
	d = d.killed()
	for range 2 { // the first one ends before it needs a mark
		open(t, options(d))
		d = d.killed()
	}
	j, _ = open(t, options(d))
	second, err := j.Mark()
	check(t, err)
	if again, err := j.Mark(); err != nil || again != second {
		t.Fatalf("%s, then %s: %v", second, again, err)
	}
	check(t, j.Append([]Record{{Bucket: 1, Seq: 2, Kind: Change, Payload: []byte("y")}}))
	d = d.killed()
	if _, replay := open(t, options(old)); replay.Lacks(first) || !replay.Lacks(second) {
		t.Errorf("the copy lacks the mark %s: %t, and %s: %t", first, replay.Lacks(first), second, replay.Lacks(second))
	}
	j, replay := open(t, options(d))
	if replay.Lacks(first) || replay.Lacks(second) {
		t.Errorf("the directory itself lacks %s: %t, or %s: %t", first, replay.Lacks(first), second, replay.Lacks(second))
	}
	check(t, j.Append([]Record{{Bucket: 1, Seq: 3, Kind: Change, Payload: []byte("z")}}))
	check(t, j.Close(true))
}
