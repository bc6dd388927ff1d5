package chain

import "slices"

// After gives the history behind a number: the point with that number, and the changes after it, whose Data must not be
// written to. ok is false if the copy does not have that number, or has forgotten it. It is for a journal that wants to
// begin anew with the table as it is.
func (r *Replica) After(seq uint64) (base Point, changes []Change, ok bool) {
	base, ok = r.log.at(seq)
	if !ok {
		return Point{}, nil, false
	}
	return base, slices.Clone(r.log.between(seq, r.log.last().Seq)), true
}
