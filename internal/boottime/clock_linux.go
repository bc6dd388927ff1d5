package boottime

import "golang.org/x/sys/unix"

// Now gives the nanoseconds since the machine started, time suspended included. It never goes back while the machine runs
// and says nothing about any other machine, nor about another start of this one. It is a system call, some 200 ns: read it
// once for a batch, not once for each lock.
func Now() int64 {
	var ts unix.Timespec
	// The call fails only for an unknown clock or a bad pointer; every kernel that Go runs on (3.2 and later) has this clock.
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		panic("boottime: CLOCK_BOOTTIME: " + err.Error())
	}
	return ts.Nano()
}
