package broker

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"runtime"
	"sync/atomic"

	"github.com/opencluster/oclocks/broker/edge"
	"github.com/opencluster/oclocks/broker/parking"
	"github.com/opencluster/oclocks/broker/spread"
	"github.com/opencluster/oclocks/bucket"
	"github.com/opencluster/oclocks/bucket/chain"
	"github.com/opencluster/oclocks/bucket/replicated"
	"github.com/opencluster/oclocks/internal/boottime"
	"github.com/opencluster/oclocks/internal/fault"
	"github.com/opencluster/oclocks/internal/journal"
	"github.com/opencluster/oclocks/subjects"
)

// batchTasks is how many requests are in a batch at the most.
const batchTasks = 256

// shard owns a share of the buckets: those whose number is index modulo the number of shards. Only its goroutine
// touches them. See doc.go for the phases of a batch.
type shard struct {
	d       *Daemon
	index   int
	slots   []*cell // by number of the bucket divided by the number of shards; nil: it has not begun here
	cells   []*cell
	next    []int64 // by cell: when it wants to be touched, boot time in nanoseconds
	queue   *queue
	timer   *boottime.Timer
	keys    keySource
	sealer  *edge.Receipts
	closed  edge.ClosedConns
	done    chan struct{}
	batches uint64                     // that were begun
	inBatch atomic.Uint64              // which of them is; 0: none
	lot     *parking.Lot[*zone, *task] // requests that stand at the cells
	passed  map[asker]*task            // that other nodes have passed on over passages, and that were taken and not answered

	zones map[string]bucket.ZoneSettings // of all cells' tables
	told  *spread.Share[*chain.Replica, *cell]

	// Of the batch in progress.
	now      bucket.Now
	touched  []*cell
	out      replicated.Output
	records  []journal.Record
	asked    []inquiry // of all cells
	finished []*task
	passages []*passage       // that have something to send
	beat     subjects.Request // of a keep-alive
	pen
}

func newShard(d *Daemon, index int) *shard {
	return &shard{
		beat: subjects.Request{Op: subjects.OpKeep},
		d:    d, index: index, queue: newQueue(), timer: boottime.NewTimer(), sealer: edge.NewReceipts(d.secret), lot: parking.NewLot[*zone, *task](parking.DefaultLimits),
		zones: make(map[string]bucket.ZoneSettings), passed: make(map[asker]*task), done: make(chan struct{}),
		told: spread.NewShare[*chain.Replica, *cell](d.number, index, len(d.shards), d.state.Load()),
	}
}

// add gives the shard a bucket.
func (s *shard) add(b *replicated.Bucket) *cell {
	c := &cell{Bucket: b, at: len(s.cells), usage: make(map[string]bucket.Usage)}
	slot := int(b.Number()) / len(s.d.shards)
	if slot >= len(s.slots) {
		s.slots = append(s.slots, make([]*cell, slot+1-len(s.slots))...)
	}
	s.slots[slot] = c
	s.cells = append(s.cells, c)
	s.next = append(s.next, 0)
	return c
}

// run works until the queue is closed and empty, or the journal has failed.
func (s *shard) run() {
	defer close(s.done)
	defer s.timer.Close()
	var tasks []*task
	late := int64(0) // what time it is at least: the clock is a system call, and each batch looks at it once
	for {
		tasks = s.queue.take(tasks[:0], batchTasks)
		next := s.nextDue()
		if due := len(tasks) > 0 || next <= late; due && !s.d.failed() {
			s.batch(tasks)
			late = s.now.Boot
			continue
		}
		if s.d.failed() {
			return
		}
		if s.d.drained.Load() && s.queue.empty() {
			return
		}
		s.timer.Reset(next)
		select {
		case <-s.queue.wake:
			s.gather()
		case <-s.timer.C:
			late = next
		}
	}
}

