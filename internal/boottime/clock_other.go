//go:build !linux

package boottime

import "time"

var origin = time.Now() // only differences to it are used, and those are monotonic

// Now gives nanoseconds of Go's monotonic clock, counted from the start of the process: it never goes back. Unlike on
// Linux it may stand still while the machine is suspended.
func Now() int64 { return int64(time.Since(origin)) + 1 }
