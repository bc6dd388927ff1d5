package main

import (
	"fmt"
	"syscall"
	"time"
)

// timed is how long one measurement goes on.
const timed = time.Second

// timeOf runs do again and again for about a second and gives the nanoseconds of one: of processor time, of all threads
// with the garbage collector's, so that what else runs on the machine does not count.
func timeOf(do func() error) (float64, error) {
	const batch = 1024 // between two looks at the clock
	done := 0
	begin, err := processorTime()
	if err != nil {
		return 0, err
	}
	for {
		for range batch {
			if err := do(); err != nil {
				return 0, err
			}
		}
		done += batch
		now, err := processorTime()
		if err != nil {
			return 0, err
		}
		if now-begin >= timed {
			return float64((now - begin).Nanoseconds()) / float64(done), nil
		}
	}
}

// processorTime is what this process has used so far.
func processorTime() (time.Duration, error) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, fmt.Errorf("ask for the processor time used: %w", err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), nil
}
