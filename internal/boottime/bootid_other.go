//go:build !linux

package boottime

import (
	"errors"
	"fmt"
	"runtime"
)

// BootID is known on Linux only; elsewhere the error is errors.ErrUnsupported, wrapped.
func BootID() (string, error) {
	return "", fmt.Errorf("read the kernel's boot id on %s: %w", runtime.GOOS, errors.ErrUnsupported)
}
