package bucket

// slab stores records of one type under small numbers, so that ten million of them are a few thousand allocations, links
// between them take four bytes, and the garbage collector finds little to follow. Number 0 is no record.
//
// A record never moves: a pointer from at stays valid until the record is released.
type slab[T any] struct {
	bits   uint8 // each chunk has 1<<bits records
	chunks [][]T
	free   []uint32 // released numbers, the last one is given out next
	next   uint32   // the lowest number that was never given out, once there is a chunk
	live   int
}

// maxRecords is how many records a slab can number: three bits of a timer say what it is a timer of.
const maxRecords = 1<<29 - 1

// keepFree is for how many released numbers an empty slab keeps the room: else a lock that comes and goes would make it each time.
const keepFree = 64

// take gives out an empty record.
func (s *slab[T]) take() (uint32, *T) {
	s.live++
	if n := len(s.free); n > 0 {
		id := s.free[n-1]
		s.free = s.free[:n-1]
		return id, s.at(id)
	}
	s.next = max(s.next, 1)
	id := s.next
	if int(id>>s.bits) == len(s.chunks) {
		s.chunks = append(s.chunks, make([]T, 1<<s.bits))
	}
	s.next++
	return id, s.at(id)
}

// release empties a record and takes its number back. When the last record goes, so does the memory of a busier time.
func (s *slab[T]) release(id uint32) {
	var empty T
	*s.at(id) = empty
	s.live--
	if s.live == 0 {
		chunks := s.chunks
		if len(chunks) > 1 {
			chunks = [][]T{chunks[0]} // a list of its own: the old one would keep all of them
		}
		*s = slab[T]{bits: s.bits, chunks: chunks, free: s.free[:0]}
		if cap(s.free) > keepFree {
			s.free = nil
		}
		return
	}
	s.free = append(s.free, id)
}

func (s *slab[T]) at(id uint32) *T {
	return &s.chunks[id>>s.bits][id&(1<<s.bits-1)]
}

// end is one more than the highest number that was given out since the slab was last empty. Records that were released
// are among those below it, empty.
func (s *slab[T]) end() uint32 { return max(s.next, 1) }
