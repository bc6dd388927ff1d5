package check

import (
	"time"

	"github.com/opencluster/oclocks/subjects"
)

// Kind is what an event tells.
type Kind uint8

// The kinds. After each: the fields that it has besides At, Zone and Client.
const (
	// None is no event.
	None Kind = iota

	// Ask: the client sends a request for the first time. Op, Request; and by Op
	//   acquire        Name, Mode, Take, Slots, Drain, Hold, TTL, Grace, Wait, Session
	//   release, renew Name, Token of the hold that it is about; Key, if another client than the hold's asks
	//   cancel         Name, Of
	//   force          Name, Token, Now
	//   session-close  Session
	// A release ends the belief in that hold. Plain: the request carries no id on the wire, so each sending has an effect of its own.
	Ask
	// Answer: an answer has come, also one that came before. Request, Code (200, 202 queued, or of the refusal), Reason, Why; and
	//   acquire, renew  Token, Ticket, Key, TTL, Lease, Weak; Session, if it is in another one than was known when it was asked for
	//   release, force  Token, Ended (force: the hold is over)
	//   410 session     Session: which one is over; "" if that is not known
	//   cancel          Was, Token
	// The grant, timeout or end of what was queued (202) is another Answer of the same request, though it comes as a session's event.
	Answer
	// Anew: the client goes on with Request, an acquire, as a request with another id (in a new session, say). What it sent before may
	// have its effect too, of which nobody is told.
	Anew
	// GiveUp: the client waits no more for Request. It may have its effect still.
	GiveUp

	// Believe: from now until Until (Never: for ever) the client believes to have the hold Token of Name. A later one about the same
	// hold takes the place of the earlier.
	Believe
	// Disbelieve: it believes no more in Token of Name. The broker may have it still; or the client has given it back in silence.
	Disbelieve
	// Lost: it was told, by an event or a keep-alive, that Token of Name is over. Why.
	Lost

	// SessionOpened: the client has a session, perhaps one that another client had before; each time that it comes back, too. Session,
	// Lease, Incarnation, Place.
	SessionOpened
	// SessionLost: the client was told that its Session is over; it believes in none of its connection holds. Why.
	SessionLost
	// KeptAlive: a keep-alive that was sent at Since was answered. Session, Tokens: how many holds it counted.
	KeptAlive
	// Disconnected: the client's connection is closed, whether it knows or not. Holds with a grace shorter than their lease may go.
	Disconnected
	// Connected: it has one again.
	Connected
	// Died: the client is no more: it believes in nothing and waits for nothing.
	Died

	// Seen: a query, or one line of a list, that was asked for at Since, shows the holders and the queue of Name. Holders, Queue; Part: they
	// may not be all. Since 0: all of it at this instant (the simulator looks itself).
	Seen
	// Checked: a fence check of Token of Name, asked for at Since, was answered. Current, Newest, Oldest.
	Checked
	// Noticed: the client was told of something that happened to Name: a lock's event. Token, if it names one.
	Noticed

	// Doubt: what was answered for the buckets of Bucket of Buckets (0 of 1: all) until now may be lost, as far as the promises allow
	// that in a recovery. In all zones, if Zone is "".
	Doubt
	// Withheld: until now the buckets of Bucket of Buckets gave nothing to anybody, and nothing of theirs is lost: a new primary that has
	// to split its table first. A wait may end meanwhile though the lock is free. In all zones.
	Withheld

	kindCount
)

var kindWords = [kindCount]string{"", "ask", "answer", "anew", "give-up", "believe", "disbelieve", "lost", "session-opened", "session-lost",
	"kept-alive", "disconnected", "connected", "died", "seen", "checked", "noticed", "doubt", "withheld"}

// String is the kind's word in recordings, "" for a kind that does not exist.
func (k Kind) String() string {
	if k >= kindCount {
		return ""
	}
	return kindWords[k]
}

// Never is the end of a belief without a limit.
const Never = int64(1<<63 - 1)

// Holder is one holder of a lock, as somebody saw it.
type Holder struct {
	Token  uint64 `json:"token"`
	Client string `json:"client,omitempty"` // "" if it is not shown
}

// Waiter is one place in a lock's queue, as somebody saw it.
type Waiter struct {
	Ticket uint64 `json:"ticket"`
	Client string `json:"client,omitempty"`
}

// Event is one thing that one client did or saw. Kind says which fields it has; all others are zero. The zero values of Mode, Hold and
// Drain are those of the protocol; 0 for TTL and Lease is none.
type Event struct {
	At   int64 // nanoseconds of the history's one clock
	Kind Kind
	Op   subjects.Op

	Zone    string
	Client  string
	Session string // its id, or whatever names it in this history
	Request string // names a request of this client; not used again for another
	Of      string // cancel: the request that is to be cancelled, of the same client
	Name    string // of the lock

	Mode  subjects.Mode
	Hold  subjects.Kind
	Drain subjects.Drain
	Take  uint32 // 0 is 1
	Slots uint32

	Code   int    // 200 done, 202 queued, else the refusal's
	Reason string // of a refusal, as on the wire
	Why    string // of a refusal 410, a Lost or SessionLost: expired, disconnected, forced, superseded, closed; "" if it is not told
	Was    string // cancel: waiting, granted, unseen, released or cancelled
	Token  uint64
	Ticket uint64
	Key    uint64
	TTL    time.Duration
	Lease  time.Duration
	Grace  time.Duration // Ask: as asked; below 0: none was asked for, it is the lease
	Wait   time.Duration
	Until  int64
	Since  int64

	Plain   bool // Ask: no id on the wire
	Now     bool // force: at once
	Ended   bool // force: it is over
	Weak    bool // a grant that says "durable": false
	Part    bool // Seen
	Current bool // Checked

	Incarnation uint64 // of a session; of two openings the one with the higher is the later one
	Place       string // if they are equal, the one with the higher of these; either may be if one is "", or both are the same

	Newest  uint64
	Oldest  uint64
	Tokens  int
	Holders []Holder
	Queue   []Waiter

	Bucket  uint32
	Buckets uint32
}
