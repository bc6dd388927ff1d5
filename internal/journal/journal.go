package journal

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
)

// Journal is an open journal. Its methods may be called from several goroutines.
type Journal struct {
	dir    string
	opts   Options
	log    *slog.Logger
	unlock func() error
	boot   uint64 // hash of the boot id; 0: unknown

	wanted  atomic.Bool   // NeedsCompaction
	always  atomic.Bool   // SyncAlways
	failure chan struct{} // closed when the journal fails
	kick    chan struct{} // there is something for the goroutine to do at once; holds one
	stop    chan struct{} // closed by Close
	stopped chan struct{} // closed by the goroutine when it has ended

	syncing   sync.Mutex // held by whoever calls fsync or changes the segment; taken before mu
	unsettled bool       // Replay.Unclean, until Settled; guarded by syncing

	mu sync.Mutex // guards everything below; changing segment, synced and older needs syncing too

	segment *segment
	chain   chain  // of segment
	buf     []byte // records on their way to the file; empty between two holders of mu

	// Positions count the bytes that this process has put into its segments, headers included.
	written int64
	synced  int64 // up to here all is on disk
	marked  int64 // up to here a mark in the segment says so

	buckets    map[uint32]*bucketState
	older      []sealed // the segments before, in order
	olderBytes int64
	snapshots  int64       // bytes of the newest snapshots of all buckets
	compaction *compaction // nil: none is running
	suspect    bool        // what is in the older segments may not be on disk, whatever fsync says: wants compaction

	failed error
	closed bool
}

// segment is the file that is written to.
type segment struct {
	header
	name   string
	file   File
	start  int64  // position of its first byte
	before uint64 // the sum of the last record in the segments before
	empty  bool   // it was there when the journal was opened, without records
}

// sealed is a segment that is not written to any more.
type sealed struct {
	number uint64
	name   string
	size   int64
	seed   uint64 // as its header says, if that was read
}

// bucketState is what the journal knows of a bucket.
type bucketState struct {
	seq      uint64 // of the newest change or snapshot
	snapshot int64  // bytes of the newest complete snapshot
	busy     bool   // a snapshot is being written in parts
}

// Stats are figures of a journal for its operator.
type Stats struct {
	Segments      int   // files
	LiveBytes     int64 // size of all of them
	SnapshotBytes int64 // size of the newest snapshots in them
	UnsyncedBytes int64 // written and not yet known to be on disk
	Compacting    bool
}

// Stats gives the figures of this moment.
func (j *Journal) Stats() Stats {
	j.mu.Lock()
	defer j.mu.Unlock()
	return Stats{
		Segments: len(j.older) + 1, LiveBytes: j.live(), SnapshotBytes: j.snapshots,
		UnsyncedBytes: j.written - j.synced, Compacting: j.compaction != nil,
	}
}

// Failed is closed when the journal has failed, be it in the background; Err says why.
func (j *Journal) Failed() <-chan struct{} { return j.failure }

// Err is nil until the journal has failed; then it is ErrFailed with its cause.
func (j *Journal) Err() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.failed
}

// live is the size of all segments. mu is held.
func (j *Journal) live() int64 { return j.olderBytes + j.written - j.segment.start }

// usable tells why nothing can be written, if so. mu is held.
func (j *Journal) usable() error {
	if j.failed != nil {
		return j.failed
	}
	if j.closed {
		return ErrClosed
	}
	return nil
}

// fail makes the journal refuse everything from now on and gives the error that it refuses with. mu is held.
func (j *Journal) fail(cause error) error {
	if j.failed == nil {
		j.failed = fmt.Errorf("%w: %w", ErrFailed, cause)
		close(j.failure)
		j.wanted.Store(false)
		j.log.Error("the journal has failed; nothing more can be stored until it is opened anew", "dir", j.dir, "error", cause)
	}
	return j.failed
}

// Settled says that whatever may have been missing when Replay.Unclean was told has been dealt with: no later start tells
// it of that time any more. It returns when this is on disk.
func (j *Journal) Settled() error {
	j.syncing.Lock()
	defer j.syncing.Unlock()
	j.mu.Lock()
	err := j.usable()
	j.mu.Unlock()
	if err != nil || !j.unsettled {
		return err
	}
	if err := j.mark(markSettle, 0); err != nil {
		return err
	}
	j.unsettled = false
	return j.sync()
}

// Close stops the journal. With clean it calls fsync and writes the mark of a clean shutdown, to be used only if all that
// the caller has decided was appended; without, it calls fsync and leaves no mark. A failed journal is released and its
// error returned. Calling Close again does nothing.
func (j *Journal) Close(clean bool) error {
	j.mu.Lock()
	if j.closed {
		j.mu.Unlock()
		return nil
	}
	j.closed = true
	j.mu.Unlock()
	close(j.stop)
	<-j.stopped

	j.syncing.Lock()
	defer j.syncing.Unlock()
	err := j.finish(clean)
	if closeErr := j.segment.file.Close(); closeErr != nil && err == nil {
		err = fmt.Errorf("close %s: %w", j.segment.name, closeErr)
	}
	if unlockErr := j.unlock(); unlockErr != nil && err == nil {
		err = fmt.Errorf("unlock %s: %w", j.dir, unlockErr)
	}
	return err
}

// finish makes what was appended durable. syncing is held.
func (j *Journal) finish(clean bool) error {
	if err := j.sync(); err != nil || !clean {
		return err
	}
	if err := j.mark(markClean, 0); err != nil {
		return err
	}
	return j.sync()
}

func (j *Journal) path(name string) string { return filepath.Join(j.dir, name) }
