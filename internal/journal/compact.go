package journal

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
)

// maxSegments is the number of segments above which compaction is wanted however small they are: every restart begins one.
const maxSegments = 64

// compaction is one that is running.
type compaction struct {
	base    uint64          // the segment it began with: those before are deleted at its end
	missing map[uint32]bool // buckets without a snapshot since
}

// NeedsCompaction tells whether the segments have outgrown what is in them: they are larger than CompactBytes and than four
// times the newest snapshots of all buckets together. It is false while a compaction is running. It is cheap.
func (j *Journal) NeedsCompaction() bool { return j.wanted.Load() }

// consider decides anew whether compaction is wanted. mu is held.
func (j *Journal) consider() {
	grown := j.live() > max(j.opts.CompactBytes, 4*j.snapshots)
	j.wanted.Store(j.compaction == nil && j.failed == nil && (grown || j.suspect || len(j.older) >= maxSegments))
}

func (j *Journal) full() bool { return j.written-j.segment.start >= j.opts.SegmentBytes }

// StartCompaction begins a new segment. The caller then appends a Snapshot of every bucket, in any order and in its own
// time; when all buckets that have records in older segments have one, the journal deletes those. If a compaction is
// running already, that one goes on. An error that is not ErrFailed leaves the journal as it was: try again later.
func (j *Journal) StartCompaction() error {
	j.syncing.Lock()
	defer j.syncing.Unlock()
	j.mu.Lock()
	err, running := j.usable(), j.compaction != nil
	j.mu.Unlock()
	if err != nil || running {
		return err
	}
	return j.rotate(func() {
		c := &compaction{base: j.segment.number, missing: make(map[uint32]bool, len(j.buckets))}
		for bucket := range j.buckets {
			c.missing[bucket] = true
		}
		j.compaction = c
		j.consider()
		if len(c.missing) == 0 {
			j.wake()
		}
	})
}

// snapshotDone notes that a bucket has a snapshot which began in the given segment. mu is held.
func (j *Journal) snapshotDone(r *Record, state *bucketState, begun uint64) {
	state.seq = r.Seq
	j.snapshots += int64(len(r.Payload)) - state.snapshot
	state.snapshot = int64(len(r.Payload))
	if c := j.compaction; c != nil && begun >= c.base {
		delete(c.missing, r.Bucket)
		if len(c.missing) == 0 {
			j.wake()
		}
	}
}

// maintain ends a compaction that has all its snapshots and begins a new segment when one is full.
func (j *Journal) maintain() {
	j.syncing.Lock()
	defer j.syncing.Unlock()
	j.mu.Lock()
	usable := j.usable() == nil
	done := j.compaction != nil && len(j.compaction.missing) == 0
	full := j.full()
	j.mu.Unlock()
	if usable && done {
		j.endCompaction()
	}
	if usable && full {
		if err := j.rotate(func() {}); err != nil && !errors.Is(err, ErrFailed) {
			j.log.Warn("cannot begin a new segment; the full one goes on", "dir", j.dir, "error", err)
		}
	}
}

// endCompaction deletes the segments before the compaction's. First the snapshots must be on disk, and then the mark that
// makes Open do without them: names of deleted files may vanish in any order if the machine dies now. syncing is held.
func (j *Journal) endCompaction() {
	base := j.compaction.base
	err := j.sync()
	if err == nil {
		err = j.mark(markBase, base)
	}
	if err == nil {
		err = j.sync()
	}
	if err != nil {
		return // the journal has failed, which Err tells
	}
	j.mu.Lock()
	var gone []sealed
	var bytes int64
	for len(j.older) > 0 && j.older[0].number < base {
		gone = append(gone, j.older[0])
		bytes += j.older[0].size
		j.older = j.older[1:]
	}
	j.olderBytes -= bytes
	suspect := j.suspect
	j.compaction, j.suspect = nil, false
	j.consider()
	live := j.live()
	j.mu.Unlock()
	for _, s := range gone {
		err = errors.Join(err, j.opts.FS.Remove(j.path(s.name)))
	}
	if suspect { // all that may not be on disk is gone now
		err = errors.Join(err, j.opts.FS.Remove(j.path(failedName)))
	}
	if err = errors.Join(err, j.opts.FS.SyncDir(j.dir)); err != nil {
		j.log.Warn("cannot delete segments that are not needed any more; the next start tries again", "dir", j.dir, "error", err)
	}
	j.log.Info("compacted the journal", "dir", j.dir, "deleted_segments", len(gone), "deleted_bytes", bytes, "bytes", live)
}

// rotate begins a new segment and calls switched, with mu held, at the moment when it takes over. The old one is on disk
// by then. An error that is not ErrFailed has changed nothing. syncing is held, mu is not.
func (j *Journal) rotate(switched func()) error {
	next, err := j.create(j.segment.number + 1)
	if err != nil {
		return err
	}
	err = j.sync() // the bulk of the old one, while others write
	if err == nil {
		err = j.change(next, switched)
	}
	if err != nil {
		return errors.Join(err, next.file.Close(), j.opts.FS.Remove(j.path(next.name)))
	}
	return nil
}

// change makes next the segment that is written to, once the old one is on disk. syncing is held, mu is not.
func (j *Journal) change(next *segment, switched func()) error {
	j.mu.Lock()
	if err := j.usable(); err != nil {
		j.mu.Unlock()
		return err
	}
	old := j.segment
	if j.synced < j.written { // the little that was written since the last fsync
		if err := old.file.Sync(); err != nil {
			j.mu.Unlock()
			return j.syncFailed(fmt.Errorf("fsync of %s: %w", old.name, err))
		}
	}
	size := j.written - old.start
	j.older = append(j.older, sealed{number: old.number, name: old.name, size: size})
	j.olderBytes += size
	j.begin(next)
	switched()
	j.mu.Unlock()
	if err := old.file.Close(); err != nil {
		j.log.Warn("cannot close a segment that is complete and on disk", "segment", old.name, "error", err)
	}
	return nil
}

// begin makes a segment with a durable header the one that is written to. mu is held, or nobody else has the journal yet.
func (j *Journal) begin(next *segment) {
	if j.segment != nil {
		next.before = j.segment.before
		if j.written > j.segment.start+headerSize {
			next.before = j.chain.sum
		}
	}
	next.start = j.written
	j.segment, j.chain = next, newChain(next.header)
	j.written += headerSize
	j.synced, j.marked = j.written, j.written // the header needs no mark: there is no record without it
}

// create makes the file of a segment, its header on disk. syncing is held, or nobody else has the journal yet.
func (j *Journal) create(number uint64) (*segment, error) {
	var seed [8]byte
	rand.Read(seed[:]) // never fails: crypto/rand ends the program instead
	s := &segment{
		header: header{number: number, seed: binary.LittleEndian.Uint64(seed[:]), boot: j.boot, unsettled: j.unsettled},
		name:   segmentName(number),
	}
	var err error
	if s.file, err = j.opts.FS.Create(j.path(s.name)); err != nil {
		return nil, fmt.Errorf("create a segment of the journal: %w", err)
	}
	_, err = s.file.Write(s.encode())
	if err == nil {
		err = s.file.Sync()
	}
	if err == nil {
		err = j.opts.FS.SyncDir(j.dir)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("begin the segment %s: %w", s.name, err), s.file.Close(), j.opts.FS.Remove(j.path(s.name)))
	}
	return s, nil
}
