package replicated

import (
	"encoding/binary"
	"fmt"

	"github.com/opencluster/oclocks/bucket"
	"github.com/opencluster/oclocks/bucket/chain"
	"github.com/opencluster/oclocks/internal/mutant"
)

// Round adds to out what this bucket wants done. After an error (Err) it adds nothing any more.
func (b *Bucket) Round(now bucket.Now, out *Output) {
	if b.err != nil {
		return
	}
	if b.unstored {
		b.begin(out)
	}
	r := b.chain.Ready(now.Boot)
	if r.Demoted { // first: a table that is thrown away takes with it what was to be told of it
		b.demote(now, out)
	}
	b.store(&r, out)
	b.separate(r.Messages, out)
	b.deliver(now, &r, out)
	b.sure = r.Confirmed
	if r.Promoted != 0 && !b.spoiled {
		b.promote(now, &r, out)
	}
	b.recovery(now, &r)
	if (r.Acting || r.Parting) && b.acting {
		if mutant.On(mutant.AnsweredUnconfirmed) {
			r.Confirmed = b.table.Seq()
		}
		b.waiting.release(b.Number(), r.Confirmed, out)
	}
	if r.NeedSnapshot && !b.spoiled {
		b.give()
	}
	b.fork(out)
	b.takeImage(now.Boot, out)
	for _, zone := range b.waiting.touched {
		out.Touched = append(out.Touched, Touched{b.Number(), zone})
	}
	b.waiting.touched = b.waiting.touched[:0]
	b.tellTurn(out)
	b.ask(&r, out)
}

// store gives the records that the journal needs before anything else is done. The state is the first, since a process may
// end between two records: a copy that has thrown everything away must not be the member that had it.
func (b *Bucket) store(r *chain.Output, out *Output) {
	if r.State != nil {
		b.state = *r.State
		b.record(out, appendState(append(out.begin(), byte(recordState)), r.State))
	}
	if r.Discard {
		b.record(out, append(out.begin(), byte(recordDrop)))
		b.renew(nil)
	}
	if r.Restore != nil {
		b.renew(r.Restore)
		b.record(out, b.whole(out.begin(), r.Restore.Point, r.Restore.Point.Seq, r.Restore.Data, nil))
		out.Records[len(out.Records)-1].Whole = true
	}
	if r.Truncate {
		b.record(out, binary.AppendUvarint(append(out.begin(), byte(recordCut)), r.TruncateTo))
	}
	for i := range r.Append {
		b.record(out, appendChange(out.begin(), &r.Append[i], r.Confirmed))
	}
}

func (b *Bucket) record(out *Output, payload []byte) {
	b.number++
	out.Records = append(out.Records, Record{Bucket: b.Number(), Number: b.number, Payload: out.end(payload)})
}

func (b *Bucket) whole(buf []byte, base chain.Point, sure uint64, image []byte, after []chain.Change) []byte {
	buf = appendPoint(appendState(append(buf, byte(recordWhole)), &b.state), base)
	buf = binary.AppendUvarint(buf, sure)
	buf = binary.AppendUvarint(buf, uint64(len(image)))
	buf = append(buf, image...)
	buf = binary.AppendUvarint(buf, uint64(len(after)))
	for i := range after {
		part := appendChange(nil, &after[i], sure)[1:]
		buf = append(binary.AppendUvarint(buf, uint64(len(part))), part...)
	}
	return buf
}

// renew gives the bucket a new table: an empty one, or the state that a neighbour sent.
func (b *Bucket) renew(image *chain.Snapshot) {
	b.table, b.recent, b.acting = bucket.New(b.cfg.Table), recent{}, false
	b.halves, b.spoiled = nil, false
	if image != nil {
		if err := b.table.Restore(image.Data); err != nil {
			b.spoil(image.Point.Seq, fmt.Errorf("take over the state of change %v: %w", image.Point, err))
		} else if b.table.Seq() != image.Point.Seq {
			b.spoil(image.Point.Seq, fmt.Errorf("the state of change %v is the table's %d", image.Point, b.table.Seq()))
		}
	}
	b.waiting.touched = append(b.waiting.touched, "")
	b.settle()
}

// deliver applies confirmed changes, and what a new primary finds beyond them.
func (b *Bucket) deliver(now bucket.Now, r *chain.Output, out *Output) {
	b.recent.forget(now.Boot)
	for i := range r.Deliver {
		if b.spoiled {
			return
		}
		c := &r.Deliver[i]
		b.out.Effects = b.out.Effects[:0]
		if err := b.table.Apply(c.Data, &b.out); err != nil {
			b.spoil(c.Seq, fmt.Errorf("apply change %d of epoch %d: %w", c.Seq, c.Epoch, err))
			return
		}
		if b.out.Seq != c.Seq {
			b.spoil(c.Seq, fmt.Errorf("change %d of the chain is the table's %d", c.Seq, b.out.Seq))
			return
		}
		b.split(c.Seq, b.out.Other)
		out.Touched = append(out.Touched, Touched{b.Number(), b.out.Zone})
		for j := range b.out.Effects {
			if e := &b.out.Effects[j]; !b.behind() || b.tellsOwn(e) { // else its primary may have kept it to itself: see doc.go
				b.recent.put(now.Boot, c.Seq, e)
			}
		}
	}
}

