package run

import (
	"errors"
	"io/fs"
	"os/exec"
	"syscall"
)

// Exit codes as the shells have them, for a command that could not be run.
const (
	CodeNotExecutable = 126
	CodeNotFound      = 127
)

// Find looks the command up as a shell does, so that no lock is taken for a command that is not there. Its error goes to
// [StartCode].
func Find(command string) (path string, err error) { return exec.LookPath(command) }

// StartCode is the exit code for an error of [Find] or [Run]: 127 if there is no such command, otherwise 126.
func StartCode(err error) int {
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		return CodeNotFound
	}
	return CodeNotExecutable
}

// Code is the exit code for a command that ended with status: its own, or 128+n if signal n ended it.
func Code(status syscall.WaitStatus) int {
	if status.Signaled() {
		return 128 + int(status.Signal())
	}
	return status.ExitStatus()
}
