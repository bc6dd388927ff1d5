package bucket

import (
	"github.com/opencluster/oclocks/internal/mutant"
	"github.com/opencluster/oclocks/subjects"
)

// Fencing tokens are term << 29 | counter, for each zone of a bucket: below 2^53, so that they stay exact in JSON. They
// rise with every grant in the zone, and a new primary's are higher than all of the one before.
const (
	counterBits = 29
	maxCounter  = 1<<counterBits - 1
	maxTerm     = 1<<24 - 1
)

// Term is where the tokens of a primary begin.
type Term struct {
	Epoch   uint64 // of the bucket's view, told in each grant
	Term    uint32 // at most 2^24 - 1; must rise with every Promote
	Counter uint32 // at most 2^29 - 1; the first token has the next one
}

// Term is the present one: its Term rises with a full counter too, and its Counter is that of the last Promote.
func (t *Table) Term() Term { return Term{t.epoch, t.term, t.counter} }

// lastToken is the last token that the zone got; a zone that got none in this term has none lower than the term's first.
func (t *Table) lastToken(z *zone) uint64 {
	first := uint64(t.term)<<counterBits | uint64(t.counter)
	if z == nil {
		return first
	}
	if z.token > 0 && mutant.On(mutant.TokenWithoutTerm) {
		return z.token
	}
	return max(z.token, first)
}

// reserveToken makes sure that the zone can get one more token, and raises the term if its counter is full; false if the
// terms are used up too.
func (t *Table) reserveToken() bool {
	if t.lastToken(t.at.zone)&maxCounter < maxCounter {
		return true
	}
	if t.term >= maxTerm {
		return false
	}
	t.do(&op{code: opTerm, epoch: t.epoch, term: t.term + 1})
	return true
}

// nextToken gives the zone its next token; 0 if there is none in this term.
func (t *Table) nextToken(z *zone) uint64 {
	last := t.lastToken(z)
	if last&maxCounter == maxCounter {
		return 0
	}
	z.token = last + 1
	return z.token
}

func (t *Table) applyTerm(o *op) bool {
	if o.term <= t.term {
		return false
	}
	if t.seq == 0 && t.born == 0 && o.number > 0 {
		t.buckets, t.born = uint32(o.number), uint32(o.number)
	}
	t.epoch, t.term, t.counter = o.epoch, o.term, o.counter
	t.keepNumbers()
	return true
}

func usedUp() *subjects.Refusal {
	return &subjects.Refusal{
		Code: 503, Reason: subjects.ReasonUnavailable,
		Message: "the fencing tokens of this bucket are used up; nothing can be granted in it any more",
	}
}