// promote makes the table primary. Its first change is proposed at once; the replies of the last changes wait for it,
// because with it everything before is confirmed. In a recovery they are not given, nor is what waits here since an earlier epoch, if this
// copy was primary and was not told of the views between: see doc.go.
func (b *Bucket) promote(now bucket.Now, r *chain.Output, out *Output) {
	if r.Recovering == 0 {
		b.recent.all(&b.waiting)
	} else {
		b.waiting.drop(now.Boot, b.Number(), &b.recent, out)
	}
	b.recent = recent{}
	b.out.Effects = b.out.Effects[:0]
	switch {
	case r.Recovering != 0:
		b.limit = r.Recovering
	case b.behind():
		b.limit = now.Boot + recoveryStep
	default:
		b.limit = 0
	}
	if err := b.table.Promote(now, b.term(now, r), b.limit, &b.out); err != nil {
		b.fail(fmt.Errorf("become the primary in epoch %d: %w", r.Promoted, err))
		return
	}
	b.acting = true
	b.proposed(now, nil)
}

// term is the term of a new primary. It must be higher than any that a token was ever given with, also where the history
// has lost its end, and another one than that of any promotion that was lost: a recovery may bring back what was never confirmed.
//
// Claim: what is promoted in epoch e uses no terms but those from 4e - 2 to 4e. For each promotion has an epoch of its own, and takes
// 4e - 2. That leaves 2 for counters that become full, which raise the term too: no counter of 2^29 tokens is full three times in one
// epoch. So terms rise with epochs and none is in two, whatever was lost and whichever history a promotion goes on from. That one's
// own term does not tell: there may have been others that went on from it, or from one before it. [TestNoTermComesTwice]
//
// What doubling has made begins with the term of the bucket that was split, and with an epoch that is far ahead of the one that this
// had when the doubling was committed (shared.Double): so the terms there are lower from the beginning.
//
// Where nothing outlives the process the epochs begin anew too, and wall time has to do: 2^14 tokens a millisecond for each
// zone, counted from 2026. There the claim is not true, and a promotion adds 4 for each epoch since the one that it goes on from;
// recoveries one in another within half a minute could come to the same term.
func (b *Bucket) term(now bucket.Now, r *chain.Output) bucket.Term {
	last := b.table.Term()
	t := nextTerm(last, r.Promoted)
	if !b.cfg.Volatile {
		return t
	}
	if last.Epoch > 0 && r.Promoted > last.Epoch {
		t.Term = max(t.Term, last.Term+bounded(r.Promoted-last.Epoch)-spare)
	}
	if b.table.Seq() == 0 || r.Recovering != 0 {
		ms := uint64(max(0, now.Wall-tokenEpoch))
		if wall := uint32(min(ms>>15+1, maxTerm)); wall > t.Term {
			t.Term, t.Counter = wall, uint32(ms&0x7fff)<<14
		}
	}
	return t
}

// nextTerm is the term of the promotion of an epoch that goes on from another one.
func nextTerm(last bucket.Term, epoch uint64) bucket.Term {
	t := bucket.Term{Epoch: epoch, Term: last.Term + perEpoch - spare} // no less, whatever the epoch says
	if !mutant.On(mutant.TermNotRaised) {
		t.Term = max(t.Term, bounded(epoch)-spare)
	}
	return t
}

// bounded is how many terms so many epochs take at the most. There are fewer epochs than that ever gets too much.
func bounded(epochs uint64) uint32 { return max(spare, uint32(min(perEpoch*epochs, maxTerm/2))) }

// How many terms an epoch has, and how many of those are left for full counters.
const (
	perEpoch = 4
	spare    = 2
)

const (
	maxTerm = 1<<24 - 1

	// tokenEpoch is 2026-01-01 UTC in Unix milliseconds.
	tokenEpoch = 1_767_225_600_000
)

// recovery keeps the table from granting while the chain says that answered changes may be missing. What ends it is the
// commit of a view, not the time; and then a table that is behind is split first.
func (b *Bucket) recovery(now bucket.Now, r *chain.Output) {
	b.recovering = r.Recovering != 0
	switch {
	case !b.acting || b.limit == 0 && !b.recovering:
	case !b.recovering && !b.behind():
		b.limit = 0
		b.table.Recover(now, 0)
	default:
		b.putOff(now, r.Recovering)
	}
}

// putOff puts off the end of a recovery, as the table knows it, if it is near or before the time that the chain knows of.
func (b *Bucket) putOff(now bucket.Now, known int64) {
	if !b.acting || b.limit == 0 && known == 0 {
		return
	}
	if now.Boot >= b.limit-recoveryStep/2 || known > b.limit {
		b.limit = max(known, now.Boot+recoveryStep)
		b.table.Recover(now, b.limit)
	}
}

// recoveryStep is by how much the end of a recovery is put off while its view is being committed.
const recoveryStep = 1_000_000_000

// demote makes the table a replica again.
func (b *Bucket) demote(now bucket.Now, out *Output) {
	b.acting, b.limit = false, 0
	b.table.Demote()
	b.waiting.drop(now.Boot, b.Number(), &b.recent, out)
}

// tellTurn says when this node begins and ends to be the one that is asked.
func (b *Bucket) tellTurn(out *Output) {
	if b.turn != b.acting {
		b.turn = b.acting
		out.Turns = append(out.Turns, Turn{b.Number(), b.acting})
	}
}

// ask passes on what is for the control plane.
func (b *Bucket) ask(r *chain.Output, out *Output) {
	if r.Propose != nil {
		b.asked = r.Propose.Clone()
		out.Proposals = append(out.Proposals, Proposal{b.Number(), *r.Propose})
	}
	if r.Sealed != nil {
		out.Reports = append(out.Reports, Report{b.Number(), *r.Sealed})
	}
	if r.Behind != 0 {
		out.Behind = append(out.Behind, Behind{b.Number(), r.Behind})
	}
	for _, a := range r.Alerts {
		out.Alerts = append(out.Alerts, Alert{b.Number(), a})
	}
}
