package bucket

import (
	"bytes"
	"strings"
)

// locks are the records of the locks and their names. The beginning of a name, mostly all of it, is in the lock's own
// record: who looks at the record has the name too, and the garbage collector has nothing to follow.
type locks struct {
	slab[lock]
	rests slab[string] // what of a name does not fit
}

// headMax makes a lock's record 48 bytes long.
const headMax = 25

// head is the part of the name that is in the record.
func (l *lock) head() []byte { return l.begins[:min(int(l.length), headMax)] }

// open makes the record of a name.
func (s *locks) open(name string) (id uint32, l *lock) {
	id, l = s.take()
	l.length = uint16(len(name))
	if n := copy(l.begins[:], name); n < len(name) {
		var rest *string
		l.rest, rest = s.rests.take()
		*rest = strings.Clone(name[n:])
	}
	return id, l
}

// release forgets a lock and its name.
func (s *locks) release(id uint32) {
	if rest := s.at(id).rest; rest != 0 {
		s.rests.release(rest)
	}
	s.slab.release(id)
}

// name is a copy of a lock's name.
func (s *locks) name(l *lock) string { return string(l.head()) + s.rest(l) }

func (s *locks) rest(l *lock) string {
	if l.rest == 0 {
		return ""
	}
	return *s.rests.at(l.rest)
}

// is says whether a lock has this name.
func (s *locks) is(l *lock, name string) bool {
	if int(l.length) != len(name) {
		return false
	}
	head := l.head()
	return string(head) == name[:len(head)] && s.rest(l) == name[len(head):]
}

// against compares a lock's name with a name.
func (s *locks) against(l *lock, name string) int {
	n := min(len(name), headMax)
	switch head := l.head(); { // in the one form that makes no copy
	case string(head) < name[:n]:
		return -1
	case string(head) > name[:n]:
		return 1
	}
	return strings.Compare(s.rest(l), name[n:])
}

// compare compares the names of two locks.
func (s *locks) compare(a, b *lock) int {
	if c := bytes.Compare(a.head(), b.head()); c != 0 {
		return c
	}
	return strings.Compare(s.rest(a), s.rest(b))
}
