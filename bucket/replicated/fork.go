package replicated

import (
	"fmt"

	"github.com/opencluster/oclocks/bucket"
	"github.com/opencluster/oclocks/subjects"
)

// Half is what a split of the table gave to another bucket: number Seq of the chain is the change that did.
type Half struct {
	Seq   uint64
	Table *bucket.Table
}

// Fork is a bucket that begins here: with what it has from the bucket that was split or, if Start has no table, with
// nothing, because this copy was not there when that happened.
type Fork struct {
	Bucket uint32
	Start  Start
}

// split remembers what the table has just given away, until the change is confirmed.
func (b *Bucket) split(seq uint64, other *bucket.Table) {
	if other != nil {
		b.halves = append(b.halves, Half{Seq: seq, Table: other})
	}
}

// fork begins the buckets that this one was split into. One that has the change begins with its half, once that is
// confirmed. One whose table came from a neighbour after the split has nothing for the others.
func (b *Bucket) fork(out *Output) {
	for len(b.halves) > 0 { // who has been away may find several
		half := b.halves[0]
		if half.Seq > b.sure {
			return
		}
		number := half.Table.Bucket()
		f := b.missed(half.Table.Buckets() / 2)
		start, err := b.chain.Fork(number, half.Seq)
		if err == nil {
			f.Start = Start{Chain: start, Table: half.Table, Unstored: true}
			b.giving++
		}
		out.Forks = append(out.Forks, f)
		b.level = max(b.level, half.Table.Buckets())
		b.halves = b.halves[1:]
	}
	for now := b.buckets(); b.level < now; b.level *= 2 {
		out.Forks = append(out.Forks, b.missed(b.level))
	}
}

// missed is the bucket that was split off when there were so many: it begins with nothing.
func (b *Bucket) missed(buckets uint32) Fork {
	return Fork{Bucket: b.Number() + buckets, Start: Start{Level: 2 * buckets}}
}

// buckets is how many there are, as far as it concerns which of them have begun on this node. What a copy that has nothing was
// told stays true when it gets something later, be that from before a split: the others have begun without it by then.
func (b *Bucket) buckets() uint32 {
	if b.table.Born() == 0 {
		return b.known
	}
	return max(b.table.Buckets(), b.known)
}

// behind says whether the table is to be split before it grants anything after a recovery: see doc.go.
func (b *Bucket) behind() bool { return b.table.Buckets() < b.count }

// tellsOwn says whether what time has done in a table that is to be split before it grants anything may be told: see doc.go.
func (b *Bucket) tellsOwn(e *bucket.Effect) bool {
	name := ""
	switch body := e.Body.(type) {
	case *subjects.SessionEvent:
		name = body.Name
	case *subjects.LockEvent:
		name = body.Name
	}
	return name != "" && subjects.BucketOf(name, b.count) == b.Number()
}

// splittable says whether the table can be split now.
func (b *Bucket) splittable() bool {
	return b.table.Born() > 0 && b.behind() && len(b.halves) == 0 && !b.recovering && b.Turned() == Taken
}

// Begun tells that the journal has what a bucket began with that was split off here, or that this is not needed because the
// bucket is there already. Until then no record of this bucket makes the change unnecessary that split it.
func (b *Bucket) Begun() { b.giving-- }

// begin gives the record of what this bucket began with. It is the first one: without it the others would make a restart
// believe that there is nothing to come from the bucket that was split.
func (b *Bucket) begin(out *Output) {
	b.unstored = false
	base, after, ok := b.chain.After(b.table.Seq())
	if !ok {
		b.fail(fmt.Errorf("the history does not have change %d, with which it begins", b.table.Seq()))
		return
	}
	b.record(out, b.whole(out.begin(), base, base.Seq, b.table.AppendSnapshot(nil), after))
	out.Records[len(out.Records)-1].Whole = true
	if b.stored != nil {
		out.Marks = append(out.Marks, Released{Mark: b.stored})
	}
}

// Grow tells how many buckets there are. If may is set and the table does not know of so many, it doubles their number as far
// as this one is concerned, and says whether it did, which takes a while for a large table. What this copy cannot do now its
// next primary does. In a recovery nothing is split: the other bucket's chain would not know that something may be missing.
func (b *Bucket) Grow(now bucket.Now, buckets uint32, may bool) bool {
	b.count = max(b.count, buckets)
	if b.table.Born() == 0 && len(b.halves) == 0 && b.chain.Epoch() > 0 {
		if view := b.chain.View(); view.Place(b.chain.Self()) < 0 {
			b.known = b.count // nothing comes that could be split: the others can begin
		}
	}
	if !may || !b.splittable() {
		return false
	}
	b.step(now, &bucket.Input{Kind: bucket.Split, Buckets: 2 * b.table.Buckets()}, nil)
	return true
}
