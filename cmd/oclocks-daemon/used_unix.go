//go:build unix

package main

import (
	"fmt"
	"syscall"
	"time"
)

// processorTime is what this process has used so far, all threads and the kernel's work for them together.
func processorTime() (time.Duration, error) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, fmt.Errorf("ask for the processor time used: %w", err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), nil
}
