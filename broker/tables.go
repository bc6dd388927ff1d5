package broker

import (
	"errors"
	"fmt"
	"hash/maphash"
	"path/filepath"
	"time"

	"github.com/opencluster/oclocks/bucket"
	"github.com/opencluster/oclocks/conf"
	"github.com/opencluster/oclocks/internal/boottime"
	"github.com/opencluster/oclocks/internal/journal"
)

// tokenEpoch is where the terms of a daemon that keeps nothing begin to count: see ARCHITECTURE.md, "Tokens".
var tokenEpoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

var processSeed = maphash.MakeSeed()

// keyedHash places names in the tables' indexes. Its key is this process's own, so that nobody can choose names that
// collide.
func keyedHash(name string) uint64 { return maphash.String(processSeed, name) }

// openTables makes the tables of all buckets, from the journal if there is one, and makes this daemon their primary.
// A restart is a takeover from the daemon's own journal: the term rises and every lease begins anew.
func (d *Daemon) openTables() error {
	replay, err := d.openJournal()
	if err != nil {
		return err
	}
	tables, err := d.replay(replay)
	if err != nil {
		return err
	}
	now := bucket.Now{Boot: boottime.Now(), Wall: time.Now().UnixMilli()}
	var recoverUntil int64
	if replay != nil && replay.Unclean {
		// The machine went down and may have taken answered grants with it that were not yet on its disk. Whoever holds
		// such a lock trusts it for one lease more at the longest, so nothing is granted before that is over.
		recoverUntil = now.Boot + int64(d.settings.MaxLease)
		d.log.Warn("the machine was not shut down cleanly: nothing is granted until every lease of before is over",
			"wait", d.settings.MaxLease, "dropped_bytes", replay.Torn)
	}
	d.shards = make([]*shard, shardCount(d.settings.Buckets))
	for i := range d.shards {
		d.shards[i] = newShard(d, i)
	}
	d.recoverUntil = recoverUntil
	if err := d.promote(tables, now, recoverUntil); err != nil || d.journal == nil {
		return err
	}
	// A term that a crash of the machine undoes would be used again, and its tokens would repeat.
	if err := d.journal.Sync(); err != nil {
		return fmt.Errorf("bring the new terms to the disk: %w", err)
	}
	return nil
}

func (d *Daemon) openJournal() (*journal.Replay, error) {
	if d.settings.Data == "" {
		d.log.Warn("nothing is kept on disk: a restart forgets every lock; give --data DIR to keep them")
		return nil, nil //nolint:nilnil // no journal, no replay, no error: the caller asks for d.journal
	}
	sync := journal.Background
	if d.settings.Sync == conf.SyncAlways {
		sync = journal.Always
	}
	var err error
	var replay *journal.Replay
	d.journal, replay, err = journal.Open(filepath.Join(d.settings.Data, "journal"), journal.Options{
		Sync: sync, Logger: d.log, CompactBytes: d.keepSize,
	})
	if err != nil {
		return nil, fmt.Errorf("open the journal: %w", err)
	}
	return replay, nil
}

func (d *Daemon) replay(replay *journal.Replay) ([]*bucket.Table, error) {
	tables := make([]*bucket.Table, d.settings.Buckets)
	for i := range tables {
		tables[i] = bucket.New(d.tableConfig(uint32(i)))
	}
	if replay == nil {
		return tables, nil
	}
	var out bucket.Output
	return tables, replay.Each(func(number uint32, seq uint64, kind journal.Kind, payload []byte) error {
		if number >= uint32(len(tables)) {
			return fmt.Errorf("the journal has bucket %d, the settings have %d buckets: start with --buckets as before",
				number, len(tables))
		}
		if kind == journal.Snapshot {
			tables[number] = bucket.New(d.tableConfig(number))
			if err := tables[number].Restore(payload); err != nil {
				return fmt.Errorf("restore bucket %d at change %d: %w", number, seq, err)
			}
			return nil
		}
		out.Effects = out.Effects[:0]
		if err := tables[number].Apply(payload, &out); err != nil {
			return fmt.Errorf("apply change %d of bucket %d: %w", seq, number, err)
		}
		if out.Seq != seq {
			return fmt.Errorf("bucket %d: change %d in the journal is the table's %d", number, seq, out.Seq)
		}
		return nil
	})
}

