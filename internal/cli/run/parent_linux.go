package run

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// dieWithParent has the kernel kill the command when this process dies, also of SIGKILL. The kernel forgets it when the
// command is set-user-id, and it does not pass on to what the command starts.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }

// adoptOrphans says whether processes whose parents die become children of this process rather than of init.
func adoptOrphans(on bool) {
	var arg uintptr
	if on {
		arg = 1
	}
	// Kernels before 3.4 do not know it; then init gets them, as elsewhere.
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, arg, 0, 0, 0) // see above
}
