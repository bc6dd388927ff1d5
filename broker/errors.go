package broker

import "errors"

var (
	// ErrStopped is what a daemon's Wait returns after a stop that was asked for.
	ErrStopped = errors.New("the daemon was stopped")

	errPart = errors.New("a message between nodes about their buckets does not make sense")

	// ErrShared says that a node of a cluster does not take its zones from its own file.
	ErrShared = errors.New("the nodes of a cluster share their zones and users: change them with oclocks-config, on any node")
)
