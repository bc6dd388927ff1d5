package natsd

import "errors"

var (
	// ErrStopping says that the server is shutting down, so nothing connects or changes any more.
	ErrStopping = errors.New("the NATS server is stopping")
	// ErrNoZone says that the server does not serve a zone of that name.
	ErrNoZone = errors.New("no such zone")
	// ErrDuplicate says that another server that runs has this one's name: one node must not run twice.
	ErrDuplicate = errors.New("another daemon with this node's identifier is running")
	// ErrNobody says that no other server of the cluster was reached.
	ErrNobody = errors.New("no other daemon of the cluster was reached")
	// ErrEvent says that what was received is not an event about a closed connection.
	ErrEvent = errors.New("not a disconnect event")
)
