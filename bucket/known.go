package bucket

import (
	"math/bits"

	"github.com/cespare/xxhash/v2"
)

// known tells most sessions that a zone does not have here from those that it has, without a look at their map: a node asks all its buckets
// about each keep-alive, one of them knows the session as a rule, and the maps of so many sessions are in no cache. It follows from the map,
// so it is in no change and no snapshot. Ids are drawn at random, so nobody can make them collide.
type known struct {
	bits []uint64 // at a session's hash: it may be there
	put  int      // sessions that were put since the bits were made
}

// knownSpare is how many bits there are for a session at least.
const knownSpare = 8

// mark says that a session is there now. all are those of the map, it included.
func (k *known) mark(id string, all map[string]uint32) {
	k.put++
	if k.put*knownSpare <= len(k.bits)*64 {
		k.set(id)
		return
	}
	words := 1 << bits.Len(uint(len(all)*knownSpare/64))
	*k = known{bits: make([]uint64, 2*words), put: len(all)}
	for id := range all { // order: bits have none
		k.set(id)
	}
}

func (k *known) set(id string) {
	word, bit := k.at(id)
	k.bits[word] |= 1 << bit
}

// may says whether a session may be there.
func (k *known) may(id string) bool {
	if len(k.bits) == 0 {
		return false
	}
	word, bit := k.at(id)
	return k.bits[word]>>bit&1 != 0
}

func (k *known) at(id string) (word, bit uint64) {
	h := xxhash.Sum64String(id)
	return h >> 6 & uint64(len(k.bits)-1), h & 63
}
