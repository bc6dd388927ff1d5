package daemons

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// unshare gives a command a network and mounts of its own.
func unshare(cmd *exec.Cmd) {
	// Unshareflags, not Cloneflags: with them Go keeps the mounts from reaching the machine's.
	cmd.SysProcAttr.Unshareflags |= syscall.CLONE_NEWNET | syscall.CLONE_NEWNS
}

// privateNames has the names of namespaces live in the mounts of this process only: two networks do not meet, and nothing is left.
func privateNames() error {
	const names = "/run/netns"
	if err := os.MkdirAll(names, 0o755); err != nil { //nolint:gosec // as the command ip makes it
		return err
	}
	if err := syscall.Mount("names", names, "tmpfs", 0, ""); err != nil {
		return fmt.Errorf("mount %s: %w", names, err)
	}
	return nil
}
