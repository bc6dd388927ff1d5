package broker

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"github.com/opencluster/oclocks/bucket"
	"github.com/opencluster/oclocks/internal/boottime"
	"github.com/opencluster/oclocks/internal/journal"
	"github.com/opencluster/oclocks/subjects"
)

const (
	batchTasks = 256  // requests in a batch at the most
	batchTicks = 1024 // timers of one table in a batch at the most
)

// shard owns a share of the buckets: those whose number is index modulo the number of shards. Only its goroutine
// touches their tables. See doc.go for the three phases of a batch.
type shard struct {
	d       *Daemon
	index   int
	tables  []*bucket.Table
	numbers []uint32 // the bucket of each table
	queue   *queue
	timer   *boottime.Timer
	keys    keySource
	sealer  *receipts
	closed  closedConns
	done    chan struct{}

	// Of the batch in progress.
	now     bucket.Now
	out     bucket.Output
	log     []byte // the changes' bytes; records point into it
	records []journal.Record
	gathers []*gather
	text    []byte // scratch for bodies
}

func newShard(d *Daemon, index int) *shard {
	return &shard{
		d: d, index: index, queue: newQueue(), timer: boottime.NewTimer(),
		sealer: newReceipts(d.secret), done: make(chan struct{}),
	}
}

// table is the table of a bucket that this shard owns.
func (s *shard) table(number uint32) *bucket.Table {
	return s.tables[int(number)/len(s.d.shards)]
}

// run works until the queue is closed and empty, or the journal has failed.
func (s *shard) run() {
	defer close(s.done)
	defer s.timer.Close()
	var batch []*task
	for {
		batch = s.queue.take(batch[:0], batchTasks)
		ticked := s.batch(batch)
		if s.d.failed() {
			return
		}
		if len(batch) > 0 || ticked {
			continue
		}
		if s.d.drained.Load() && s.queue.empty() {
			return
		}
		s.timer.Reset(s.next())
		select {
		case <-s.queue.wake:
		case <-s.timer.C:
		}
	}
}

// batch steps, commits and performs the tasks and the timers that are due; it tells whether a timer was.
func (s *shard) batch(tasks []*task) (ticked bool) {
	s.now = bucket.Now{Boot: boottime.Now(), Wall: time.Now().UnixMilli()}
	s.out.Effects, s.log, s.records = s.out.Effects[:0], s.log[:0], s.records[:0]
	s.gathers = s.gathers[:0]
	for _, t := range tasks {
		s.step(t)
	}
	ticked = s.tick()
	if s.d.failed() {
		return ticked
	}
	if len(s.records) > 0 {
		if err := s.d.commit(s.records); err != nil {
			s.d.fail(fmt.Errorf("write the journal: %w", err))
			return ticked
		}
	}
	s.perform()
	for _, t := range tasks {
		t.free()
	}
	s.d.metrics.batches.Observe(float64(len(tasks)))
	return ticked
}

func (s *shard) step(t *task) {
	switch t.kind {
	case taskCall:
		t.call(s)
	case taskOne:
		s.request(t, t.bucket)
	case taskEach:
		for _, number := range s.numbers {
			s.each(t, number)
		}
		s.gathers = append(s.gathers, t.gather)
	}
}

// request feeds one request to one table.
func (s *shard) request(t *task, number uint32) {
	t.in.Req = &t.req
	if t.req.Op == subjects.OpAcquire {
		t.in.Key = s.keys.next()
	}
	t.in.HoldsFull, t.in.WaitersFull, t.in.SessionsFull = t.zone.full() // every operation can bring a new session
	first := len(s.out.Effects)
	s.feed(number, &t.in)
	for i := range s.out.Effects[first:] {
		if e := &s.out.Effects[first+i]; e.To == t.in.Reply {
			if _, refused := e.Body.(*subjects.Refusal); refused {
				t.zone.stats.refused(t.req.Op)
			}
		}
	}
	if s.closed.has(t.zone.name, t.in.Session.Conn) {
		// The connection's end was seen before the session's first request in this bucket.
		s.feed(number, &bucket.Input{Kind: bucket.Disconnect, Zone: t.zone.name, Conn: t.in.Session.Conn})
	}
}

// feed performs one Step and keeps its change for the commit.
func (s *shard) feed(number uint32, in *bucket.Input) {
	table := s.table(number)
	table.Step(s.now, in, &s.out)
	if err := table.Err(); err != nil {
		s.d.fail(fmt.Errorf("bucket %d: %w", number, err))
	}
	s.keep(number, table)
}

// keep takes the change that is in s.out into the batch.
func (s *shard) keep(number uint32, table *bucket.Table) {
	if len(s.out.Change) == 0 {
		return
	}
	start := len(s.log)
	s.log = append(s.log, s.out.Change...)
	s.records = append(s.records, journal.Record{
		Bucket: number, Seq: s.out.Seq, Kind: journal.Change, Payload: s.log[start:len(s.log):len(s.log)],
	})
	if z := s.d.zone(s.out.Zone); z != nil {
		z.count(number, table.Usage(z.name))
	}
}

// tick carries out timers that are due, a bounded number for each batch, and tells whether there was one.
func (s *shard) tick() (ticked bool) {
	for i, table := range s.tables {
		for n := 0; n < batchTicks && table.Next() <= s.now.Boot; n++ {
			s.feed(s.numbers[i], &bucket.Input{Kind: bucket.Tick})
			ticked = true
		}
	}
	return ticked
}

// next is when the shard's next timer is due, on the boot-time clock.
func (s *shard) next() int64 {
	next := int64(math.MaxInt64)
	for _, table := range s.tables {
		next = min(next, table.Next())
	}
	return next
}

// keySource draws unlock keys from the system's random numbers, many at a time.
type keySource struct {
	buf  [1024]byte
	left int
}

func (k *keySource) next() uint64 {
	for {
		if k.left == 0 {
			rand.Read(k.buf[:]) // never fails: crypto/rand ends the program instead
			k.left = len(k.buf)
		}
		key := binary.LittleEndian.Uint64(k.buf[k.left-8:])
		k.left -= 8
		if key != 0 {
			return key
		}
	}
}
