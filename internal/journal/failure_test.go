package journal

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"testing"
)

// failOn makes the nth operation of a kind fail, counted from now, on files whose name begins so.
func failOn(d *disk, op, name string, nth int, err error) {
	seen := 0
	d.setFault(func(o, n string) error {
		if o != op || !strings.HasPrefix(n, name) {
			return nil
		}
		if seen++; seen != nth {
			return nil
		}
		return err
	})
}

func TestWriteFails(t *testing.T) {
	for name, fault := range map[string]error{
		"disk full":                  syscall.ENOSPC,
		"disk full after a part":     short{n: 40, cause: syscall.ENOSPC},
		"short write without reason": short{n: 40},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDisk()
			j, _ := open(t, options(d))
			s := newScript(1, 2)
			first := s.changes(5)
			check(t, j.Append(records(first)))
			size := len(d.files["/j/journal-00000001.log"].data)
			failOn(d, "write", "journal", 1, fault)
			err := j.Append(records(s.changes(5)))
			if !errors.Is(err, ErrFailed) || !strings.Contains(err.Error(), "journal-00000001.log") {
				t.Fatalf("got %v", err)
			}
			if name != "short write without reason" && !errors.Is(err, syscall.ENOSPC) {
				t.Fatalf("the cause is not told: %v", err)
			}
			if now := len(d.files["/j/journal-00000001.log"].data); now != size {
				t.Fatalf("%d bytes of the batch were left", now-size)
			}
			failed(t, d, j)
			_, replay := open(t, options(d))
			if replay.Unclean || replay.Torn != 0 {
				t.Fatalf("%+v", replay)
			}
			same(t, entries(t, replay), first)
		})
	}
}

// failed wants the journal to refuse everything and to say so, and closes it.
func failed(t *testing.T, d *disk, j *Journal) {
	t.Helper()
	d.setFault(nil) // the disk is well again, which must not help
	before := d.count("write") + d.count("sync")
	select {
	case <-j.Failed():
	default:
		t.Error("Failed is not closed")
	}
	for what, err := range map[string]error{
		"Append": j.Append(records([]entry{{7, 1, Change, "x"}})), "Sync": j.Sync(), "StartCompaction": j.StartCompaction(),
		"Err": j.Err(), "Close": j.Close(true),
	} {
		if !errors.Is(err, ErrFailed) {
			t.Errorf("%s after the failure: %v", what, err)
		}
	}
	if j.NeedsCompaction() {
		t.Error("a failed journal wants compaction")
	}
	if after := d.count("write") + d.count("sync"); after != before {
		t.Error("a failed journal has written")
	}
}

func TestTheRestOfAFailedWriteStays(t *testing.T) {
	d := newDisk()
	j, _ := open(t, options(d))
	s := newScript(1, 2)
	first := s.changes(5)
	check(t, j.Append(records(first)))
	d.setFault(func(op, _ string) error {
		switch op {
		case "write":
			return short{n: 5, cause: syscall.EIO}
		case "truncate":
			return syscall.EROFS
		}
		return nil
	})
	err := j.Append(records(s.changes(1)))
	if !errors.Is(err, syscall.EIO) || !errors.Is(err, syscall.EROFS) {
		t.Fatalf("got %v", err)
	}
	failed(t, d, j)
	_, replay := open(t, options(d))
	if replay.Torn != 5 || replay.Unclean {
		t.Fatalf("%+v", replay)
	}
	same(t, entries(t, replay), first)
}

