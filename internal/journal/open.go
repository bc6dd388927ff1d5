package journal

import (
	"errors"
	"fmt"
)

// Open opens the journal in a directory, which is created if need be, and locks it until Close. It reads and checks all of
// it, cuts off what a crash has left half-written, and begins a new segment. Errors: ErrLocked, ErrCorrupt, ErrVersion, and
// those of the file system. Unless the error is of writing, Open has changed nothing.
func Open(dir string, opts Options) (*Journal, *Replay, error) {
	opts = opts.withDefaults()
	if err := opts.FS.MkdirAll(dir); err != nil {
		return nil, nil, fmt.Errorf("open the journal: %w", err)
	}
	j := &Journal{
		dir: dir, opts: opts, log: opts.Logger,
		failure: make(chan struct{}), kick: make(chan struct{}, 1), stop: make(chan struct{}), stopped: make(chan struct{}),
		buckets: make(map[uint32]*bucketState),
	}
	var err error
	if j.unlock, err = opts.FS.Lock(j.path(lockName)); err != nil {
		return nil, nil, fmt.Errorf("open the journal in %s: %w", dir, err)
	}
	replay, err := j.open()
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("open the journal in %s: %w", dir, err), j.unlock())
	}
	if opts.Driven {
		close(j.stopped)
	} else {
		go j.work()
	}
	return j, replay, nil
}

func (j *Journal) open() (*Replay, error) {
	if id, err := j.opts.BootID(); err != nil {
		j.log.Warn("the kernel's boot id is unknown, so every start after a crash counts as unclean", "error", err)
	} else {
		j.boot = bootHash(id)
	}
	in, err := inspect(j.opts.FS, j.dir, j.boot)
	if err != nil {
		return nil, err
	}
	j.unsettled = in.unclean
	first, err := j.first(in)
	if err != nil {
		return nil, err
	}
	if err := j.repair(in); err != nil {
		return nil, errors.Join(err, first.file.Close())
	}
	for _, s := range in.segments {
		if s.number < first.number {
			j.older = append(j.older, s)
			j.olderBytes += s.size
		}
	}
	for bucket, b := range in.buckets {
		if b.known {
			j.buckets[bucket] = &bucketState{seq: b.seq, snapshot: b.size}
			j.snapshots += b.size
		}
	}
	j.suspect = in.failed
	first.before = in.sum
	j.begin(first)
	j.consider()
	return newReplay(in), nil
}

// first gives the segment to write to: a new one, whose header says what this start knows of the one before; or the last
// one, if it has no records and would say the same, so that starts in vain do not fill the directory.
func (j *Journal) first(in *inspection) (*segment, error) {
	n := len(in.segments)
	if n == 0 {
		return j.create(1)
	}
	if in.tail == n-1 || in.end.boot != j.boot || in.end.unsettled != j.unsettled {
		return j.create(in.segments[n-1].number + 1)
	}
	s := &segment{header: in.end, name: in.segments[n-1].name, empty: true}
	var err error
	if s.file, err = j.opts.FS.Open(j.path(s.name)); err != nil {
		return nil, err
	}
	if err = errors.Join(s.file.Sync(), j.opts.FS.SyncDir(j.dir)); err != nil {
		return nil, errors.Join(fmt.Errorf("use the segment %s: %w", s.name, err), s.file.Close())
	}
	return s, nil
}

// repair removes what is not needed, cuts the torn end off, and makes sure that all that is left is on disk: the segment
// that comes next may get a record only then.
func (j *Journal) repair(in *inspection) error {
	for _, s := range in.unneeded {
		if err := j.opts.FS.Remove(j.path(s.name)); err != nil {
			return fmt.Errorf("remove the segment %s that is not needed: %w", s.name, err)
		}
	}
	if in.torn > 0 {
		j.log.Warn("the end of the journal was cut off by a crash", "dir", j.dir, "dropped_bytes", in.torn)
	}
	if in.tail < 0 {
		return nil
	}
	tail := in.segments[in.tail]
	f, err := j.opts.FS.Open(j.path(tail.name))
	if err != nil {
		return err
	}
	if in.torn > 0 {
		err = f.Truncate(tail.size)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("repair the end of %s: %w", tail.name, err)
	}
	return nil
}
