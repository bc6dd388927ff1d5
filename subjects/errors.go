package subjects

import "errors"

// Errors of this package. A request that is wrong is answered with a [Refusal] instead.
var (
	// ErrSubject is returned for a subject that is none of the protocol's. There is nobody to answer.
	ErrSubject = errors.New("not a subject of the protocol")

	// ErrOp is returned by ParseAddress for a subject of the right form with an operation that does not exist there. The
	// rest of the Address is filled in, so that the caller can be told.
	ErrOp = errors.New("no such operation on this subject")

	// ErrUnnamed is returned by ParseAddress for an operation that needs a named caller, on the subject of unnamed ones.
	// The Address is filled in.
	ErrUnnamed = errors.New("operation needs a named caller")

	// ErrBody is returned for a reply or an event that is not the JSON object that was expected.
	ErrBody = errors.New("unexpected message body")
)
