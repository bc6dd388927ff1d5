package flow

import (
	"math"
	"time"
)

// belated is how late what a node had sent before its end may arrive: a network that was cut delivers it when it is back.
const belated = int64(2 * time.Second)

// Claim is a node that wants to register under an identifier.
type Claim struct {
	Raft  uint64 // the raft ID of its control store
	Start uint64 // drawn at its start, never 0
}

// Life is what is known of the node that is registered under the identifier.
type Life struct {
	Claim
	Gone  bool  // it has said that it goes, and nothing was heard of it since
	Until int64 // when its lease ends, boot time in nanoseconds; 0: none since this leader leads
	Heard int64 // when it asked for it
}

// Judge says how long a node has to wait until it may register: 0 at once, math.MaxInt64 never, since another one lives
// under its identifier. first is when it asked for the first time, now is boot time in nanoseconds.
//
// A node that was restarted finds its own lease, which nobody renews: it waits for the end. If the lease is renewed for longer
// after the newcomer asked for the first time than by what its own earlier process may have sent, somebody else does that. Until
// that is known the newcomer waits, so it never begins while a lease is out.
func Judge(claim Claim, known Life, first, now int64) int64 {
	switch {
	case known.Raft == 0 || known.Start == claim.Start || known.Gone || now >= known.Until:
		return 0
	case known.Heard > first+belated:
		return math.MaxInt64
	}
	return known.Until - now
}
