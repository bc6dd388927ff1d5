//go:build !linux

package daemons

import "os/exec"

// dieWithParent does nothing where the system cannot do it.
func dieWithParent(*exec.Cmd) {}
