package replicated

import (
	"github.com/opencluster/oclocks/bucket"
)

// Half is what a split of the table gave to another bucket: number Seq of the chain is the change that did.
type Half struct {
	Seq   uint64
	Table *bucket.Table // nil: there is none
}

// Fork is a bucket that begins here: with what it has from the bucket that was split or, if Start is the zero Start, with
// nothing, because this copy was not there when that happened.
type Fork struct {
	Bucket uint32
	Start  Start
}

// split remembers what the table has just given away, until the change is confirmed.
func (b *Bucket) split(seq uint64, other *bucket.Table) {
	if other != nil {
		b.half = Half{Seq: seq, Table: other}
	}
}

// fork begins the buckets that this one was split into. One that has the change begins with its half, once that is
// confirmed. One whose table came from a neighbour after the split has nothing for the others.
func (b *Bucket) fork(out *Output) {
	now := b.table.Buckets()
	if b.half.Table != nil {
		if b.half.Seq > b.sure {
			return
		}
		number := b.half.Table.Bucket()
		f := Fork{Bucket: number}
		start, err := b.chain.Fork(number, b.half.Seq)
		if err == nil {
			f.Start = Start{Chain: start, Table: b.half.Table, Unstored: true}
		}
		out.Forks = append(out.Forks, f)
		b.level = max(b.level, b.half.Table.Buckets())
		b.half = Half{}
	}
	for ; b.level < now && b.half.Table == nil; b.level *= 2 {
		out.Forks = append(out.Forks, Fork{Bucket: b.Number() + b.level})
	}
}

// Grow doubles the number of buckets, as far as this one is concerned, if the table does not know of so many. What this
// copy cannot do now its next primary does.
func (b *Bucket) Grow(now bucket.Now, buckets uint32) {
	if has := b.table.Buckets(); has > 0 && has < buckets && b.half.Table == nil && b.Turned() == Taken {
		b.step(now, &bucket.Input{Kind: bucket.Split, Buckets: 2 * has}, nil)
	}
}
