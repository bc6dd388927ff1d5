package broker

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"path/filepath"
	"time"

	"github.com/opencluster/oclocks/bucket"
	"github.com/opencluster/oclocks/bucket/chain"
	"github.com/opencluster/oclocks/bucket/replicated"
	"github.com/opencluster/oclocks/conf"
	"github.com/opencluster/oclocks/conf/shared"
	"github.com/opencluster/oclocks/internal/journal"
)

var processSeed = maphash.MakeSeed()

// keyedHash places names in the tables' indexes. Its key is this process's own, so that nobody can choose names that
// collide.
func keyedHash(name string) uint64 { return maphash.String(processSeed, name) }

// past is what the journal had: by bucket. whole says that nothing that was answered can be missing from it.
type past struct {
	starts replicated.Past
	whole  bool
	lacks  func(mark string) bool // whether it is from before that mark; nil: there is no journal
}

// openJournal opens the journal and reads what it has. A machine that went down uncleanly may have taken answered changes
// with it that were not on its disk, so what is there is kept but counts as another member's.
func (d *Daemon) openJournal() (past, error) {
	if d.settings.Data == "" {
		d.log.Warn("nothing is kept on disk: a restart forgets every lock; give --data DIR to keep them")
		return past{}, nil
	}
	sync := journal.Background
	if d.settings.Sync == conf.SyncAlways {
		sync = journal.Always
	}
	j, replay, err := journal.Open(filepath.Join(d.settings.Data, "journal"), journal.Options{
		Sync: sync, Logger: d.log, CompactBytes: d.keepSize,
	})
	if err != nil {
		return past{}, fmt.Errorf("open the journal: %w", err)
	}
	d.journal = j
	starts, err := d.replay(replay)
	if err != nil {
		return past{}, err
	}
	if replay.Unclean {
		d.log.Warn("the machine was not shut down cleanly: what this node has may not be all that it had",
			"dropped_bytes", replay.Torn)
	}
	return past{starts: starts, whole: !replay.Unclean && len(starts) > 0, lacks: replay.Lacks}, nil
}

func (d *Daemon) replay(replay *journal.Replay) (replicated.Past, error) {
	table := func(number uint32) bucket.Config { return d.tableConfig(number, conf.MaxBuckets) }
	starts, err := replicated.ReadPast(table, func(take func(uint32, uint64, bool, []byte) error) error {
		return replay.Each(func(number uint32, seq uint64, kind journal.Kind, payload []byte) error {
			return take(number, seq, kind == journal.Snapshot, payload)
		})
	})
	if err != nil {
		return nil, err
	}
	switch err := starts.Spoiled(); {
	case err == nil:
	case !d.settings.Clustered():
		return nil, err
	default:
		d.log.Error("a copy is of no use and begins anew with what the other nodes have", "error", err)
	}
	return starts, nil
}

// openBuckets makes this node's copy of every bucket and gives it to its shard.
func (d *Daemon) openBuckets(past past, state *shared.State) error {
	d.count.Store(int64(len(state.Views)))
	d.shards = make([]*shard, shardCount(d.buckets()))
	for i := range d.shards {
		d.shards[i] = newShard(d, i)
	}
	for number := range past.starts { // order: one is enough
		if int(number) >= d.buckets() {
			return fmt.Errorf("the journal has bucket %d and the cluster has %d buckets: is %s the directory of another cluster?",
				number, d.buckets(), d.settings.Data)
		}
	}
	for number := range uint32(d.buckets()) {
		s := d.shardOf(number)
		start, self, ok := past.starts.Begin(number, state.Half(number), d.number, d.life)
		if !ok {
			continue
		}
		b, err := replicated.New(d.bucketConfig(number, self, s), start)
		if err != nil {
			return err
		}
		s.add(b)
	}
	d.sharded.Store(true)
	return nil
}

// bucketConfig is what a bucket of this node is made with.
func (d *Daemon) bucketConfig(number uint32, self chain.Member, s *shard) replicated.Config {
	state := d.state.Load()
	return replicated.Config{
		Table: d.tableConfig(number, uint32(d.buckets())),
		Chain: chain.Config{
			Bucket: number, Self: self, Acks: state.Settings.Acks, Limits: chain.Limits{Change: maxChange},
			Recovery: int64(state.Recovery()),
		},
		Volatile: d.journal == nil, Zones: s.zones,
	}
}

// maxChange is the largest change of a table, in bytes: what the journal takes, less what stands around it.
const maxChange = journal.MaxChange - 1<<10

// watchJournal ends the daemon when the journal fails while nobody asks for anything.
func (d *Daemon) watchJournal() {
	select {
	case <-d.journal.Failed():
		d.fail(fmt.Errorf("write the journal: %w", d.journal.Err()))
	case <-d.over:
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
		for number := range uint32(d.buckets()) {
			for !d.writeImage(number) {
				select {
				case <-time.After(imagePause):
				case <-d.over:
					return
				}
			}
			if d.failed() {
				return
			}
		}
	}
}

// imagePause is how long the compactor lets a bucket go on whose table is ahead of what is confirmed.
const imagePause = 200 * time.Millisecond

// writeImage has one bucket's state written, and says whether the compaction can go on.
func (d *Daemon) writeImage(number uint32) bool {
	written := make(chan bool, 1)
	s := d.shardOf(number)
	s.queue.put(&task{kind: taskCall, call: func(s *shard) {
		if c := s.cell(number); c != nil {
			s.touch(c).Image(s.now.Boot, func(lost bool) { written <- !lost })
		} else {
			written <- true // it has not begun here, so the journal has nothing of it
		}
	}})
	select {
	case ok := <-written:
		return ok
	case <-d.over:
	case <-s.done:
	}
	return true
}

// tableConfig is what every table of this daemon is made with.
func (d *Daemon) tableConfig(number, count uint32) bucket.Config {
	return bucket.Config{
		Bucket: number, Buckets: count, Hash: keyedHash,
		Limits:    bucket.Limits{MaxLease: d.maxLease()},
		Journaled: d.journal != nil, SyncAlways: d.journal != nil && d.settings.Sync == conf.SyncAlways,
	}
}

// settle tells the journal that an unclean start is dealt with: the node has begun a new life, so nothing counts on what
// may be missing.
func (d *Daemon) settle() error {
	if d.journal == nil {
		return nil
	}
	if err := d.journal.Settled(); err != nil {
		return fmt.Errorf("write the journal: %w", err)
	}
	return nil
}

// waitServing waits until the node holds a lease and every bucket has a primary that can be asked.
func (d *Daemon) waitServing(ctx context.Context) error {
	for {
		missing := -1
		if state := d.state.Load(); d.leased.Load() && state != nil {
			missing = 0
			for number := range state.Views {
				v := &state.Views[number]
				if v.Epoch == 0 || v.Primary().Node == d.number && !d.turns[number].Load() {
					missing++
				}
			}
		}
		if missing == 0 {
			return nil
		}
		select {
		case <-d.turned:
		case <-ctx.Done():
			if missing < 0 {
				return fmt.Errorf("wait for a lease from the cluster's leader: %w", ctx.Err())
			}
			return fmt.Errorf("wait for %d buckets that have no primary yet: %w", missing, ctx.Err())
		case <-d.over:
			return d.Wait()
		case <-time.After(50 * time.Millisecond):
		}
	}
}
