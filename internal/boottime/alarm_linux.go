package boottime

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// fdAlarm is a timerfd on CLOCK_BOOTTIME and the goroutine that reads it.
type fdAlarm struct {
	fd   int // valid until close; os.File's own Fd would take it out of the poller
	file *os.File
	done chan struct{} // closed when the goroutine has ended
}

func newAlarm(ring func()) alarm {
	if a, err := newFdAlarm(ring); err == nil {
		return a
	}
	return newGoAlarm(ring) // no descriptor left, or a sandbox without timerfd
}

func newFdAlarm(ring func()) (*fdAlarm, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_BOOTTIME, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("create a timerfd: %w", err)
	}
	file := os.NewFile(uintptr(fd), "timerfd")
	if err := file.SetReadDeadline(time.Time{}); err != nil {
		// Not in the poller: a read would occupy a thread, and Close would not end it.
		return nil, errors.Join(fmt.Errorf("poll the timerfd: %w", err), file.Close())
	}
	a := &fdAlarm{fd: fd, file: file, done: make(chan struct{})}
	go a.read(ring)
	return a, nil
}

func (a *fdAlarm) arm(at int64) {
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(at)}
	// Fails only for a descriptor that is not a timerfd or for negative times, and the timer arms none of those.
	if err := unix.TimerfdSettime(a.fd, unix.TFD_TIMER_ABSTIME, &spec, nil); err != nil {
		panic("boottime: arm a timerfd: " + err.Error())
	}
}

func (a *fdAlarm) read(ring func()) {
	defer close(a.done)
	var expirations [8]byte
	for {
		if _, err := a.file.Read(expirations[:]); err != nil {
			return // closed: nothing else ends the read of a timerfd
		}
		ring()
	}
}

func (a *fdAlarm) close() {
	// The error says at most that the file was closed before, and nothing but this function closes it.
	_ = a.file.Close()
	<-a.done
}
