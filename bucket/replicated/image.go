package replicated

// imageHold is how long a primary takes no new requests at the most, so that its table is confirmed as a whole, in
// nanoseconds: some round trips to the first secondary.
const imageHold = 200_000_000

// imageWish is the question for a record that makes all the earlier ones of this bucket unnecessary.
type imageWish struct {
	mark    any
	until   int64
	holding bool // the primary takes nothing new until everything is confirmed
}

// Image has a Whole record put into an Output, for the journal's compaction. The mark comes back with it; or as lost, if
// the table stays ahead of what is confirmed: then ask again later. One that is asked before the last one came back
// replaces that.
func (b *Bucket) Image(now int64, mark any) { b.image = imageWish{mark: mark, until: now + imageHold} }

// takeImage gives the record once the table is confirmed as a whole: a copy that starts from it believes so. A primary
// under load has never everything confirmed, so it takes a breath. Nor is it given while the only record of a half that was
// given to another bucket may be among those that it makes unnecessary.
func (b *Bucket) takeImage(now int64, out *Output) {
	if b.image.mark == nil {
		return
	}
	status := b.chain.Status()
	ready := status.Delivered <= status.Confirmed && len(b.halves) == 0 && b.giving == 0 && !b.spoiled
	if !ready && now < b.image.until {
		b.image.holding = b.acting
		return
	}
	done := Released{Mark: b.image.mark, Lost: true}
	if base, after, ok := b.chain.After(status.Delivered); ok && ready {
		b.record(out, b.whole(out.begin(), base, status.Confirmed, b.table.AppendSnapshot(nil), after))
		out.Records[len(out.Records)-1].Whole = true
		done.Lost = false
	}
	out.Marks = append(out.Marks, done)
	b.image = imageWish{}
}

// give gives the chain the table's state for a copy that joins.
func (b *Bucket) give() {
	if err := b.chain.Snapshot(b.table.Seq(), b.table.AppendSnapshot(nil)); err != nil {
		// Whoever wanted it has gone meanwhile, or it is too large, of which the chain has told everybody.
		return
	}
}
