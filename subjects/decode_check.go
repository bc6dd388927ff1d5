package subjects

import "fmt"

// finish decides what could not be decided field by field: what is missing, and what does not go together.
func (d *decoder) finish() *Refusal {
	d.setRequestID()
	if d.refusal != nil {
		return d.refusal
	}
	if d.known.OnName() {
		d.checkName()
	}
	if d.seen.has(fieldDone) && d.r.Session == "" {
		d.refuse(fieldDone, "done is about the requests of a session; send it together with session")
	}
	switch d.known {
	case OpAcquire:
		d.checkMode()
		d.checkDrain()
		d.checkSession()
	case OpRelease, OpRenew:
		d.need(fieldKey, "the unlock key of the grant")
	case OpCancel:
		d.need(fieldRequest, "the request of the acquire that is to be cancelled")
	case OpForce, OpCheck:
		d.need(fieldToken, "the fencing token of the hold")
	case OpReclaim:
		d.checkMode()
		d.need(fieldReceipt, "the receipt of the grant")
		d.need(fieldKey, "the unlock key of the grant")
		d.need(fieldToken, "the fencing token of the grant")
	case OpList:
		d.checkList()
	case OpSessionOpen:
		if d.seen.has(fieldServer) != d.seen.has(fieldCID) {
			d.refuse(fieldServer, "server and cid together name the session's connection; send both or none")
		}
	case OpSessionClose, OpKeep:
		d.need(fieldSession, "the token of the session")
	}
	return d.refusal
}

// need refuses a request without a field.
func (d *decoder) need(f field, what string) {
	if !d.seen.has(f) {
		d.refuse(f, fmt.Sprintf("%s is missing; %s needs %s", f, d.known, what))
	}
}

func (d *decoder) checkName() {
	switch {
	case d.seen.has(fieldName) && d.seen.has(fieldName64):
		d.refuse(fieldName64, "name and name64 are both there; send one of them")
	case !d.seen.has(fieldName) && !d.seen.has(fieldName64):
		d.refuse(fieldName, "name is missing; "+d.known.String()+" needs the name of a lock, 1 to 4096 bytes")
	}
}

// checkMode relates slots and take to the mode. A reclaim repeats its grant, where take is always there.
func (d *decoder) checkMode() {
	r := d.r
	taken := d.seen.has(fieldTake)
	if !taken {
		r.Take = 1
	}
	switch {
	case r.Mode == Semaphore && !d.seen.has(fieldSlots):
		d.refuse(fieldSlots, "slots is missing; a semaphore needs the number of its slots")
	case r.Mode == Semaphore && r.Take > r.Slots:
		d.refuse(fieldTake, fmt.Sprintf("take is %d; send at most slots, which is %d", r.Take, r.Slots))
	case r.Mode == Semaphore:
	case d.seen.has(fieldSlots):
		d.refuse(fieldSlots, fmt.Sprintf(`slots is for "mode":"semaphore" only, and mode is %s`, r.Mode))
	case taken && (d.known != OpReclaim || r.Take != 1):
		d.refuse(fieldTake, fmt.Sprintf(`take is for "mode":"semaphore" only, and mode is %s`, r.Mode))
	}
}

func (d *decoder) checkDrain() {
	r := d.r
	switch {
	case d.seen.has(fieldDrain) && r.Mode != Exclusive:
		d.refuse(fieldDrain, fmt.Sprintf(`drain is for "mode":"exclusive" only, and mode is %s`, r.Mode))
	case d.seen.has(fieldQuiet) && r.Drain != Timed:
		d.refuse(fieldQuiet, `quiet is for "drain":"timed" only`)
	case r.Drain == Timed && r.Quiet == 0:
		d.refuse(fieldQuiet, `"drain":"timed" needs quiet, more than "0s" and at most "1h"`)
	}
}

// checkSession relates the fields that are about a session to there being one.
func (d *decoder) checkSession() {
	r := d.r
	switch {
	case r.Session == "" && r.Kind == Connection:
		d.refuse(fieldKind, `"kind":"connection" needs a session; open one, or ask for "static" and a ttl`)
	case r.Session == "" && r.Enqueue:
		d.refuse(fieldEnqueue, "enqueue needs a session, whose events bring the grant; open one, or use wait alone")
	case r.Session == "" && r.Recall:
		d.refuse(fieldRecall, "recall needs a session, whose events bring it; open one, or leave recall out")
	case r.Session == "" && d.seen.has(fieldGrace):
		d.refuse(fieldGrace, "grace is for locks of a session; open one, or leave grace out")
	case r.Kind == Static && d.seen.has(fieldGrace):
		d.refuse(fieldGrace, `grace is for "kind":"connection"; a static lock survives its connection anyway`)
	}
}

func (d *decoder) checkList() {
	if d.seen.has(fieldPrefix) && d.seen.has(fieldPrefix64) {
		d.refuse(fieldPrefix64, "prefix and prefix64 are both there; send one of them")
	}
	if !d.seen.has(fieldLimit) {
		d.r.Limit = DefaultListLimit
	}
}
