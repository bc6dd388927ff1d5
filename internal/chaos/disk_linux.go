package chaos

import (
	"fmt"
	"os"
	"syscall"
)

// diskSize is the size of a node's file system.
const diskSize = "256m"

// mountSmall makes a directory that is a file system of its own, in memory.
func mountSmall(dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil { //nolint:gosec // as any directory
		return err
	}
	if err := syscall.Mount("disk", dir, "tmpfs", 0, "size="+diskSize); err != nil {
		return fmt.Errorf("mount %s: %w", dir, err)
	}
	return nil
}

// unmount takes it away, with everything in it.
func unmount(dir string) { syscall.Unmount(dir, syscall.MNT_DETACH) } //nolint:errcheck // it ends with this process
