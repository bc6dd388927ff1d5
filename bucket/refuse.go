package bucket

import (
	"fmt"
	"time"

	"github.com/opencluster/oclocks/subjects"
)

// reopenAfter is when to ask again meanwhile.
const reopenAfter = 100 * time.Millisecond

func badRequest(field, message string) *subjects.Refusal {
	return &subjects.Refusal{Code: 400, Reason: subjects.ReasonBadRequest, Field: field, Message: message}
}

func tooLarge(field, message string) *subjects.Refusal {
	return &subjects.Refusal{Code: 413, Reason: subjects.ReasonTooLarge, Field: field, Message: message}
}

func overQuota(what string) *subjects.Refusal {
	return &subjects.Refusal{Code: 429, Reason: subjects.ReasonQuota,
		Message: "the zone has as many " + what + " as it may have; try again when some have gone"}
}

func tooHeavy() *subjects.Refusal {
	return &subjects.Refusal{Code: 429, Reason: subjects.ReasonQuota,
		Message: "the session holds as much in this bucket as one session may; release some of it, or open another session"}
}

func notPrimary() *subjects.Refusal {
	return &subjects.Refusal{Code: 503, Reason: subjects.ReasonUnavailable, RetryAfter: time.Second,
		Message: "this node does not serve the bucket now; ask again"}
}

func stopping() *subjects.Refusal {
	return &subjects.Refusal{Code: 503, Reason: subjects.ReasonUnavailable, Why: subjects.WhyStopping,
		RetryAfter: time.Second, Message: "the node stops; ask another one, or this one when it is back"}
}

func (t *Table) inRecovery() *subjects.Refusal {
	return &subjects.Refusal{Code: 503, Reason: subjects.ReasonUnavailable, Why: subjects.WhyRecovery,
		RetryAfter: time.Duration(t.recoverUntil - t.now.Boot),
		Message:    "the bucket is in recovery and grants nothing until earlier leases are over; ask with a wait, or again later"}
}

func denied() *subjects.Refusal {
	return &subjects.Refusal{Code: 403, Reason: subjects.ReasonDenied, Field: "key",
		Message: "the unlock key is not that of a holder"}
}

func notHeld() *subjects.Refusal {
	return &subjects.Refusal{Code: 404, Reason: subjects.ReasonNotHeld,
		Message: "the lock is not held, or no longer with this key"}
}

func lost(why why) *subjects.Refusal {
	r := &subjects.Refusal{Code: 410, Reason: subjects.ReasonLost, Why: why.String(), Message: "the hold has ended"}
	switch why {
	case whyForced:
		r.Message = "the hold was ended by force"
	case whyExpired:
		r.Message = "the hold has ended: its time was over before it was renewed"
	case whyDisconnected:
		r.Message = "the hold has ended: the connection of its session was closed"
	case whyNone, whyReleased:
		r.Why, r.Message = "", "the hold has ended already"
	}
	return r
}

func sessionEnded(why why) *subjects.Refusal {
	message := "the session has ended; open a new one"
	if why == whySuperseded {
		message = "the session was opened again elsewhere, and this is the older of the two"
	}
	return &subjects.Refusal{Code: 410, Reason: subjects.ReasonSession, Why: why.String(), Message: message}
}

// reopen is what a session is told whose connection was closed and that has not been opened again since.
func reopen() *subjects.Refusal {
	return &subjects.Refusal{Code: 503, Reason: subjects.ReasonUnavailable, Why: subjects.WhyDisconnected,
		RetryAfter: reopenAfter, Message: "the connection of the session was closed; open the session again with its secret"}
}

func cancelled() *subjects.Refusal {
	return &subjects.Refusal{Code: 410, Reason: subjects.ReasonCancelled, Message: "the acquire was cancelled"}
}

func timedOut(waiting int) *subjects.Refusal {
	return &subjects.Refusal{Code: 408, Reason: subjects.ReasonTimeout, Queue: waiting, HasQueue: true,
		Message: "the wait is over and the lock was not granted; " + others(waiting) + " for it, this one included"}
}

// left is what a waiter is told that leaves.
func left(why why, waiting int) *subjects.Refusal {
	switch why {
	case whyTimeout:
		return timedOut(waiting)
	case whyCancelled:
		return cancelled()
	case whyStopping:
		return stopping()
	}
	return sessionEnded(why)
}

func others(n int) string {
	if n == 1 {
		return "one waits"
	}
	return fmt.Sprintf("%d wait", n)
}

// isHeld tells who has the lock at the cursor.
func (t *Table) isHeld() *subjects.Refusal {
	r := &subjects.Refusal{Code: 409, Reason: subjects.ReasonHeld, HasQueue: true}
	l := t.lock()
	if l.more != 0 {
		r.Queue = t.shares.at(l.more).waiting
	}
	if l.hold == 0 {
		r.Message = "the lock is free but others wait for it; ask with a wait to stand in the queue"
		return r
	}
	h := t.holds.at(l.hold)
	r.Holder, r.Since = t.texts.text(h.user), h.since
	if h.holder != 0 {
		r.Holder = t.texts.text(h.holder)
	}
	r.Message = "the lock is held; ask with a wait to stand in the queue"
	return r
}
