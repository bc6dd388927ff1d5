package broker

import "errors"

// ErrStopped is what a daemon's Wait returns after a stop that was asked for.
var ErrStopped = errors.New("the daemon was stopped")
