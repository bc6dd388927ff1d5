package journal

import (
	"errors"
	"fmt"
	"io"
)

// place is where a record begins.
type place struct {
	segment uint64
	offset  int64
}

func (p place) before(q place) bool {
	return p.segment < q.segment || p.segment == q.segment && p.offset < q.offset
}

// survey is what one reading of all segments tells: where each bucket's replay begins, and whether all is there.
type survey struct {
	buckets map[uint32]*surveyed
	base    uint64 // segments below are not needed
	clean   bool   // the record read last is the mark of a clean shutdown
	sum     uint64 // of the record read last
	linked  bool   // it is known that this is the last record before the next one

	unsettled bool // an unclean start was not settled
	// problems are those of the segments, in order. Those below the final base are none.
	problems []problem
}

// surveyed is what is known of a bucket.
type surveyed struct {
	known bool   // there was a change or a complete snapshot
	seq   uint64 // of the newest of those
	first uint64 // the change that was first; 1 if a snapshot was
	in    place  // where that is
	start *place // where the newest complete snapshot begins; nil: there is none
	size  int64  // of that snapshot

	// The snapshot whose parts are being read.
	parts int // how many were; 0: none is
	begun place
	bytes int64
}

type problem struct {
	segment uint64
	err     error
}

func newSurvey() *survey { return &survey{buckets: make(map[uint32]*surveyed), linked: true} }

// read takes in all records of a segment. The error is that of the reader: *badRecord, or the file system's; never io.EOF.
func (s *survey) read(r *reader) error {
	s.unsettled = r.unsettled
	for {
		rec, at, err := r.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		s.clean = rec.kind == markClean
		before, linked := s.sum, s.linked
		s.sum, s.linked = r.chain.sum, true
		switch rec.kind {
		case markBase:
			if rec.seq > r.number {
				s.problem(r.number, fmt.Errorf("%s, byte %d: it says that it is not needed itself", segmentName(r.number), at))
				continue
			}
			s.base = max(s.base, rec.seq)
		case markSettle:
			s.unsettled = false
		case markLink:
			if linked && rec.seq != before {
				s.problem(r.number-1, fmt.Errorf("%s has lost its end: what %s says of it is not so",
					segmentName(r.number-1), segmentName(r.number)))
			}
		}
		if rec.kind > Snapshot {
			continue
		}
		if err := s.take(&rec.head, place{segment: r.number, offset: at}); err != nil {
			s.problem(r.number, fmt.Errorf("%s, byte %d: %w", segmentName(r.number), at, err))
		}
	}
}

// problem notes what is wrong with a segment. What comes after is surveyed as if nothing had been before.
func (s *survey) problem(segment uint64, err error) {
	s.problems = append(s.problems, problem{segment, err})
	clear(s.buckets)
	s.linked = false
}

func (s *survey) take(h *head, at place) error {
	b := s.buckets[h.bucket]
	if b == nil {
		b = &surveyed{}
		s.buckets[h.bucket] = b
	}
	if h.kind == Snapshot {
		b.takePart(h, at)
		return nil
	}
	b.parts = 0 // a snapshot that was begun and not ended, because the process died
	if b.known && h.seq != b.seq+1 {
		return fmt.Errorf("bucket %d has change %d after %d", h.bucket, h.seq, b.seq)
	}
	if !b.known {
		b.known, b.first, b.in = true, h.seq, at
	}
	b.seq = h.seq
	return nil
}

// takePart takes in a part of a snapshot. One that does not follow the part before is of a snapshot that began elsewhere
// or was not ended, and counts for nothing.
func (b *surveyed) takePart(h *head, at place) {
	if h.part == 0 {
		b.parts, b.begun, b.bytes = 0, at, 0
	} else if b.parts != int(h.part) {
		b.parts = 0
		return
	}
	b.parts++
	b.bytes += int64(h.length)
	if !h.last {
		return
	}
	start := b.begun
	b.start, b.size, b.seq, b.parts = &start, b.bytes, h.seq, 0
	if !b.known {
		b.known, b.first, b.in = true, 1, start
	}
}

// result gives the first problem of what is needed.
func (s *survey) result() error {
	for _, p := range s.problems {
		if p.segment >= s.base {
			return p.err
		}
	}
	for bucket, b := range s.buckets {
		if b.known && b.start == nil && b.first != 1 {
			return fmt.Errorf("%s, byte %d: bucket %d begins with change %d, and no snapshot of it is there",
				segmentName(b.in.segment), b.in.offset, bucket, b.first)
		}
	}
	return nil
}
