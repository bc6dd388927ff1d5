package output

import "errors"

// ErrWrite says that what was to be shown could not be written.
var ErrWrite = errors.New("cannot write the output")
