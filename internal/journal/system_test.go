package journal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// The tests of this file use the operating system's files.

func TestFilesAreForTheOwnerOnly(t *testing.T) {
	top := filepath.Join(t.TempDir(), "new", "journal")
	j, _, err := Open(top, Options{})
	check(t, err)
	check(t, j.Append([]Record{{Bucket: 1, Seq: 1, Kind: Change, Payload: []byte("x")}}))
	check(t, j.Close(true))
	mode := func(name string) os.FileMode {
		info, err := os.Stat(name)
		check(t, err)
		return info.Mode().Perm()
	}
	if got := mode(top); got != 0o700 {
		t.Errorf("directory: %o", got)
	}
	names, err := os.ReadDir(top)
	check(t, err)
	if len(names) != 2 {
		t.Errorf("%d files", len(names))
	}
	for _, e := range names {
		if got := mode(filepath.Join(top, e.Name())); got != 0o600 {
			t.Errorf("%s: %o", e.Name(), got)
		}
	}
}

func TestTwoCannotOpenOneDirectory(t *testing.T) {
	top := t.TempDir()
	j, _, err := Open(top, Options{})
	check(t, err)
	check(t, j.Append([]Record{{Bucket: 1, Seq: 1, Kind: Change}}))
	_, _, err = Open(top, Options{})
	if !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), fmt.Sprint("process ", os.Getpid())) || !strings.Contains(err.Error(), top) {
		t.Fatalf("got %v", err)
	}
	check(t, j.Append([]Record{{Bucket: 1, Seq: 2, Kind: Change}})) // the first is not disturbed
	check(t, j.Close(true))
	j, replay, err := Open(top, Options{})
	check(t, err)
	if all := entries(t, replay); len(all) != 2 || replay.Unclean {
		t.Fatalf("%v, unclean %v", all, replay.Unclean)
	}
	check(t, j.Close(true))
}

func TestOpenWhereNothingCanBe(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	check(t, os.WriteFile(file, nil, 0o600))
	if _, _, err := Open(filepath.Join(file, "journal"), Options{}); err == nil {
		t.Fatal("opened below a file")
	}
}

// Several goroutines own buckets, append, and write their snapshots while the journal compacts, syncs and begins new
// segments by itself.
func TestManyHands(t *testing.T) {
	for _, mode := range []Sync{Background, Always} {
		t.Run(fmt.Sprint(mode), func(t *testing.T) { manyHands(t, mode) })
	}
}

func manyHands(t *testing.T, mode Sync) {
	const hands, buckets, rounds = 4, 3, 60
	opts := Options{Sync: mode, SyncEvery: time.Millisecond, SegmentBytes: 20_000, CompactBytes: 30_000, partBytes: 100, writeBytes: 300}
	top := t.TempDir()
	j, _, err := Open(top, opts)
	check(t, err)
	var wg sync.WaitGroup
	errs := make(chan error, 2*hands)
	appended := make([][]entry, hands) // of each hand, in its order
	var compactions sync.Mutex
	generation := 0 // of compactions that were asked for
	for hand := range hands {
		wg.Go(func() {
			s := newScript(uint64(hand), buckets)
			seen := 0
			for range rounds {
				batch := s.changes(1 + s.rng.IntN(20))
				compactions.Lock()
				if j.NeedsCompaction() {
					generation++
					if err := j.StartCompaction(); err != nil {
						errs <- err
					}
				}
				wanted := generation
				compactions.Unlock()
				if wanted != seen {
					seen = wanted
					for bucket := range uint32(buckets) {
						batch = append(batch, s.snapshot(bucket, 500))
					}
				}
				for i := range batch { // the buckets of each hand are its own
					batch[i].bucket = batch[i].bucket*hands + uint32(hand)
				}
				if err := j.Append(records(batch)); err != nil {
					errs <- err
					return
				}
				appended[hand] = append(appended[hand], batch...)
				j.Stats()
			}
		})
	}
	wg.Wait()
	select {
	case err := <-errs:
		t.Fatal(err)
	default:
	}
	if generation == 0 {
		t.Fatal("nothing was ever compacted")
	}
	check(t, j.Close(true))
	j, replay, err := Open(top, opts)
	check(t, err)
	got := make([][]entry, hands)
	for _, e := range entries(t, replay) {
		got[e.bucket%hands] = append(got[e.bucket%hands], e)
	}
	for hand := range hands {
		same(t, got[hand], replayOf(appended[hand]))
	}
	check(t, j.Close(true))
}