func TestSyncFails(t *testing.T) {
	fail := map[string]func(*Journal) error{
		"of an append":    func(j *Journal) error { return j.Append(records([]entry{{1, 2, Change, "b"}})) },
		"that was asked":  func(j *Journal) error { return j.Sync() },
		"of a compaction": func(j *Journal) error { return j.StartCompaction() },
		"of Close":        func(j *Journal) error { return j.Close(true) },
	}
	for name, act := range fail {
		t.Run(name, func(t *testing.T) {
			d := newDisk()
			opts := options(d)
			j, _ := open(t, opts)
			check(t, j.Append(records([]entry{{1, 1, Change, "a"}})))
			if name == "of an append" {
				j.opts.Sync = Always
			}
			failOn(d, "sync", "journal-00000001", 1, syscall.EIO)
			if err := act(j); !errors.Is(err, ErrFailed) || !errors.Is(err, syscall.EIO) {
				t.Fatalf("got %v", err)
			}
			if name == "of Close" {
				d.setFault(nil)
			} else {
				failed(t, d, j)
			}
			tellsOfTheFailure(t, d)
		})
	}
}

// tellsOfTheFailure wants every start to be unclean until a compaction has put everything into new files.
func tellsOfTheFailure(t *testing.T, d *disk) {
	t.Helper()
	for range 2 {
		j, replay := open(t, options(d))
		if !replay.Unclean {
			t.Fatal("an fsync had failed, and the next start is told nothing")
		}
		if !j.NeedsCompaction() {
			t.Fatal("no compaction is wanted")
		}
		check(t, j.Close(false))
	}
	j, _ := open(t, options(d))
	check(t, j.StartCompaction())
	check(t, j.Append(records([]entry{{1, 2, Snapshot, "all"}})))
	compacted(t, j)
	check(t, j.Settled())
	if j.NeedsCompaction() || !d.gone(failedName) {
		t.Fatal("the failure is not forgotten after the compaction")
	}
	check(t, j.Close(false))
	_, replay := open(t, options(d))
	if replay.Unclean {
		t.Fatal("unclean after the compaction")
	}
	same(t, entries(t, replay), []entry{{1, 2, Snapshot, "all"}})
}

// gone tells whether there is no such file.
func (d *disk) gone(name string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.files[dir+"/"+name] == nil
}

func TestBackgroundSyncFails(t *testing.T) {
	d := newDisk()
	opts := options(d)
	opts.SyncEvery = 1
	j, _ := open(t, opts)
	failOn(d, "sync", "journal-00000001", 1, syscall.EIO)
	check(t, j.Append(records([]entry{{1, 1, Change, "a"}})))
	<-j.Failed()
	if err := j.Err(); !errors.Is(err, syscall.EIO) {
		t.Fatalf("got %v", err)
	}
	if err := j.Append(records([]entry{{1, 2, Change, "b"}})); !errors.Is(err, ErrFailed) {
		t.Fatalf("got %v", err)
	}
}

// A segment that cannot be made is no failure: the old one goes on.
func TestANewSegmentCannotBeMade(t *testing.T) {
	for _, op := range []string{"create", "write", "sync", "syncdir"} {
		t.Run(op, func(t *testing.T) {
			d := newDisk()
			j, _ := open(t, options(d))
			s := newScript(1, 2)
			appended := s.changes(3)
			check(t, j.Append(records(appended)))
			name := "journal-00000002"
			if op == "syncdir" {
				name = ""
			}
			failOn(d, op, name, 1, syscall.ENOSPC)
			if err := j.StartCompaction(); !errors.Is(err, syscall.ENOSPC) || errors.Is(err, ErrFailed) {
				t.Fatalf("got %v", err)
			}
			d.setFault(nil)
			more := s.changes(3)
			appended = append(appended, more...)
			check(t, j.Append(records(more)))
			check(t, j.StartCompaction())
			more = s.changes(3)
			appended = append(appended, more...)
			check(t, j.Append(records(more)))
			check(t, j.Close(true))
			_, replay := open(t, options(d))
			same(t, entries(t, replay), appended)
		})
	}
}

