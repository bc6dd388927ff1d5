package run

import "errors"

// ErrLostBefore says that the lock was lost before the command was started; nothing was started then.
var ErrLostBefore = errors.New("the lock was lost before the command could be started")
