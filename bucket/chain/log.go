package chain

import "slices"

// log is the newest part of a copy's history: everything after base, in memory.
type log struct {
	base    Point
	changes []Change // changes[i].Seq == base.Seq+1+i
	bytes   int      // of all Data
}

// last is the end of the history.
func (l *log) last() Point {
	if n := len(l.changes); n > 0 {
		return l.changes[n-1].point()
	}
	return l.base
}

// at gives the point with this number, if it is not before base and not after the end.
func (l *log) at(seq uint64) (Point, bool) {
	switch {
	case seq == l.base.Seq:
		return l.base, true
	case seq < l.base.Seq || seq > l.base.Seq+uint64(len(l.changes)):
		return Point{}, false
	}
	return l.changes[seq-l.base.Seq-1].point(), true
}

// has says whether the history goes through p, as far as this copy can still tell.
func (l *log) has(p Point) bool {
	q, ok := l.at(p.Seq)
	return ok && p == q
}

// between gives the changes after seq up to and including end. Both must be in the log. The result is the log's own memory.
func (l *log) between(seq, end uint64) []Change {
	if end <= seq {
		return nil
	}
	return l.changes[seq-l.base.Seq : end-l.base.Seq]
}

func (l *log) append(c Change) {
	l.changes = append(l.changes, c)
	l.bytes += len(c.Data)
}

// truncate throws away everything after seq, which must be in the log.
func (l *log) truncate(seq uint64) {
	keep := int(seq - l.base.Seq)
	l.bytes -= size(l.changes[keep:])
	clear(l.changes[keep:]) // the bytes are to be collected
	l.changes = l.changes[:keep]
}

// compact forgets the changes up to and including seq, which must be in the log: the copy has them in its table.
func (l *log) compact(seq uint64) {
	n := int(seq - l.base.Seq)
	if n == 0 {
		return
	}
	l.base = l.changes[n-1].point()
	l.bytes -= size(l.changes[:n])
	clear(l.changes[:n]) // the bytes are to be collected
	l.changes = l.changes[n:]
	if cap(l.changes) > 1024 && len(l.changes) < cap(l.changes)/4 {
		l.changes = slices.Clone(l.changes)
	}
}

// size is the number of bytes of changes.
func size(changes []Change) int {
	n := 0
	for i := range changes {
		n += len(changes[i].Data)
	}
	return n
}

// reset makes p the whole history.
func (l *log) reset(p Point) { *l = log{base: p} }
