//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package journal

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Lock takes an flock(2) on the file, which ends with the process however it dies. The file says whose it is, for people.
func (osFS) Lock(name string) (func() error, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		if errors.Is(err, unix.EWOULDBLOCK) {
			err = fmt.Errorf("%w by %s: stop that one first, or give this one another directory", ErrLocked, owner(name))
		}
		return nil, errors.Join(err, f.Close())
	}
	// What the file says is told to people only, so whether it can be written decides nothing.
	if f.Truncate(0) == nil {
		_, _ = fmt.Fprintln(f, os.Getpid()) // see above
	}
	return f.Close, nil
}

func owner(name string) string {
	text, err := os.ReadFile(name)
	if err != nil {
		return "another process"
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return "another process"
	}
	return fmt.Sprintf("process %d", pid)
}
