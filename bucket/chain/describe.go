package chain

import (
	"fmt"
	"strings"
)

// Role says what a copy is under its newest view.
type Role uint8

// The roles.
const (
	Outside   Role = iota // not in the chain, and looking for no place
	Joining               // looks for a place behind the chain, or stands there
	Secondary             // in the chain, not its head
	Primary               // the head of the chain; whether it may act is another question
)

func (r Role) String() string {
	return [...]string{"outside", "joining", "secondary", "primary"}[min(r, Primary)]
}

// Status is what can be shown of a copy.
type Status struct {
	Self      Member
	Role      Role
	View      View
	InSync    bool       // the copy is of the in-sync set
	Acting    bool       // primary: it may answer
	Degraded  bool       // primary: it answers alone
	Sealed    uint64     // epoch for which it is sealed
	Last      Point      // end of its history
	Verified  uint64     // compared with the primary's up to here in this epoch
	Confirmed uint64     // known to be confirmed
	Delivered uint64     // in the table
	Base      uint64     // the newest change that is not in memory any more
	Up, Down  Member     // whom changes come from and go to
	Below     []Progress // what those after it have; the primary's is of the whole chain
	Stopped   string     // why the copy must not be used, empty if it may
}

// Status describes the copy as of the last call of Ready or Tick.
func (r *Replica) Status() Status {
	s := Status{
		Self: r.state.Self, View: r.view.Clone(), InSync: r.view.Counts(r.state.Self), Acting: r.acting(),
		Sealed: r.state.Sealed, Last: r.log.last(), Confirmed: r.confirmed, Delivered: r.delivered, Base: r.log.base.Seq,
		Up: r.up.peer, Stopped: r.stopped,
	}
	s.Verified, _ = r.verified()
	switch {
	case r.place == 0:
		s.Role, s.Degraded = Primary, r.view.InSync == 1
	case r.place > 0:
		s.Role = Secondary
	case r.wanted:
		s.Role = Joining
	}
	if r.down != nil {
		s.Down = r.down.peer
		s.Below = append(s.Below, r.down.below...)
	}
	if r.lead != nil {
		s.Below = s.Below[:0]
		for _, p := range r.lead.peers {
			s.Below = append(s.Below, p.Progress)
		}
	}
	return s
}

// Sure is the end of what is known here to be confirmed.
func (r *Replica) Sure() Point {
	p, _ := r.log.at(r.confirmed) // nothing later is compacted
	return p
}

// Has says whether this copy's history goes through p; known is false if p is too long ago to tell.
func (r *Replica) Has(p Point) (has, known bool) { return r.log.has(p), p.Seq >= r.log.base.Seq }

// Describe is one line for transcripts and logs.
func (r *Replica) Describe() string {
	s := r.Status()
	var b strings.Builder
	fmt.Fprintf(&b, "%v %v of %v: last %v verified %d confirmed %d delivered %d", s.Self, s.Role, s.View, s.Last, s.Verified,
		s.Confirmed, s.Delivered)
	if s.Acting {
		b.WriteString(" acting")
	}
	if s.Sealed >= s.View.Epoch && s.Sealed > 0 {
		fmt.Fprintf(&b, " sealed %d", s.Sealed)
	}
	if s.Down != (Member{}) {
		fmt.Fprintf(&b, " down %v", s.Down)
	}
	for _, p := range s.Below {
		fmt.Fprintf(&b, " %v:%d", p.Member, p.Seq)
	}
	if s.Stopped != "" {
		fmt.Fprintf(&b, " stopped: %s", s.Stopped)
	}
	return b.String()
}
