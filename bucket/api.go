package bucket

import (
	"cmp"
	"time"

	"github.com/opencluster/oclocks/subjects"
)

// Now is the time of one Step. Boot must never go back between Steps.
type Now struct {
	Boot int64 // CLOCK_BOOTTIME, nanoseconds: all deadlines
	Wall int64 // Unix milliseconds: only for people (since) and never decides anything
}

// InputKind says what an Input is.
type InputKind uint8

// The inputs. Every one but Request comes from the broker itself. A keep-alive is no input: see Table.Keep.
const (
	Request    InputKind = iota // a client's request: acquire, release, renew, cancel, query, force, check, session-close, reclaim
	Disconnect                  // the connection Conn was closed from the client's side
	Tick                        // time has passed: carry out one due timer
	Split                       // the number of buckets is doubled to Input.Buckets; another number is ignored
	Heard                       // have a change tell of the opening that Untold speaks of
	Stop                        // the daemon stops: waiters leave with 503 stopping; those with a session stay if KeepSessions
)

// Conn names a client's connection: the id of its NATS server and its number there. One without a server is unknown, and its CID is
// what tells an opening of a session from others that name no connection either.
type Conn struct {
	Server string
	CID    uint64
}

// known says whether there is a connection whose end can be told.
func (c Conn) known() bool { return c.Server != "" }

// Compare orders connections; the order means nothing.
func (c Conn) Compare(d Conn) int {
	return cmp.Or(cmp.Compare(c.Server, d.Server), cmp.Compare(c.CID, d.CID))
}

// Session is what the broker has verified of a request's session token. The zero Session is none.
type Session struct {
	ID          string // the session's public id, subjects.SessionIDLen characters
	Incarnation uint64 // rises with every re-open, at least 1
	Lease       time.Duration
	Conn        Conn
}

// Input is one input of Step. The table keeps no reference to it or to Req after Step returns, only to its strings and to
// Req.Data.
type Input struct {
	Kind         InputKind
	Zone         string
	User         string  // proven by the subject's permissions; "anyone" if unnamed
	Reply        string  // subject for the answer
	Session      Session // verified; zero if the request has none
	Req          *subjects.Request
	Key          uint64 // Request: fresh random unlock key, used if a hold is granted to this request; never 0
	Conn         Conn   // Disconnect
	KeepSessions bool   // Stop
	Buckets      uint32 // Split

	// The zone is at its quota, by the edge's counters over all buckets: what would add one is refused with 429.
	HoldsFull, WaitersFull, SessionsFull bool
}

// EffectKind says what an Effect is.
type EffectKind uint8

// The effects.
const (
	Reply       EffectKind = iota // Body goes to the subject To
	NotifyOwner                   // Body is a *subjects.SessionEvent for (User, SessionID)
	NotifyZone                    // Body is a *subjects.LockEvent for the zone's lock events
)

// Effect is something to be seen from outside, after confirmation only.
type Effect struct {
	Kind      EffectKind
	Zone      string
	To        string
	User      string
	SessionID string
	Body      subjects.Body // *subjects.Grant and *subjects.Queued still want their Node and Receipt
}

// Output is what one Step or Apply gives. The caller hands the same Output in again and again: Change is overwritten by
// each call (its bytes are valid until the next), Effects is appended to and belongs to the caller.
type Output struct {
	Change  []byte // empty: nothing to replicate
	Seq     uint64 // the sequence number of the newest change of the table, this one's if there is one
	Zone    string // the zone that the change is about; "" if none or all (Promote, Stop)
	Effects []Effect
	Other   *Table // the change has split the table: what the other bucket begins with, a replica at sequence number 0
}

// Limits bound what a table may grow to; zero fields get the default that ARCHITECTURE.md names.
type Limits struct {
	Queue    int           // waiters for each name
	Requests int           // remembered ids without a session, for each zone
	Ended    int           // holds that ended a while ago and are remembered all the same, for each zone
	MaxLease time.Duration // what a recovery waits for: a hold with a longer lease is not durable
}

// ZoneSettings are what a zone has switched on.
type ZoneSettings struct {
	LockEvents bool
}

// Usage counts what a zone has in a table.
type Usage struct {
	Names, Holds, Waiters, Sessions int
}