func TestBackgroundSyncHappensByItself(t *testing.T) {
	d := newDisk()
	opts := options(d)
	opts.SyncEvery = time.Millisecond
	j, _ := open(t, opts)
	check(t, j.Append(records([]entry{{1, 1, Change, "a"}})))
	waitFor(t, "the background sync", func() bool { return j.Stats().UnsyncedBytes == 0 })
	d.mu.Lock()
	defer d.mu.Unlock()
	if f := d.files["/j/journal-00000001.log"]; len(f.synced) != len(f.data) {
		t.Fatalf("%d of %d bytes are on disk", len(f.synced), len(f.data))
	}
}

// What is written while an fsync runs is not counted as synced by it.
func TestAnFsyncCountsForWhatWasWrittenBefore(t *testing.T) {
	d := newDisk()
	j, _ := open(t, options(d))
	check(t, j.Append(records([]entry{{1, 1, Change, "a"}})))
	d.after = once("sync", "journal-00000001.log", func() { check(t, j.Append(records([]entry{{1, 2, Change, "b"}}))) })
	check(t, j.Sync())
	if n := j.Stats().UnsyncedBytes; n != headSize+1 {
		t.Fatalf("%d bytes are unsynced, want the second change's", n)
	}
}

// Many callers of Append with Sync: Always share the fsyncs: those who wrote while one was running have one for all.
func TestCallersShareAnFsync(t *testing.T) {
	const callers = 16
	d := newDisk()
	opts := options(d)
	opts.Sync = Always
	j, _ := open(t, opts)
	before := d.count("sync")
	j.syncing.Lock() // as an fsync that is running
	var wg sync.WaitGroup
	errs := make(chan error, callers)
	for bucket := range uint32(callers) {
		wg.Go(func() { errs <- j.Append([]Record{{Bucket: bucket, Seq: 1, Kind: Change}}) })
	}
	waitFor(t, "all writes", func() bool { return j.Stats().UnsyncedBytes == headSize+callers*headSize })
	select {
	case err := <-errs:
		t.Fatalf("an Append returned before the fsync: %v", err)
	default:
	}
	j.syncing.Unlock()
	wg.Wait()
	for range callers {
		check(t, <-errs)
	}
	if n := d.count("sync") - before; n != 1 {
		t.Fatalf("%d fsyncs for %d callers", n, callers)
	}
}

// A batch of small records is one write.
func TestABatchIsOneWrite(t *testing.T) {
	d := newDisk()
	j, _ := open(t, options(d))
	before := d.count("write")
	check(t, j.Append(records(newScript(1, 3).changes(256))))
	if n := d.count("write") - before; n != 1 {
		t.Fatalf("%d writes", n)
	}
	if n := d.count("sync"); n != 1 {
		t.Fatalf("%d fsyncs, want the header's only", n)
	}
}

func TestCloseWhileOthersAppend(t *testing.T) {
	for _, mode := range []Sync{Background, Always} {
		d := newDisk()
		opts := options(d)
		opts.Sync = mode
		j, _ := open(t, opts)
		var wg sync.WaitGroup
		counts := make([]uint64, 4)
		started := make(chan struct{}, len(counts))
		for bucket := range counts {
			wg.Go(func() {
				for seq := uint64(1); ; seq++ {
					if err := j.Append([]Record{{Bucket: uint32(bucket), Seq: seq, Kind: Change}}); err != nil {
						if !errors.Is(err, ErrClosed) {
							t.Error(err)
						}
						return
					}
					counts[bucket] = seq
					if seq == 10 {
						started <- struct{}{}
					}
				}
			})
		}
		for range counts {
			<-started
		}
		check(t, j.Close(true))
		wg.Wait()
		_, replay := open(t, options(d))
		if replay.Unclean || replay.Torn != 0 {
			t.Fatalf("%+v", replay)
		}
		got := make([]uint64, len(counts))
		for _, e := range entries(t, replay) {
			got[e.bucket] = e.seq
		}
		if fmt.Sprint(got) != fmt.Sprint(counts) {
			t.Fatalf("came back: %v, Append returned nil for %v", got, counts)
		}
	}
}
