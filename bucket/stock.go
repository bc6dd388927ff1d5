package bucket

import "github.com/opencluster/oclocks/subjects"

// Answers that live for moments, or for seconds on a replica, are made several at a time: one by one they were most of what
// a lock and its release had the collector look after. Each is given out once and never taken back, so nobody sees another's;
// the price is that the last one of a lot that somebody still has keeps the whole lot, which is why lots are small, and why a table
// keeps no such thing itself.

// How many are made at a time: 2 KiB for a table that answers.
const (
	stockGrants   = 8
	stockReleased = 32
)

// stock gives out new records.
type stock[T any] struct{ left []T }

func (s *stock[T]) take(lot int) *T {
	if len(s.left) == 0 {
		s.left = make([]T, lot)
	}
	next := &s.left[0]
	s.left = s.left[1:]
	return next
}

// answers are the two that nearly all requests get.
type answers struct {
	grants   stock[subjects.Grant]
	released stock[subjects.Released]
}

func (a *answers) grant() *subjects.Grant { return a.grants.take(stockGrants) }

func (a *answers) release() *subjects.Released { return a.released.take(stockReleased) }
