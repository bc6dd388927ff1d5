package sim

import (
	"github.com/cespare/xxhash/v2"

	"github.com/opencluster/oclocks/internal/check"
)

// fingerprint is a sum over what a run has done, in its order: the frames of Raft and of the chain, down to the byte, when each was sent and
// by whom; the commands that were committed; what clients did and saw; at the end the state of the generator. Two runs with one
// fingerprint did the same: it shows that a seed can be repeated, and that a faster simulator simulates no less.
type fingerprint uint64

func (f *fingerprint) number(n uint64) {
	h := (uint64(*f) ^ n) * 0x9e3779b97f4a7c15
	*f = fingerprint(h ^ h>>29)
}

func (f *fingerprint) text(s string) { f.number(xxhash.Sum64String(s)) }

// sent takes in a frame that a machine sends.
func (f *fingerprint) sent(at int64, from, to *machine, frame []byte) {
	f.number(uint64(at)<<8 | uint64(from.index)<<4 | uint64(to.index))
	f.number(xxhash.Sum64(frame))
}

// noted takes in an event of the history.
func (f *fingerprint) noted(e *check.Event) {
	f.number(uint64(e.At))
	f.number(uint64(e.Kind)<<32 | uint64(e.Op)<<24 | uint64(uint32(e.Code)))
	f.text(e.Client)
	f.text(e.Name)
	f.text(e.Request)
	f.number(e.Token)
	f.number(e.Ticket)
	f.number(e.Key)
	f.number(uint64(e.Until))
	f.number(uint64(e.TTL))
}
