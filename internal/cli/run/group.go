package run

import (
	"errors"
	"os"
	"syscall"
)

// group is a process group, by the id of its leader. The id cannot be given to somebody else while one member lives or is
// not yet waited for.
type group int

// signal sends sig to everybody in the group. A group that has gone meanwhile is what was wanted, and members that may not
// be signalled are seen by alive, so there is no error to tell.
func (g group) signal(sig syscall.Signal) {
	_ = syscall.Kill(-int(g), sig) // see above
}

// forward passes on a signal that this process got.
func (g group) forward(sig os.Signal) {
	if s, ok := sig.(syscall.Signal); ok {
		g.signal(s)
	}
}

// alive says whether anybody is left, be it as a zombie.
func (g group) alive() bool {
	return !errors.Is(syscall.Kill(-int(g), 0), syscall.ESRCH)
}

// reap waits for those members whose parents died and who became children of this process. It must not be called before
// the leader was waited for: it would take its status.
func (g group) reap() {
	for {
		pid, err := syscall.Wait4(-int(g), nil, syscall.WNOHANG, nil)
		if pid <= 0 && !errors.Is(err, syscall.EINTR) {
			return
		}
	}
}
