//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package journal

import (
	"errors"
	"fmt"
	"runtime"
)

// Lock fails: without it two daemons could write one journal.
func (osFS) Lock(string) (func() error, error) {
	return nil, fmt.Errorf("lock files on %s: %w", runtime.GOOS, errors.ErrUnsupported)
}
