package control

import "errors"

var (
	// ErrConfig says that the configuration cannot be used.
	ErrConfig = errors.New("control: unusable configuration")
	// ErrDuplicate says that another node lives under this one's identifier.
	ErrDuplicate = errors.New("another node with this identifier is alive: give each node its own data directory")
	// ErrRemoved says that this node was removed from the cluster: it can come back only as a new one, with an empty data
	// directory.
	ErrRemoved = errors.New("this node was removed from the cluster")
	// ErrRefused says that the leader refused the registration; the text says why.
	ErrRefused = errors.New("the leader refuses to register this node")
	// ErrAlone says that there is no other node that this one could hand its buckets to.
	ErrAlone = errors.New("no other node can take over")
	// ErrClosed says that Close was called.
	ErrClosed = errors.New("control: closed")
	// ErrUnavailable says that no leader answered in time.
	ErrUnavailable = errors.New("the cluster has no leader that answers")
)