// promote makes every table primary and gives it to its shard.
func (d *Daemon) promote(tables []*bucket.Table, now bucket.Now, recoverUntil int64) error {
	for number, table := range tables {
		s := d.shardOf(uint32(number))
		s.tables = append(s.tables, table)
		s.numbers = append(s.numbers, uint32(number))
		var out bucket.Output
		if err := table.Promote(now, d.term(table, now), recoverUntil, &out); err != nil {
			return fmt.Errorf("become the primary of bucket %d: %w", number, err)
		}
		if len(out.Change) == 0 {
			continue
		}
		record := journal.Record{Bucket: uint32(number), Seq: out.Seq, Kind: journal.Change, Payload: out.Change}
		if err := d.commit([]journal.Record{record}); err != nil {
			return fmt.Errorf("write the journal: %w", err)
		}
	}
	return nil
}

// term is the term with which a table begins here: the one after that of the journal; without a journal, one that wall
// time has made higher than any of an earlier start.
func (d *Daemon) term(table *bucket.Table, now bucket.Now) bucket.Term {
	if d.journal != nil {
		// One term is left out: a full counter may have raised the term shortly before the machine went down.
		last := table.Term()
		return bucket.Term{Epoch: last.Epoch + 1, Term: last.Term + 2}
	}
	ms := uint64(max(0, now.Wall-tokenEpoch.UnixMilli()))
	return bucket.Term{Epoch: 1, Term: uint32(min(ms>>15+1, 1<<24-1)), Counter: uint32(ms&0x7fff) << 14}
}

// watchJournal tells the journal when an unclean start is dealt with, since it repeats it at every start until then, and
// ends the daemon when the journal fails while nobody asks for anything.
func (d *Daemon) watchJournal() {
	timer := boottime.NewTimer()
	defer timer.Close()
	timer.Reset(d.recoverUntil)
	for {
		select {
		case <-timer.C:
			if err := d.journal.Settled(); err != nil && !errors.Is(err, journal.ErrClosed) {
				d.fail(fmt.Errorf("write the journal: %w", err))
				return
			}
		case <-d.journal.Failed():
			d.fail(fmt.Errorf("write the journal: %w", d.journal.Err()))
			return
		case <-d.over:
			return
		}
	}
}

// compactor writes snapshots of all buckets into a new segment of the journal whenever the old ones have grown too
// large; the journal drops a segment when every bucket has a newer snapshot. Each shard writes its own, one bucket
// between two batches, so that nobody waits for more than one bucket's snapshot.
func (d *Daemon) compactor() {
	for {
		select {
		case <-d.compact:
		case <-d.over:
			return
		}
		if err := d.journal.StartCompaction(); err != nil {
			if errors.Is(err, journal.ErrClosed) || errors.Is(err, journal.ErrFailed) {
				return // the next commit tells
			}
			d.log.Warn("the journal cannot be compacted now", "error", err)
			continue
		}
		for number := range d.settings.Buckets {
			s := d.shardOf(number)
			written := make(chan struct{})
			if !s.queue.put(&task{kind: taskCall, call: func(s *shard) { s.snapshot(number); close(written) }}) {
				return
			}
			select {
			case <-written:
			case <-d.over:
				return
			case <-s.done:
				return
			}
		}
	}
}

// snapshot writes one bucket's snapshot. What the batch has changed so far must be in the journal before it.
func (s *shard) snapshot(number uint32) {
	table := s.table(number)
	seq := table.Seq()
	s.records = append(s.records, journal.Record{
		Bucket: number, Seq: seq, Kind: journal.Snapshot, Payload: table.AppendSnapshot(nil),
	})
}
