//go:build unix

package direct

import "syscall"

// write gives a socket what it takes, and does not wait: Go's sockets are non-blocking.
func write(fd uintptr, b []byte) (int, error) { return syscall.Write(int(fd), b) } //nolint:gosec // it was an int
