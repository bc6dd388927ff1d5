//go:build !linux

package e2e

import "os/exec"

// dieWithParent does nothing where the system cannot do it.
func dieWithParent(*exec.Cmd) {}
