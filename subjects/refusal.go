package subjects

import (
	"strconv"
	"time"
)

// Reasons of refusals, the `reason` of the wire.
const (
	ReasonBadRequest  = "bad_request" // 400
	ReasonUnsupported = "unsupported" // 400
	ReasonDenied      = "denied"      // 403
	ReasonNotHeld     = "not_held"    // 404
	ReasonTimeout     = "timeout"     // 408
	ReasonHeld        = "held"        // 409
	ReasonLost        = "lost"        // 410
	ReasonSession     = "session"     // 410
	ReasonCancelled   = "cancelled"   // 410
	ReasonTooLarge    = "too_large"   // 413
	ReasonMoved       = "moved"       // 421
	ReasonQuota       = "quota"       // 429
	ReasonUnavailable = "unavailable" // 503
)

// Whys: the second word of a 410 and of a 503, and the `why` of a lost lock's event.
const (
	WhyExpired      = "expired"
	WhyDisconnected = "disconnected"
	WhyForced       = "forced"
	WhySuperseded   = "superseded"
	WhyClosed       = "closed" // the session was closed by its client
	WhyNoQuorum     = "no_quorum"
	WhyMinQuorum    = "min_quorum"
	WhyRecovery     = "recovery"
	WhyStopping     = "stopping"
	WhyOverloaded   = "overloaded"
)

// Refusal is the answer to a request that was not carried out; nothing has changed then. It is an error, and a Body.
type Refusal struct {
	Code       int    // 400..503, see docs/protocol.md
	Reason     string // one of the Reason constants
	Message    string // for people: what is wrong, what was expected, what to do
	Field      string // 400, 413: the field that is wrong, if it is one
	Why        string // 410, 503: one of the Why constants
	Holder     string // 409: who holds it (holder text, else user)
	Since      int64  // 409: when it was granted, Unix milliseconds; 0 if unknown
	Queue      int    // 408, 409: how many wait
	HasQueue   bool   // Queue is told
	RetryAfter time.Duration
	Map        *Map   // 421
	Above      uint64 // 400 of a request below the session's done: its bucket knows no higher number; 0 if it is another 400
}

// Error is "409 held: message".
func (r *Refusal) Error() string {
	s := strconv.Itoa(r.Code) + " " + r.Reason
	if r.Why != "" {
		s += " (" + r.Why + ")"
	}
	if r.Message != "" {
		s += ": " + r.Message
	}
	return s
}
