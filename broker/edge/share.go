package edge

import (
	"cmp"
	"slices"

	"github.com/opencluster/oclocks/bucket"
	"github.com/opencluster/oclocks/bucket/replicated"
	"github.com/opencluster/oclocks/subjects"
)

// Share is what one bucket said to a request that concerns all of them. It counts once it is confirmed.
type Share struct {
	Bucket   uint32
	Lost     bool              // it will never be confirmed: the bucket has to be asked again
	Refusal  *subjects.Refusal // of the whole request
	Released int               // session-close
	Kept     subjects.KeptBucket

	recs    []subjects.Record
	through string
	done    bool
}

// ShareReply stands for the reply subject in a request for every bucket. What one bucket says is not the answer, so nothing
// is published there, also not by a primary that has taken over and answers again.
const ShareReply = "-"

// Covers says whether a bucket of this node is to be asked here about a request that concerns all of them: if it is wanted (nil:
// all are), if this node is its primary, and if it counts as many buckets as the asker. Who only looks may do so too while no more changes are taken.
// A keep-alive concerns only those that know its session, one of very many: the others need not even be told the time.
func Covers(b *replicated.Bucket, op subjects.Op, in *bucket.Input, wanted BucketSet, buckets int) bool {
	if wanted != nil && !wanted.Has(b.Number()) {
		return false
	}
	if !Answerable(b, op) {
		return false // another node is asked, or nobody can answer: then it is not covered
	}
	if op == subjects.OpKeep {
		return b.Table().Knows(in.Zone, in.Session.ID)
	}
	return int(b.Table().Buckets()) == buckets // one that counts otherwise is about to be split in two, or has just been
}

// Answerable says whether a bucket of this node can be asked here at all, whatever is wanted.
func Answerable(b *replicated.Bucket, op subjects.Op) bool {
	turned := b.Turned()
	return turned == replicated.Taken || turned == replicated.Full && op != subjects.OpSessionClose
}

// Ask asks one bucket, and gives its share, or nil if it has nothing to say or cannot be asked after all. in is for this bucket
// alone; its Reply is ShareReply. The caller has the bucket Wait for the share.
func Ask(b *replicated.Bucket, now bucket.Now, in *bucket.Input, req *subjects.Request) *Share {
	one := &Share{Bucket: b.Number()}
	switch req.Op {
	case subjects.OpKeep:
		count, hash, known, ended := b.Keep(now, in, req.Beat)
		if !known {
			return nil
		}
		one.Kept = subjects.KeptBucket{Bucket: b.Number(), Epoch: b.Table().Term().Epoch, Count: count, Hash: hash}
		one.Refusal = ended
	case subjects.OpList:
		one.recs, one.through, one.done = b.Table().List(in.Zone, req, now)
	case subjects.OpSessionClose:
		in.Req = req
		if b.Request(now, in, one.take) != replicated.Taken {
			return nil
		}
	}
	return one
}

// take keeps the reply to a request for every bucket; the other effects go their own way.
func (one *Share) take(e *bucket.Effect) (other bool) {
	if e.Kind != bucket.Reply || e.To != ShareReply {
		return true
	}
	switch body := e.Body.(type) {
	case *subjects.SessionClosed:
		one.Released = body.Released
	case *subjects.Refusal:
		one.Refusal = body
	}
	return false
}

// Part is what some buckets have said, each for itself and confirmed.
type Part struct {
	Buckets  int // how many there were
	Covered  BucketSet
	Refusal  *subjects.Refusal // the whole request is refused
	Released int
	Page     *subjects.Page
}

// NewPart puts shares together. buckets is how many buckets the asking node counts, limit that of a list's page.
func NewPart(op subjects.Op, buckets, limit int, refusal *subjects.Refusal, shares []*Share) *Part {
	p := &Part{Buckets: buckets, Covered: NewBucketSet(buckets), Refusal: refusal}
	merge := PageMerge{Limit: limit}
	for _, one := range shares {
		if one.Lost {
			continue
		}
		p.Covered.Add(one.Bucket)
		p.Released += one.Released
		if one.Refusal != nil && p.Refusal == nil {
			p.Refusal = one.Refusal
		}
		if op == subjects.OpList {
			merge.Add(one.recs, one.through, one.done)
		}
	}
	if op == subjects.OpList {
		p.Page = merge.Page()
	}
	return p
}

// AddUp fills in what a session has here, in the memory of the buckets that were there before, and says whether any bucket knows the session. A
// bucket whose share is lost is not told of: nothing is known about its locks.
func AddUp(shares []*Share, refusal *subjects.Refusal, kept *subjects.Kept) (known bool, _ *subjects.Refusal) {
	if kept.Buckets = kept.Buckets[:0]; kept.Buckets == nil {
		kept.Buckets = []subjects.KeptBucket{} // it tells of them
	}
	for _, one := range shares {
		known = true
		switch {
		case one.Lost:
		case one.Refusal != nil:
			refusal = cmp.Or(refusal, one.Refusal)
		case one.Kept.Count > 0:
			kept.Count += one.Kept.Count
			kept.Hash ^= one.Kept.Hash
			kept.Buckets = append(kept.Buckets, one.Kept)
		}
	}
	slices.SortFunc(kept.Buckets, func(a, b subjects.KeptBucket) int { return cmp.Compare(a.Bucket, b.Bucket) })
	return known, refusal
}

// Answers says whether a node answers a keep-alive. One that was sent to it alone, or in a cluster of one, it does. Of one that
// everybody got, those answer that have something to say, with their own copy, and the one that the nodes' group has chosen
// (chosen: this copy came that way) if it has nothing to say: so there always is an answer, and it says the truth.
func Answers(everybody, chosen, something bool) bool { return !everybody || something != chosen }
