package inside

import "errors"

var (
	// ErrClosed says that Close was called, or that the server does not want this connection any more.
	ErrClosed = errors.New("the connection is closed")
	// ErrAway says that the connection is being made again.
	ErrAway = errors.New("the connection is away")
	// ErrFull says that too much waits to be written: the server does not read.
	ErrFull = errors.New("too much waits to be written")
	// ErrSubject says that a subject is empty or has a character that the protocol does not allow.
	ErrSubject = errors.New("not a subject")
	// ErrTooLarge says that a message is larger than the server takes.
	ErrTooLarge = errors.New("the message is too large")
	// ErrProtocol says that the other side does not speak NATS's protocol.
	ErrProtocol = errors.New("not NATS's protocol")
	// ErrServer wraps what the server has said in an -ERR.
	ErrServer = errors.New("the NATS server says")
)
