package setup

import "errors"

var (
	// ErrMissing says that something was neither given nor can be asked for.
	ErrMissing = errors.New("is missing")
	// ErrThere says that there is something that would have to be overwritten.
	ErrThere = errors.New("is there already")
	// ErrNoAddress says that no node of the cluster has an address that a new one could connect to.
	ErrNoAddress = errors.New("no address for new nodes is known")
)
