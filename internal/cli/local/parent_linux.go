package local

import "syscall"

// dieWithParent has the kernel kill the daemon when this process dies, also of SIGKILL. The journals are made for that.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }
