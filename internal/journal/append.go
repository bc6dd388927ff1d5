package journal

import "fmt"

const (
	writeSize  = 1 << 20 // a larger batch is written in pieces of about this size
	keepBuffer = 4 << 20 // a larger buffer is not kept
)

// Record is one thing to store.
type Record struct {
	Bucket uint32
	// Seq is the number of a Change in its bucket: each follows the one before by one; the first of all, or the first
	// after a Snapshot with Seq n, is 1 or n + 1. A Snapshot may have any.
	Seq     uint64
	Kind    Kind   // Change or Snapshot
	Payload []byte // at most MaxChange or MaxSnapshot bytes; not kept
}

func (r *Record) check() error {
	limit := int64(MaxChange)
	switch r.Kind {
	case Change:
	case Snapshot:
		limit = MaxSnapshot
	default:
		return fmt.Errorf("append to the journal: %w, not %v", errKind, r.Kind)
	}
	if int64(len(r.Payload)) > limit {
		return fmt.Errorf("append to the journal: %w: a %v of %d bytes, the limit is %d", ErrTooLarge, r.Kind, len(r.Payload), limit)
	}
	return nil
}

// Append stores a batch, with one write(2), or one for every MiB of it; between those, batches of other callers may get
// in, so all records of a bucket must come from one goroutine at a time. It returns after the write, with Sync: Always
// after an fsync that concurrent callers share.
//
// ErrTooLarge and ErrClosed: nothing was stored (ErrClosed: of a batch above a MiB perhaps its beginning). Any other error
// is ErrFailed with its cause and final: what was stored of the batch is not known, and every later call fails too.
func (j *Journal) Append(batch []Record) error {
	for i := range batch {
		if err := batch[i].check(); err != nil {
			return err
		}
	}
	if len(batch) == 0 {
		return nil
	}
	end, err := j.write(batch)
	if err != nil || j.opts.Sync != Always && !j.always.Load() {
		return err
	}
	return j.syncTo(end)
}

// SyncAlways makes a journal that was opened with Background do what one with Always does, from the next Append on.
func (j *Journal) SyncAlways() { j.always.Store(true) }

// write encodes and writes the batch and gives the position of its end.
func (j *Journal) write(batch []Record) (end int64, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.usable(); err != nil {
		return 0, err
	}
	for i := range batch {
		if err := j.encode(&batch[i]); err != nil {
			return 0, err
		}
	}
	if err := j.flush(); err != nil {
		return 0, err
	}
	return j.written, nil
}

// encode puts a record into the buffer, in parts if it is a large snapshot. mu is held.
func (j *Journal) encode(r *Record) error {
	state := j.buckets[r.Bucket]
	if state == nil {
		state = &bucketState{}
		j.buckets[r.Bucket] = state
	}
	if state.busy {
		return j.abandon(fmt.Errorf("%w: bucket %d gets a %v while a snapshot of it is being written", ErrSequence, r.Bucket, r.Kind))
	}
	if r.Kind == Snapshot {
		return j.encodeSnapshot(r, state)
	}
	if r.Seq != state.seq+1 {
		return j.abandon(fmt.Errorf("%w: bucket %d gets change %d after %d", ErrSequence, r.Bucket, r.Seq, state.seq))
	}
	state.seq = r.Seq
	j.put(head{bucket: r.Bucket, seq: r.Seq, kind: Change}, r.Payload)
	return j.pause()
}

func (j *Journal) encodeSnapshot(r *Record, state *bucketState) error {
	begun := j.segment.number
	state.busy = true
	defer func() { state.busy = false }()
	rest := r.Payload
	for part := 0; ; part++ {
		now := rest[:min(len(rest), j.opts.partBytes)]
		rest = rest[len(now):]
		last := len(rest) == 0
		j.put(head{bucket: r.Bucket, seq: r.Seq, kind: Snapshot, last: last, part: uint16(part)}, now)
		if last {
			j.snapshotDone(r, state, begun)
			return j.pause()
		}
		if err := j.pause(); err != nil {
			return err
		}
	}
}

// put encodes one record at the end of the buffer. mu is held.
func (j *Journal) put(h head, payload []byte) {
	if j.offset() == headerSize {
		j.buf = j.chain.append(j.buf, j.offset(), head{kind: markLink, seq: j.segment.before}, nil)
	}
	if len(j.buf) == 0 && j.synced > j.marked {
		j.marked = j.synced
		j.buf = j.chain.append(j.buf, j.offset(), head{kind: markSynced, seq: uint64(j.synced - j.segment.start)}, nil)
	}
	j.buf = j.chain.append(j.buf, j.offset(), h, payload)
}

// offset is where in the segment the next record begins. mu is held.
func (j *Journal) offset() int64 { return j.written - j.segment.start + int64(len(j.buf)) }

// pause writes the buffer if it has grown to a piece's size, and lets others have the journal. mu is held, and released
// meanwhile.
func (j *Journal) pause() error {
	if len(j.buf) < j.opts.writeBytes {
		return nil
	}
	if err := j.flush(); err != nil {
		return err
	}
	j.mu.Unlock()
	j.mu.Lock()
	return j.usable()
}

// flush writes the buffer to the segment. mu is held.
func (j *Journal) flush() error {
	if len(j.buf) == 0 {
		return nil
	}
	n, err := j.segment.file.Write(j.buf)
	if err == nil && n < len(j.buf) {
		err = fmt.Errorf("only %d of %d bytes were written", n, len(j.buf))
	}
	if err != nil {
		err = fmt.Errorf("write to %s: %w", j.segment.name, err)
		// The file ends with a whole record again. Should that fail too, the next Open cuts the rest off.
		if cutErr := j.segment.file.Truncate(j.written - j.segment.start); cutErr != nil {
			err = fmt.Errorf("%w (nor could the rest be cut off: %w)", err, cutErr)
		}
		return j.abandon(err)
	}
	j.written += int64(len(j.buf))
	j.buf = j.buf[:0]
	if cap(j.buf) > keepBuffer {
		j.buf = nil
	}
	j.consider()
	return nil
}

// abandon throws the buffer away and fails. mu is held.
func (j *Journal) abandon(cause error) error {
	j.buf = nil
	return j.fail(cause)
}

// mark writes one of the journal's own marks. mu is not held; syncing is.
func (j *Journal) mark(kind Kind, seq uint64) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.failed != nil {
		return j.failed
	}
	j.put(head{kind: kind, seq: seq}, nil)
	return j.flush()
}
