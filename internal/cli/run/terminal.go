package run

import (
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// resumeWait is how long after SIGTSTP this process looks whether it was stopped at all: a process group without a shell
// that could continue it is not stopped by the kernel.
const resumeWait = 100 * time.Millisecond

// terminal passes the foreground of the controlling terminal between this process's group and the command's.
type terminal struct {
	file  *os.File // nil: there is none, and every method does nothing
	group group
	modes *term.State
}

// newTerminal must be called after the command has started: what is ignored from here on would be ignored by it too.
func newTerminal(file *os.File, g group) *terminal {
	t := &terminal{file: file, group: g}
	if file == nil {
		return t
	}
	// Without this a process in the background is stopped when it takes the terminal back.
	signal.Ignore(syscall.SIGTTOU)
	if modes, err := term.GetState(int(file.Fd())); err == nil {
		t.modes = modes
	}
	return t
}

// OpenTerminal opens the controlling terminal if this process has one and is in its foreground, and says whether the
// command should have it from its start: if it is the command's standard input. Without a terminal tty is nil.
func OpenTerminal(stdin *os.File) (tty *os.File, foreground bool) {
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, false
	}
	if owner(tty) != unix.Getpgrp() {
		_ = tty.Close() // it was opened only to look
		return nil, false
	}
	return tty, term.IsTerminal(int(stdin.Fd()))
}

// owner is the process group in the foreground of the terminal, 0 if that cannot be told.
func owner(tty *os.File) int {
	pgrp, err := unix.IoctlGetInt(int(tty.Fd()), unix.TIOCGPGRP)
	if err != nil {
		return 0
	}
	return pgrp
}

// give puts a process group into the foreground. It fails only when the group or the terminal is gone, and then there is
// nothing to give.
func (t *terminal) give(pgrp int) {
	_ = unix.IoctlSetPointerInt(int(t.file.Fd()), unix.TIOCSPGRP, pgrp) // see above
}

// takeBack ends the command's time in the foreground.
func (t *terminal) takeBack() {
	if t.file == nil {
		return
	}
	if owner(t.file) == int(t.group) {
		t.give(unix.Getpgrp())
	}
	signal.Reset(syscall.SIGTTOU)
}

// restoreModes undoes what a command that was killed did to the terminal (no echo, raw input).
func (t *terminal) restoreModes() {
	if t.file == nil || t.modes == nil {
		return
	}
	// A terminal that was hung up needs no modes.
	_ = term.Restore(int(t.file.Fd()), t.modes) // see above
}

// onStop is called when the command was stopped by sig. If it wants the terminal it gets it, provided that it is ours to
// give. If the user stopped it (Ctrl-Z), this process stops as well, so that the shell gets its prompt; when the shell
// continues us, the command goes on if the lock is still trusted. If it is not, the command stays stopped until it is
// killed.
func (t *terminal) onStop(sig syscall.Signal, trusted func() bool) {
	if t.file == nil {
		return // somebody stops it with kill(1), and will continue it too
	}
	mine := unix.Getpgrp()
	switch sig {
	case syscall.SIGTTIN, syscall.SIGTTOU:
		if owner(t.file) == mine {
			t.give(int(t.group))
			t.group.signal(syscall.SIGCONT)
			return
		}
	case syscall.SIGTSTP:
	default:
		return
	}
	if owner(t.file) == int(t.group) {
		t.give(mine)
	}
	suspend()
	if !trusted() {
		return
	}
	if owner(t.file) == mine {
		t.give(int(t.group))
	}
	t.group.signal(syscall.SIGCONT)
}

// suspend stops this process's group as Ctrl-Z does and returns when it is continued, or at once if it cannot be stopped.
func suspend() {
	resumed := make(chan os.Signal, 1)
	signal.Notify(resumed, syscall.SIGCONT)
	defer signal.Stop(resumed)
	if err := syscall.Kill(0, syscall.SIGTSTP); err != nil {
		return
	}
	select {
	case <-resumed:
	case <-time.After(resumeWait):
	}
}
