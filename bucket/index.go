package bucket

// index finds a record's number by a 32-bit hash: extendible hashing over small open-addressed segments. A segment that
// is full is split into two, so that growing never costs one request more than the move of one segment, however many
// entries there are. Entries that share a hash are told apart by the caller.
//
// The high bits of a hash choose the segment and the low bits the place in it. The index is never walked, so nothing that
// leaves the table depends on the hash.
type index struct {
	depth    uint8      // the directory has 1<<depth entries
	segments []*segment // by the high depth bits; neighbours share one that was not split as often
	n        int
}

// segment is a linear-probing table. An entry is the hash in the high half and the number, never 0, in the low half.
type segment struct {
	depth   uint8 // how many high bits all hashes in here share
	n       int
	entries []uint64 // length is a power of two
}

const (
	segmentFirst = 8
	segmentKeep  = 64 // entries of a segment that an empty index keeps
	segmentMax   = 4096
	depthMax     = 20 // leaves 12 bits, log2(segmentMax), that tell places apart
)

func (x *index) segment(hash uint32) *segment {
	return x.segments[uint64(hash)>>(32-x.depth)]
}

// find gives the number under hash for which match is true, or 0.
func (x *index) find(hash uint32, match func(id uint32) bool) uint32 {
	if x.n == 0 {
		return 0
	}
	s := x.segment(hash)
	mask := uint32(len(s.entries) - 1)
	for i := hash & mask; ; i = (i + 1) & mask {
		e := s.entries[i]
		if e == 0 {
			return 0
		}
		if uint32(e>>32) == hash && match(uint32(e)) {
			return uint32(e)
		}
	}
}

// add enters a number that is not in the index.
func (x *index) add(hash, id uint32) {
	if len(x.segments) == 0 {
		x.segments = []*segment{{entries: make([]uint64, segmentFirst)}}
	}
	s := x.segment(hash)
	for (s.n+1)*16 > len(s.entries)*13 {
		x.grow(s, hash)
		s = x.segment(hash)
	}
	s.put(uint64(hash)<<32 | uint64(id))
	x.n++
}

// remove takes an entry out that is in the index. The last one takes the memory of a busier time along.
func (x *index) remove(hash, id uint32) {
	x.segment(hash).cut(uint64(hash)<<32 | uint64(id))
	x.n--
	if x.n == 0 && (len(x.segments) > 1 || len(x.segments[0].entries) > segmentKeep) {
		*x = index{}
	}
}

// grow makes room in a segment: it doubles a small one and splits a large one.
func (x *index) grow(s *segment, hash uint32) {
	if len(s.entries) < segmentMax || s.depth == depthMax {
		old := s.entries
		s.entries, s.n = make([]uint64, 2*len(old)), 0
		for _, e := range old {
			if e != 0 {
				s.put(e)
			}
		}
		return
	}
	if s.depth == x.depth {
		doubled := make([]*segment, 2*len(x.segments))
		for i, each := range x.segments {
			doubled[2*i], doubled[2*i+1] = each, each
		}
		x.segments = doubled
		x.depth++
	}
	halves := [2]*segment{}
	for i := range halves {
		halves[i] = &segment{depth: s.depth + 1, entries: make([]uint64, len(s.entries))}
	}
	bit := 63 - s.depth // the highest bit that the segment's hashes do not share
	for _, e := range s.entries {
		if e != 0 {
			halves[e>>bit&1].put(e)
		}
	}
	span := 1 << (x.depth - s.depth) // directory entries that pointed to the segment
	first := int(uint64(hash)>>(32-x.depth)) &^ (span - 1)
	for i := range span {
		x.segments[first+i] = halves[2*i/span]
	}
}

func (s *segment) put(e uint64) {
	mask := uint32(len(s.entries) - 1)
	i := uint32(e>>32) & mask
	for s.entries[i] != 0 {
		i = (i + 1) & mask
	}
	s.entries[i] = e
	s.n++
}

// cut removes an entry and moves those behind it up that would not be found any more.
func (s *segment) cut(e uint64) {
	mask := uint32(len(s.entries) - 1)
	hole := uint32(e>>32) & mask
	for s.entries[hole] != e {
		hole = (hole + 1) & mask
	}
	for i := (hole + 1) & mask; s.entries[i] != 0; i = (i + 1) & mask {
		home := uint32(s.entries[i]>>32) & mask
		if (i-home)&mask >= (i-hole)&mask {
			s.entries[hole] = s.entries[i]
			hole = i
		}
	}
	s.entries[hole] = 0
	s.n--
}
