package journal

import (
	"errors"
	"fmt"
	"time"
)

// Sync returns when everything that was appended before the call is on disk.
func (j *Journal) Sync() error {
	j.mu.Lock()
	err, end := j.usable(), j.written
	j.mu.Unlock()
	if err != nil {
		return err
	}
	return j.syncTo(end)
}

// syncTo returns when everything up to the position is on disk. Of several callers the first calls fsync; the next one
// does so for all who have written meanwhile, and these find their part done.
func (j *Journal) syncTo(end int64) error {
	j.syncing.Lock()
	defer j.syncing.Unlock()
	j.mu.Lock()
	done, failed := j.synced >= end, j.failed
	j.mu.Unlock()
	if done {
		return nil
	}
	if failed != nil {
		return failed
	}
	return j.sync()
}

// sync calls fsync, if anything was written since the last one. syncing is held, mu is not.
func (j *Journal) sync() error {
	j.mu.Lock()
	failed, target, dirty := j.failed, j.written, j.written > j.synced
	j.mu.Unlock()
	if failed != nil || !dirty {
		return failed
	}
	if err := j.segment.file.Sync(); err != nil {
		return j.syncFailed(fmt.Errorf("fsync of %s: %w", j.segment.name, err))
	}
	j.mu.Lock()
	j.synced = target
	j.mu.Unlock()
	return nil
}

// syncFailed makes the journal fail after an fsync, and leaves word of it to the next Open: the kernel may have dropped
// what it could not write, and without a restart of the machine nothing else would tell. syncing is held, mu is not.
func (j *Journal) syncFailed(cause error) error {
	j.mu.Lock()
	err := j.fail(cause)
	j.mu.Unlock()
	if markErr := j.leaveWord(cause); markErr != nil {
		j.log.Error("cannot leave word of the failure for the next start; restart the machine before it, or records "+
			"may be missed without notice", "dir", j.dir, "error", markErr)
	}
	return err
}

func (j *Journal) leaveWord(cause error) error {
	f, err := j.opts.FS.Create(j.path(failedName))
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, cause)
	return errors.Join(err, f.Sync(), f.Close(), j.opts.FS.SyncDir(j.dir))
}

// work is the goroutine of the journal: it syncs in the background, begins a new segment when one is full and ends
// compactions.
func (j *Journal) work() {
	defer close(j.stopped)
	tick := time.NewTicker(j.opts.SyncEvery)
	defer tick.Stop()
	for {
		select {
		case <-j.stop:
			return
		case <-tick.C:
			j.Turn()
		case <-j.kick:
			j.maintain()
		}
	}
}

// Turn is what the journal's goroutine does once in SyncEvery: with Options.Driven it is for the caller to do.
func (j *Journal) Turn() {
	j.syncing.Lock()
	// A failure is in Err and in Failed, and every call reports it.
	_ = j.sync() // told by Err and Failed
	j.syncing.Unlock()
	j.maintain()
}

// wake makes the goroutine look what is to be done.
func (j *Journal) wake() {
	select {
	case j.kick <- struct{}{}:
	default:
	}
}
