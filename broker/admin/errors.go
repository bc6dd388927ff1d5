package admin

import "errors"

var (
	// ErrNoDaemon says that no daemon can be reached.
	ErrNoDaemon = errors.New("no daemon answers")
	// ErrUnknown says that a request was sent and nothing came back: it may have been carried out or not.
	ErrUnknown = errors.New("no answer: whether it was done is not known")
	// ErrUnavailable says that the cluster cannot do it now.
	ErrUnavailable = errors.New("the cluster cannot do it now")
	// ErrRequest says that the request is not one that a node understands.
	ErrRequest = errors.New("not a request of this version")
)
