package machine

import "errors"

// Errors where there is no answer from the broker.
var (
	// ErrTooMany is returned by Submit when MaxCalls requests are unfinished.
	ErrTooMany = errors.New("too many requests are under way")
	// ErrClosing is returned by Submit, and is the result of unfinished calls, once Close was called.
	ErrClosing = errors.New("the client is closed")
	// ErrForbidden is the result of a call on whose subject the NATS server does not let this user publish.
	ErrForbidden = errors.New("the NATS server does not permit this request")
	// ErrUnknown is the result of a call without an idempotency id that was not answered: it was not repeated, and whether
	// it took effect is not known.
	ErrUnknown = errors.New("no answer, and without an idempotency id it is unknown whether it took effect")
)
