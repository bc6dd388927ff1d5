package client

import (
	"errors"
	"fmt"
	"time"

	"github.com/opencluster/oclocks/internal/machine"
	"github.com/opencluster/oclocks/subjects"
)

// What can go wrong, for errors.Is. Where the broker refused a request, errors.As gives the *subjects.Refusal as well.
var (
	ErrBadRequest  = errors.New("bad request")                // 400
	ErrDenied      = errors.New("denied")                     // 403, or the NATS server did not let the request through
	ErrNotHeld     = errors.New("not held")                   // 404: the lock, or by that key
	ErrTimeout     = errors.New("the wait is over")           // 408
	ErrHeld        = errors.New("held by others")             // 409
	ErrLost        = errors.New("the lock is lost")           // 410 lost, and whatever ended a claim
	ErrSession     = errors.New("the session is over")        // 410 session
	ErrCancelled   = errors.New("the request was cancelled")  // 410 cancelled
	ErrTooLarge    = errors.New("too large")                  // 413
	ErrQuota       = errors.New("over a quota")               // 429; or this client has too many requests under way
	ErrUnavailable = errors.New("the broker is unavailable")  // 503, or there is no connection
	ErrUnknown     = errors.New("the outcome is unknown")     // a request without an id was not answered
	ErrReleased    = errors.New("the lock was released")      // Err of a claim after its release
	ErrNotLocked   = errors.New("unlock of an unlocked lock") // Unlock without a Lock before
	ErrClosed      = errors.New("the client is closed")
)

// codes relates the sentinels to the refusals that they stand for.
func sentinel(r *subjects.Refusal) error {
	switch r.Code {
	case 400:
		return ErrBadRequest
	case 403:
		return ErrDenied
	case 404:
		return ErrNotHeld
	case 408:
		return ErrTimeout
	case 409:
		return ErrHeld
	case 413:
		return ErrTooLarge
	case 429:
		return ErrQuota
	case 503:
		return ErrUnavailable
	}
	switch r.Reason {
	case subjects.ReasonLost:
		return ErrLost
	case subjects.ReasonSession:
		return ErrSession
	case subjects.ReasonCancelled:
		return ErrCancelled
	}
	return nil
}

// refusedError is a refusal and what was being done.
type refusedError struct {
	op      string
	name    string
	refusal *subjects.Refusal
}

// Error is `acquire "orders/4711": 409 held: …`.
func (e *refusedError) Error() string { return doing(e.op, e.name) + ": " + e.refusal.Error() }

// Unwrap gives the refusal to errors.As and its sentinel to errors.Is.
func (e *refusedError) Unwrap() []error {
	if s := sentinel(e.refusal); s != nil {
		return []error{e.refusal, s}
	}
	return []error{e.refusal}
}

func doing(op, name string) string {
	if name == "" {
		return op
	}
	return fmt.Sprintf("%s %q", op, name)
}

// failed makes an error of what was being done and of a result that is no answer.
func failed(op, name string, r machine.Result) error {
	if r.Refusal != nil {
		return &refusedError{op: op, name: name, refusal: r.Refusal}
	}
	err := r.Err
	switch {
	case errors.Is(err, machine.ErrForbidden):
		err = fmt.Errorf("%w: %w; the user's role in this zone has no %s", ErrDenied, err, op)
	case errors.Is(err, machine.ErrClosing):
		err = ErrClosed
	case errors.Is(err, machine.ErrTooMany):
		err = fmt.Errorf("%w: %w", ErrQuota, err)
	case errors.Is(err, machine.ErrUnknown):
		err = fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	return fmt.Errorf("%s: %w", doing(op, name), err)
}

// HeldError is returned by the Try methods for a lock that others hold. It matches ErrHeld, and errors.As gives the
// refusal.
type HeldError struct {
	Name   string
	Holder string    // text of a holder; "" if it gave none
	Since  time.Time // of its grant, by the broker's wall clock; the zero Time if unknown
	Queue  int       // how many wait

	refusal *subjects.Refusal
}

// Error is `lock "orders/4711": held by host/4711 since …, 2 waiting`.
func (e *HeldError) Error() string {
	s := doing("lock", e.Name) + ": held"
	if e.Holder != "" {
		s += " by " + e.Holder
	}
	if !e.Since.IsZero() {
		s += " since " + e.Since.Format(time.RFC3339)
	}
	return fmt.Sprintf("%s, %d waiting", s, e.Queue)
}

// Unwrap gives ErrHeld and the refusal.
func (e *HeldError) Unwrap() []error { return []error{ErrHeld, e.refusal} }

func heldError(name string, r *subjects.Refusal) *HeldError {
	e := &HeldError{Name: name, Holder: r.Holder, Queue: r.Queue, refusal: r}
	if r.Since != 0 {
		e.Since = time.UnixMilli(r.Since)
	}
	return e
}
