package bucket

import (
	"time"

	"github.com/opencluster/oclocks/subjects"
)

// opCode says what an op does. The numbers are part of the format of changes, which journals keep: never reuse one.
type opCode uint8

const (
	opTerm         opCode = iota + 1 // the table has a new primary, or its counters a new term
	opZone                           // the ops that follow are about this zone
	opName                           // and about this name
	opSeen                           // a session, or a later opening of it, is seen
	opDone                           // a session awaits no replies below a number
	opForget                         // the oldest finished requests of a session, or without one, are forgotten
	opCloseSession                   // a session has ended, its holds and waiters have gone before
	opDropSession                    // a session, or what is left of an ended one, is forgotten
	opGrant                          // an acquire is granted at once
	opEnqueue                        // an acquire waits
	opAdmit                          // a waiter is granted
	opEnd                            // a hold is over
	opLeave                          // a waiter leaves without a grant
	opMove                           // a waiter asked again: its reply goes elsewhere and its wait is another
	opRenew                          // a hold's ttl or data change
	opForce                          // a hold is forced
	opAnswer                         // a request is answered, remembered, or both
	opPlace                          // an enqueued waiter is next
	opRecall                         // holders are told that somebody waits
	opSplit                          // half of the names go to another bucket
	opForgetEnds                     // the oldest ended holds are forgotten
	opLimit
)

// op is one explicit step of a change. Nothing in it depends on a clock but as a result. What can be derived from the
// replicated state, such as the next token, is not in it.
type op struct {
	code opCode
	want // opGrant, opEnqueue; the names of session and user and the reply and request of other ops are in here too

	zone, name string
	token      uint64 // of a hold
	ticket     uint64 // of a waiter
	since      int64
	span       time.Duration // opAdmit: waited; opEnd: held; opSeen: lease
	beat       uint64
	durable    bool
	why        why
	text       string // opEnd: outcome
	number     uint64 // opDone: lowest awaited; opForget, opForgetEnds: how many; opCloseSession: holds released
	newTTL     bool
	newData    bool

	opening // opSeen

	epoch   uint64
	term    uint32
	counter uint32

	body subjects.Body // opAnswer
}

// code writes or reads the fields of an op after its code.
func (o *op) fields(c *coder) {
	switch o.code {
	case opTerm:
		num(c, &o.epoch, anyUint)
		num(c, &o.term, maxTerm)
		num(c, &o.counter, maxCounter)
		num(c, &o.number, maxBuckets)
	case opZone:
		c.text(&o.zone, maxZone)
	case opName:
		c.text(&o.name, subjects.MaxName)
	case opSeen:
		c.text(&o.session, maxSessionID)
		c.text(&o.user, maxUser)
		num(c, &o.incarnation, anyUint)
		num(c, &o.span, uint64(subjects.MaxTTL))
		c.text(&o.conn.Server, maxUser)
		num(c, &o.conn.CID, anyUint)
	case opDone, opForget, opCloseSession, opDropSession:
		c.text(&o.session, maxSessionID)
		num(c, &o.number, anyUint)
		num(c, &o.why, uint64(whyEnd)-1)
	case opGrant:
		o.want.fields(c)
		num(c, &o.since, anyInt)
		num(c, &o.beat, anyUint)
		c.flag(&o.durable)
	case opEnqueue:
		o.want.fields(c)
		num(c, &o.since, anyInt)
	case opAdmit:
		num(c, &o.ticket, anyUint)
		num(c, &o.since, anyInt)
		num(c, &o.span, anyInt)
		num(c, &o.beat, anyUint)
		c.flag(&o.durable)
	default:
		o.moreFields(c)
	}
}

func (o *op) moreFields(c *coder) {
	switch o.code {
	case opEnd:
		num(c, &o.token, subjects.MaxToken)
		num(c, &o.why, uint64(whyEnd)-1)
		num(c, &o.span, anyInt)
		c.text(&o.text, subjects.MaxText)
	case opLeave:
		num(c, &o.ticket, anyUint)
		num(c, &o.why, uint64(whyEnd)-1)
	case opMove:
		num(c, &o.ticket, anyUint)
		num(c, &o.wait, uint64(subjects.MaxWait))
		c.text(&o.reply, maxReply)
	case opRenew:
		num(c, &o.token, subjects.MaxToken)
		c.flag(&o.newTTL)
		num(c, &o.ttl, uint64(subjects.MaxTTL))
		c.flag(&o.newData)
		c.blob(&o.data, subjects.MaxData)
	case opForce, opRecall:
		num(c, &o.token, subjects.MaxToken)
	case opPlace:
		num(c, &o.ticket, anyUint)
	case opSplit:
		num(c, &o.number, maxBuckets)
	case opForgetEnds:
		num(c, &o.number, ringSize)
	case opAnswer:
		c.text(&o.session, maxSessionID)
		c.text(&o.user, maxUser)
		c.text(&o.reply, maxReply)
		o.request.fields(c)
		bodyFields(c, &o.body, o.user, o.session)
	default:
		c.fail()
	}
}

// Limits of what is not a lock's: generous, they only bound what hostile bytes can ask for.
const (
	maxZone      = 1 << 10
	maxUser      = subjects.MaxOpaque
	maxSessionID = 64
	maxReply     = 4 << 10
	maxBuckets   = 1 << 31
)

func (w *want) fields(c *coder) {
	num(c, &w.mode, uint64(subjects.Semaphore))
	num(c, &w.kind, uint64(subjects.Connection))
	num(c, &w.drain, uint64(subjects.Timed))
	num(c, &w.bits, uint64(wantPlaced)<<1-1)
	if w.mode == subjects.Semaphore {
		num(c, &w.slots, subjects.MaxSlots)
		num(c, &w.take, subjects.MaxSlots)
	} else if c.reading {
		w.take = 1
	}
	if w.drain == subjects.Timed {
		num(c, &w.quiet, uint64(subjects.MaxQuiet))
	}
	if w.bits&wantGrace != 0 {
		num(c, &w.grace, uint64(subjects.MaxTTL))
	}
	num(c, &w.ttl, uint64(subjects.MaxTTL))
	num(c, &w.wait, uint64(subjects.MaxWait))
	c.fixed(&w.key)
	c.text(&w.holder, subjects.MaxHolder)
	c.blob(&w.data, subjects.MaxData)
	c.text(&w.user, maxUser)
	c.text(&w.session, maxSessionID)
	c.text(&w.reply, maxReply)
	w.request.fields(c)
}

func (r *request) fields(c *coder) {
	num(c, &r.op, uint64(subjects.OpPing))
	if r.op == subjects.OpNone {
		return
	}
	num(c, &r.number, anyUint)
	if r.number == 0 {
		c.text(&r.id, maxRequestID)
	}
}

// maxRequestID is subjects.MaxRequestID in bytes: the protocol counts characters.
const maxRequestID = 4 * subjects.MaxRequestID
