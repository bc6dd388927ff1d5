//go:build unix && !linux

package run

import "syscall"

// dieWithParent does nothing here: only Linux kills a child for its parent's death.
func dieWithParent(*syscall.SysProcAttr) {}

// adoptOrphans does nothing here: orphans go to init, which waits for them.
func adoptOrphans(bool) {}