// gather lets those run first who are about to bring more: what they have is in the same batch then. It is twice because
// between the network and the queue there are two goroutines, the connection's reader and the pump. Where nobody else has
// anything to do it costs nothing; a batch costs a write and a frame to each node.
func (s *shard) gather() {
	runtime.Gosched()
	runtime.Gosched()
}

// batch feeds the tasks and what time has brought to the cells, and carries out what they want done.
func (s *shard) batch(tasks []*task) {
	s.batches++
	s.inBatch.Store(s.batches)
	defer s.inBatch.Store(0)
	s.now = bucket.Now{Boot: boottime.Now(), Wall: fault.Wall().UnixMilli()}
	s.out.Reset()
	for i, at := range s.next {
		if at <= s.now.Boot {
			s.touch(s.cells[i])
		}
	}
	for _, t := range tasks {
		s.step(t)
	}
	grown := false
	for i := 0; i < len(s.touched); i++ {
		c := s.touched[i]
		s.unpark(c)
		c.later = grown // splitting is much work, so one after the other
		grown = c.Grow(s.now, uint32(s.d.buckets()), !grown) || grown
		c.Round(s.now, &s.out)
		s.sample(c)
		s.head(c)
		if err := c.Err(); err != nil {
			s.d.fail(err)
		}
	}
	if !s.d.failed() && s.commit() {
		s.perform()
	}
	s.rest(len(tasks))
}

// commit writes what has to be in the journal before anything else happens.
func (s *shard) commit() bool {
	if len(s.out.Records) == 0 || s.d.journal == nil {
		return true
	}
	s.records = s.records[:0]
	for i := range s.out.Records {
		r := &s.out.Records[i]
		kind := journal.Change
		if r.Whole {
			kind = journal.Snapshot
		}
		s.records = append(s.records, journal.Record{Bucket: r.Bucket, Seq: r.Number, Kind: kind, Payload: r.Payload})
	}
	if err := s.d.commit(s.records); err != nil {
		s.d.fail(fmt.Errorf("write the journal: %w", err))
		return false
	}
	return true
}

// rest ends a batch: the cells say when they want to be touched again, the tasks that are through are given back.
func (s *shard) rest(tasks int) {
	for i, c := range s.touched {
		s.next[c.at], c.touched = c.due(s.now.Boot), false
		s.touched[i] = nil
	}
	for i, t := range s.finished {
		t.free()
		s.finished[i] = nil
	}
	clear(s.asked)
	s.touched, s.finished, s.asked = s.touched[:0], s.finished[:0], s.asked[:0]
	s.d.metrics.batches.Observe(float64(tasks))
}

func (s *shard) step(t *task) {
	switch t.kind {
	case taskCall:
		t.call(s)
	case taskOne:
		c := s.cell(t.bucket)
		if c == nil {
			s.refuse(t, noPrimary())
			return
		}
		s.request(t, s.touch(c))
	case taskChain:
		s.chain(t)
		s.finished = append(s.finished, t)
	case taskEach:
		for _, c := range s.cells {
			s.each(t, c)
		}
		s.asked = append(s.asked, t.gather)
		s.finished = append(s.finished, t)
	case taskKeep:
		s.keepAlive(t)
	}
}

// chain gives messages from another node to the copies that they are for.
func (s *shard) chain(t *task) {
	for i := range t.messages {
		m := &t.messages[i]
		c := s.cell(m.Bucket)
		if c == nil {
			continue // it has not begun here yet; what is lost is sent again
		}
		if err := s.touch(c).Chain().Receive(t.from, *m); err != nil {
			s.d.metrics.misdirected.Inc()
			s.d.log.Debug("a message of the chain is not for this node", "error", err)
		}
	}
}

// nextDue is when the shard has something to do without an input, on the boot-time clock.
func (s *shard) nextDue() int64 {
	next := never
	for _, at := range s.next {
		next = min(next, at)
	}
	return next
}

// all has every cell take part in this batch.
func (s *shard) all(do func(c *cell)) {
	for _, c := range s.cells {
		do(s.touch(c))
	}
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
