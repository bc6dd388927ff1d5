package bucket

import (
	"time"

	"github.com/opencluster/oclocks/subjects"
)

// The records of a table. Links between them are numbers of slabs; 0 is none. What is marked soft is the primary's own: it
// is neither replicated nor in a snapshot, and starts anew with Promote. Locks and holds, of which there may be millions, have
// no pointers: the garbage collector does not look at them.

// lock is a name that somebody holds or waits for. Most locks are exclusive and nobody waits: all of such a lock is here
// and in its one hold.
type lock struct {
	zone   uint32
	hold   uint32 // the first holder, in the order of their tokens
	more   uint32 // its shared, 0 while it has never been anything but held exclusively with nobody waiting
	place  uint32 // in the zone's order
	rest   uint32 // of its name, see locks
	length uint16 // of its name; 0 in an empty record
	mode   subjects.Mode
	begins [headMax]byte
}

// shared is what a lock has besides once it has several holders or waiters.
type shared struct {
	last    uint32 // the last holder; 0 stands for the first, that is, for none or one
	holders int
	slots   uint32 // of a semaphore: what holders and waiters have agreed upon
	taken   uint32 // of slots
	recalls int    // holders who asked to be told when somebody waits
	byToken map[uint64]uint32
	byKey   map[uint64]uint32 // both only while there are many holders, see crowd

	first, end uint32 // the queue
	waiting    int
	semaphores int    // waiters that are semaphores
	firm       uint32 // the first waiter that is not a soft or timed exclusive one, see queue.go
	firmEnd    uint32

	read     bool  // there was a shared or semaphore hold since the name was last absent
	lastRead int64 // soft: when the last such hold was granted
	recheck  int64 // soft: when the queue must be looked at again, never if on no timer's account
	timer    node
}

// hold is one holder of a lock, 88 bytes.
type hold struct {
	key          uint64
	token        uint64
	since        int64 // wall clock, Unix milliseconds
	ttl          time.Duration
	limit        int64 // soft: when the ttl is over, never if there is none
	timer        node  // its own bytes are kind and bits, see below
	lock         uint32
	next, prev   uint32 // of the same lock
	session      uint32
	snext, sprev uint32 // of the same session
	user, holder uint32 // texts: who it is, and what it calls itself
	more         uint32 // its holdMore, 0 if it has none
}

func (h *hold) kind() subjects.Kind { return subjects.Kind(h.timer.own[0]) }

func (h *hold) is(bits uint8) bool { return h.timer.own[1]&bits != 0 }

func (h *hold) mark(bits uint8) { h.timer.own[1] |= bits }

// The bits of a hold.
const (
	holdForced uint8 = 1 << iota
	holdRecall
	holdGrace // more.grace was asked for; otherwise it is the session's lease
)

// holdMore is what few holds have.
type holdMore struct {
	take    uint32
	grace   time.Duration
	request uint64 // number of the acquire in its session, 0 if it has none or the hold does not know it: see doc.go
	data    []byte
	parted  int64 // soft: when the grace after a closed connection is over, never if it runs not
	forced  int64 // soft: when a forced hold is over at the latest
}

// want is what an acquire asks for: of a hold that is granted at once, or of a waiter.
type want struct {
	mode    subjects.Mode
	kind    subjects.Kind
	drain   subjects.Drain
	bits    uint8
	slots   uint32 // 0 unless a semaphore
	take    uint32
	ttl     time.Duration
	grace   time.Duration
	quiet   time.Duration
	wait    time.Duration
	key     uint64
	holder  string
	data    []byte
	user    string
	session string
	reply   string
	request request
}

// The bits of want.bits.
const (
	wantEnqueue uint8 = 1 << iota
	wantRecall
	wantGrace
	wantPlaced // the waiter knows that it is next
)

// firm says whether the waiter stops shared and semaphore requests that come after it.
func (w *want) firm() bool { return w.mode != subjects.Exclusive || w.drain == subjects.Hard }

// waiter is one place in a queue.
type waiter struct {
	want
	lock             uint32
	next, prev       uint32
	firmNext         uint32 // the next firm waiter, if this one is firm
	firmPrev         uint32
	session          uint32
	snext, sprev     uint32
	entry            uint32 // the remembered request, 0 if none
	ticket           uint64
	since            int64 // wall clock, Unix milliseconds
	deadline, parted int64 // soft: when the wait is over; when it is because the connection was closed
	timer            node
}

// request is the idempotency id of a request: a number within a session, or a text of a user. The zero request has none.
type request struct {
	op     subjects.Op
	number uint64
	id     string
}

// entry is a remembered request.
type entry struct {
	request
	user       string
	session    uint32 // 0 if the request has no session
	waiter     uint32 // the acquire waits
	next, prev uint32 // finished entries, the oldest first
	name       uint64 // index of the lock's name
	outcome    []byte // the finished request's reply; nil: it waits and nothing was answered
	at         int64  // soft: when it was finished
}

// list is a doubly linked list's ends.
type list struct{ first, last uint32 }
