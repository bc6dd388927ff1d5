package daemons

import (
	"os/exec"
	"syscall"
)

// dieWithParent ends a child when the process that started it is killed, by go test's time limit for one.
func dieWithParent(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
}