func TestOldSegmentsCannotBeRemoved(t *testing.T) {
	d := newDisk()
	j, _ := open(t, options(d))
	check(t, j.Append(records([]entry{{1, 1, Change, "a"}})))
	failOn(d, "remove", "journal-00000001", 1, syscall.EACCES)
	check(t, j.StartCompaction())
	check(t, j.Append(records([]entry{{1, 1, Snapshot, "A"}})))
	waitFor(t, "the end of the compaction", func() bool { return !j.Stats().Compacting })
	check(t, j.Append(records([]entry{{1, 2, Change, "b"}})))
	check(t, j.Close(true))
	if d.gone("journal-00000001.log") {
		t.Fatal("the fault of this test had no effect")
	}
	_, replay := open(t, options(d))
	same(t, entries(t, replay), []entry{{1, 1, Snapshot, "A"}, {1, 2, Change, "b"}})
	if !d.gone("journal-00000001.log") {
		t.Fatal("the next start did not remove it")
	}
}

func TestOpenFails(t *testing.T) {
	whole, appended, _ := small(t)
	for _, op := range []string{"names", "open", "size", "read", "create", "write", "sync", "syncdir"} {
		for nth := 1; ; nth++ {
			d := whole.killed()
			failOn(d, op, "", nth, syscall.EIO)
			j, replay, err := reopen(d, "one")
			if err == nil {
				d.setFault(nil) // what is left of it is for others
				same(t, entries(t, replay), replayOf(appended))
				check(t, j.Close(false))
				if nth == 1 {
					t.Fatalf("the first %s failed and nobody noticed", op)
				}
				break
			}
			if !errors.Is(err, syscall.EIO) || errors.Is(err, ErrCorrupt) {
				t.Fatalf("%s %d: %v", op, nth, err)
			}
			d.setFault(nil) // and nothing is lost or left locked
			j, replay, err = reopen(d, "one")
			check(t, err)
			same(t, entries(t, replay), replayOf(appended))
			check(t, j.Close(false))
		}
	}
}

func TestCleanAndUnclean(t *testing.T) {
	for _, c := range []struct {
		clean         bool
		before, after string // boot ids; "": cannot be read
		torn          bool   // the process died within a write
		unclean       bool
	}{
		{clean: true, before: "one", after: "one"},
		{clean: true, before: "one", after: "two"},
		{clean: true, before: "", after: ""},
		{clean: false, before: "one", after: "one"},
		{clean: false, before: "one", after: "two", unclean: true},
		{clean: false, before: "one", after: "", unclean: true},
		{clean: false, before: "", after: "one", unclean: true},
		{clean: false, before: "", after: "", unclean: true},
		{clean: false, before: "one", after: "one", torn: true},
		{clean: false, before: "one", after: "two", torn: true, unclean: true},
	} {
		t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
			d := newDisk()
			opts := options(d)
			opts.BootID = bootOrError(c.before)
			j, _ := open(t, opts)
			check(t, j.Append(records([]entry{{1, 1, Change, "a"}, {1, 2, Change, "b"}})))
			check(t, j.Close(c.clean))
			if c.torn {
				f := d.files["/j/journal-00000001.log"]
				f.data = f.data[:len(f.data)-1]
			}
			opts.BootID = bootOrError(c.after)
			_, replay := open(t, opts)
			if replay.Unclean != c.unclean {
				t.Fatalf("unclean is %v", replay.Unclean)
			}
		})
	}
}

