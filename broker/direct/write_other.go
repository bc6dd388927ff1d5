//go:build !unix

package direct

import "syscall"

// write leaves everything to the goroutine that waits.
func write(uintptr, []byte) (int, error) { return 0, syscall.EAGAIN }
