package machine

import (
	"github.com/opencluster/oclocks/subjects"
)

// Call is one request from its submission to its answer. The caller sets the exported fields but Result before Submit.
type Call struct {
	// Req is the request. In calls of the session (Raw is false and the operation knows sessions) the machine fills in the
	// session, the number and done.
	Req *subjects.Request
	// Raw leaves the request as it is: its session and its ids are the caller's business.
	Raw bool
	// Hold, of an acquire that is not Raw, is filled in by its grant and tracked from then on.
	Hold *Hold
	// Endless, of an acquire, waits until the caller gives up: the machine chooses `wait` and asks again in time.
	Endless bool
	// Owner is the caller's.
	Owner any

	// Result is what came of it, valid after the Finish action.
	Result Result

	role      role
	state     callState
	id        uint64 // token of the reply subject
	list      *callList
	prev      *Call
	next      *Call
	subject   string
	lane      *lane             // over which it was sent the newest time; nil: the home connection
	since     int64             // a probe: when its bucket was found vacant
	bucket    uint32            // of the name, as of the newest sending or of the try that found it vacant
	era       uint64            // of the session that it was last sent with
	eras      uint64            // counts these; see replyToken
	first     int64             // first sending under the present number; 0 before
	last      int64             // newest sending
	until     int64             // end of the caller's own `wait`; 0 before it is known
	due       int64             // next repetition
	silent    int               // repetitions after silence
	refused   int               // repetitions after a refusal
	refusedAt int64             // the first of those
	probe     *Call             // gated: what finds out when somebody listens again
	why       *subjects.Refusal // the newest of those
	renumber  int               // how often it got another number since one was refused
	low       bool              // of an acquire that is being cancelled: its newest sending was refused for its number
	given     bool              // the caller has given up; the machine goes on until nothing is left behind

	cancel *Call  // of an acquire: the cancel that is under way
	target *Call  // of a cancel: the acquire that it ends
	about  *Hold  // of a release or renew: the hold that it is about
	check  bool   // of a renew: counted among those that ask whether a doubted hold still exists
	moves  bool   // of a renew: it counts the hold's time limit anew
	terms  uint64 // of a renew: those of the hold when it was sent first
}

// Result is the outcome of a call: an answer (Data; of acquire and renew Grant instead), a Refusal or an Err.
type Result struct {
	Data    []byte // the answer's JSON
	Grant   *subjects.Grant
	Refusal *subjects.Refusal
	Err     error
}

// role says for whom a call is made.
type role uint8

const (
	forCaller role = iota
	toOpen         // session-open
	toLocate       // info, for the map of the buckets
	toCancel       // cancel of an acquire whose caller has given up
	toProbe        // check, of a bucket that nobody listens for: is its primary there again?
	toTidy         // what nobody waits for: session-close of a session that is over, release of what was lost
)

type callState uint8

const (
	parked   callState = iota // waits for a session or for a connection
	gated                     // its bucket is vacant
	flying                    // sent, unanswered
	pausing                   // refused, to be repeated at due
	proving                   // an acquire was granted, but its hold is not trusted yet
	finished                  // over
)

// Why is the newest refusal after which the call is repeated; nil if there was none.
func (c *Call) Why() *subjects.Refusal {
	if c.state == gated && c.probe.why != nil {
		return c.probe.why
	}
	return c.why
}

// waits says whether the answer may take long because others hold the lock.
func (c *Call) waits() bool {
	return c.Req.Op == subjects.OpAcquire && (c.Endless || c.Req.Wait > 0) && !c.Req.Enqueue
}

// numbered says whether the call has a number in the machine's session.
func (c *Call) numbered() bool {
	if c.Raw {
		return false
	}
	switch c.Req.Op {
	case subjects.OpAcquire, subjects.OpRelease, subjects.OpRenew:
		return true
	}
	return false
}

// inSession says whether the call carries the machine's session.
func (c *Call) inSession() bool {
	return c.numbered() || c.Req.Op == subjects.OpNone || c.cancels()
}

// cancels says whether the call cancels an acquire of the machine's session.
func (c *Call) cancels() bool {
	return c.role == toCancel && !c.target.Raw || c.role == toTidy && c.Req.Op == subjects.OpCancel
}

// holdKind is of what kind the hold is that an acquire asks for.
func (c *Call) holdKind() subjects.Kind {
	if c.Req.Kind == subjects.KindDefault && !c.Raw {
		return subjects.Connection
	}
	return c.Req.Kind
}

// once says whether the call may not be repeated after silence: it changes something and has no id.
func (c *Call) once() bool {
	if c.numbered() || c.Req.RequestID != "" || c.Req.Number != 0 {
		return false
	}
	switch c.Req.Op {
	case subjects.OpAcquire, subjects.OpRelease, subjects.OpRenew, subjects.OpForce:
		return true
	}
	return false
}

// callList is a list of calls in the order in which they were added.
type callList struct {
	head, tail *Call
}

func (l *callList) add(c *Call) {
	c.list, c.prev, c.next = l, l.tail, nil
	if l.tail == nil {
		l.head = c
	} else {
		l.tail.next = c
	}
	l.tail = c
}

func (c *Call) unlink() {
	l := c.list
	if l == nil {
		return
	}
	if c.prev == nil {
		l.head = c.next
	} else {
		c.prev.next = c.next
	}
	if c.next == nil {
		l.tail = c.prev
	} else {
		c.next.prev = c.prev
	}
	c.list, c.prev, c.next = nil, nil, nil
}

// all gives the calls of the list; the loop's body may take calls out of it and add others.
func (l *callList) all() []*Call {
	var calls []*Call
	for c := l.head; c != nil; c = c.next {
		calls = append(calls, c)
	}
	return calls
}
