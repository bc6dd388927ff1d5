package replicated

import (
	"bytes"
	"fmt"

	"github.com/opencluster/oclocks/bucket"
	"github.com/opencluster/oclocks/bucket/chain"
)

// Start is what a bucket begins with: what its journal had. The zero Start is a copy that has never been.
type Start struct {
	Chain  chain.Start
	Table  *bucket.Table // has the changes up to Chain.Delivered; nil: a new one
	Number uint64        // of the last record

	Halves   []Half // of splits that happened, in their order, if the other buckets may not have begun
	Level    uint32 // how many buckets there were when this one was split off with nothing; 0: it was not
	Unstored bool   // the journal has nothing of all this: the first Round gives it as a record
	Stored   any    // the mark that comes back with that record; nil: none

	Spoiled error // why the copy cannot be used: its table does not take what the journal has; nil: it can
}

// keepReplayed is how many confirmed changes a replay leaves in memory for a neighbour that was away for a moment.
const keepReplayed = 1024

// Replay makes the Start of one bucket of the records that the journal has of it, in their order.
type Replay struct {
	cfg    bucket.Config
	state  chain.State
	table  *bucket.Table
	base   chain.Point // before the first of changes
	list   []chain.Change
	sure   uint64 // known to be confirmed
	done   uint64 // in the table
	count  uint64
	halves []Half
	out    bucket.Output

	spoiled error // why the table does not have what the records say
}

// NewReplay begins the replay of a bucket.
func NewReplay(cfg bucket.Config) *Replay {
	r := &Replay{cfg: cfg}
	r.clear()
	return r
}

func (r *Replay) clear() {
	r.table, r.base = bucket.New(r.cfg), chain.Origin(r.cfg.Bucket)
	r.list, r.sure, r.done, r.halves, r.spoiled = nil, 0, 0, nil, nil
}

// Add takes the next record. The payload is not kept. Errors wrap ErrRecord.
func (r *Replay) Add(number uint64, whole bool, payload []byte) error {
	if len(payload) == 0 || whole != (recordKind(payload[0]) == recordWhole) {
		return fmt.Errorf("%w: number %d", ErrRecord, number)
	}
	r.count = number
	in := reader{buf: payload[1:]}
	switch recordKind(payload[0]) {
	case recordChange:
		return r.change(&in)
	case recordState:
		r.state = in.state()
		return in.end()
	case recordCut:
		seq := in.num()
		if err := in.end(); err != nil {
			return err
		}
		if seq < r.done || seq < r.base.Seq {
			return fmt.Errorf("%w: it cuts off at %d what is in the table up to %d", ErrRecord, seq, r.done)
		}
		r.list = r.list[:min(uint64(len(r.list)), seq-r.base.Seq)]
		return nil
	case recordDrop:
		r.clear()
		return in.end()
	case recordWhole:
		return r.whole(&in)
	}
	return fmt.Errorf("%w: kind %d", ErrRecord, payload[0])
}

func (r *Replay) last() chain.Point {
	if len(r.list) == 0 {
		return r.base
	}
	c := &r.list[len(r.list)-1]
	return chain.Point{Epoch: c.Epoch, Seq: c.Seq, Hash: c.Hash}
}

func (r *Replay) change(in *reader) error {
	last := r.last()
	c := chain.Change{Epoch: in.num(), Hash: in.hash(), Seq: last.Seq + 1, Prev: last.Hash}
	sure := in.num()
	c.Data = bytes.Clone(in.buf) // the journal's buffer is used again
	if in.bad {
		return in.end()
	}
	r.list = append(r.list, c)
	r.confirm(sure)
	return nil
}

// confirm brings the table to what is known to be confirmed and forgets what nobody will ask for.
func (r *Replay) confirm(sure uint64) {
	r.sure = max(r.sure, min(sure, r.last().Seq))
	for r.done < r.sure && r.spoiled == nil {
		c := &r.list[r.done-r.base.Seq]
		r.out.Effects = r.out.Effects[:0]
		if err := r.table.Apply(c.Data, &r.out); err != nil {
			r.spoiled = fmt.Errorf("apply change %d of bucket %d: %w", c.Seq, r.cfg.Bucket, err)
			break
		}
		r.done++
		if r.out.Other != nil {
			r.halves = append(r.halves, Half{Seq: r.done, Table: r.out.Other})
		}
		if r.out.Seq != r.done {
			r.spoiled = fmt.Errorf("%w: change %d is the table's %d", ErrRecord, r.done, r.out.Seq)
		}
	}
	if r.done-r.base.Seq > 2*keepReplayed {
		n := r.done - r.base.Seq - keepReplayed
		c := &r.list[n-1]
		r.base = chain.Point{Epoch: c.Epoch, Seq: c.Seq, Hash: c.Hash}
		r.list = append([]chain.Change(nil), r.list[n:]...)
	}
}

func (r *Replay) whole(in *reader) error {
	r.clear()
	r.state = in.state()
	r.base = in.point()
	sure := in.num()
	image := in.bytes()
	n := in.num()
	if in.bad || r.base.Seq > sure {
		return fmt.Errorf("%w: a snapshot", ErrRecord)
	}
	r.sure, r.done = r.base.Seq, r.base.Seq
	if len(image) > 0 {
		if err := r.table.Restore(image); err != nil {
			r.spoiled = fmt.Errorf("restore bucket %d: %w", r.cfg.Bucket, err)
		}
	}
	if r.spoiled == nil && r.table.Seq() != r.base.Seq {
		r.spoiled = fmt.Errorf("%w: the snapshot of change %d is of the table's %d", ErrRecord, r.base.Seq, r.table.Seq())
	}
	for range n {
		part := reader{buf: in.bytes()}
		if err := r.change(&part); err != nil {
			return err
		}
	}
	if err := in.end(); err != nil {
		return err
	}
	r.confirm(sure)
	return nil
}

// Start is what the records amount to. If the table does not take one, the copy is the member that it was, and cannot be used. A
// copy that found that out before, and began anew, has records of that too, and then there is nothing wrong with it.
func (r *Replay) Start() Start {
	s := Start{
		Chain: chain.Start{State: r.state, Base: r.base, Changes: r.list, Confirmed: r.sure, Delivered: r.done},
		Table: r.table, Number: r.count, Halves: r.halves, Spoiled: r.spoiled,
	}
	if s.Spoiled != nil {
		s.Table = bucket.New(r.cfg)
	}
	return s
}