// An unclean start is told again at every start, whatever was written and however the journal was closed, until it is
// settled.
func TestUncleanIsToldUntilItIsSettled(t *testing.T) {
	d := newDisk()
	unclean := func(id string, want bool, act func(j *Journal)) {
		t.Helper()
		opts := options(d)
		opts.BootID = boot(id)
		j, replay := open(t, opts)
		if replay.Unclean != want {
			t.Fatalf("unclean is %v", replay.Unclean)
		}
		act(j)
	}
	seq := uint64(0)
	grow := func(j *Journal) {
		seq++
		check(t, j.Append(records([]entry{{1, seq, Change, "x"}})))
	}
	unclean("one", false, func(j *Journal) { grow(j); check(t, j.Settled()); check(t, j.Close(false)) }) // nothing to settle
	unclean("two", true, func(j *Journal) { check(t, j.Close(false)) })
	unclean("two", true, func(j *Journal) { check(t, j.Close(true)) })
	unclean("two", true, func(j *Journal) { grow(j); check(t, j.Close(false)) })
	unclean("two", true, func(j *Journal) { grow(j); check(t, j.Close(true)) })
	unclean("two", true, func(j *Journal) {
		grow(j)
		check(t, j.StartCompaction())
		check(t, j.Append(records([]entry{{1, seq, Snapshot, "all"}})))
		compacted(t, j)
		check(t, j.Close(true))
	})
	unclean("two", true, func(j *Journal) { check(t, j.Settled()); check(t, j.Close(false)) })
	unclean("two", false, func(j *Journal) { grow(j); check(t, j.Close(true)) })
	unclean("three", false, func(j *Journal) { grow(j); check(t, j.Close(false)) })
	unclean("four", true, func(j *Journal) {
		check(t, j.Settled())
		check(t, j.StartCompaction()) // the new segment knows
		check(t, j.Settled())
		check(t, j.Close(true))
		if err := j.Settled(); !errors.Is(err, ErrClosed) {
			t.Fatalf("settled after Close: %v", err)
		}
	})
	unclean("five", false, func(j *Journal) { grow(j); check(t, j.Close(false)) })
	unclean("six", true, func(j *Journal) { check(t, j.Close(false)) })
	unclean("seven", true, func(j *Journal) { check(t, j.Settled()); grow(j); check(t, j.Close(false)) })
	unclean("seven", false, func(*Journal) {})
}

// A start in vain leaves a header that says nothing is amiss. What is found amiss later is not forgotten because of it.
func TestDamageFoundAfterAStartInVain(t *testing.T) {
	d := newDisk()
	j, _ := open(t, options(d))
	check(t, j.Append(records([]entry{{1, 1, Change, "a"}})))
	check(t, j.Close(false))
	j, _ = open(t, options(d))
	check(t, j.Close(false))
	f := d.files["/j/journal-00000001.log"]
	f.data[len(f.data)-1] ^= 1
	for range 2 {
		j, replay := open(t, options(d))
		if !replay.Unclean {
			t.Fatal("not unclean")
		}
		check(t, j.Close(false))
	}
}

// After a clean shutdown a start whose records never reached the disk has left nothing but a header. It counts.
func TestAStartOfWhichOnlyTheHeaderIsLeft(t *testing.T) {
	for _, first := range []bool{true, false} { // whether it was the first start of all
		d := newDisk()
		name := "/j/journal-00000001.log"
		if !first {
			j, _ := open(t, options(d))
			check(t, j.Append(records([]entry{{1, 1, Change, "a"}})))
			check(t, j.Close(true))
			name = "/j/journal-00000002.log"
		}
		j, _ := open(t, options(d))
		check(t, j.Append(records([]entry{{2, 1, Change, "b"}})))
		crashed := d.killed()
		check(t, j.Close(false))
		for _, left := range []struct {
			bytes   int
			flip    byte
			unclean bool
		}{{headerSize, 0, true}, {headerSize, 1, true}, {headerSize - 1, 0, false}, {0, 0, false}} {
			after := crashed.killed()
			f := after.files[name]
			f.data = f.data[:left.bytes]
			if left.flip != 0 {
				f.data[20] ^= left.flip
			}
			for range 2 {
				j, replay, err := reopen(after, "two")
				check(t, err)
				if replay.Unclean != left.unclean {
					t.Fatalf("%+v: unclean is %v", left, replay.Unclean)
				}
				check(t, j.Close(false))
			}
			j, replay, err := reopen(crashed.killed(), "one")
			check(t, err)
			if replay.Unclean {
				t.Fatal("the kernel is the same, and it is unclean")
			}
			check(t, j.Close(false))
		}
	}
}

func bootOrError(id string) func() (string, error) {
	if id == "" {
		return func() (string, error) { return "", io.ErrUnexpectedEOF }
	}
	return boot(id)
}
