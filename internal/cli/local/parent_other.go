//go:build !linux

package local

import "syscall"

// dieWithParent does nothing where the kernel has no such thing: a killed parent leaves its daemons.
func dieWithParent(*syscall.SysProcAttr) {}
