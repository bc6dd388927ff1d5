package cli

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// caught are the signals that are taken; while a command runs they are passed on to it.
var caught = []os.Signal{
	syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2,
}

// CatchSignals takes the signals from now on. One that this process was started to ignore (nohup) stays ignored.
func (a *App) CatchSignals() {
	a.signals = make(chan os.Signal, 16)
	for _, sig := range caught {
		if !signal.Ignored(sig) {
			signal.Notify(a.signals, sig)
		}
	}
}

// ends says whether a signal is meant to end a process that runs no command.
func ends(sig os.Signal) bool { return sig != syscall.SIGUSR1 && sig != syscall.SIGUSR2 }

// interruptible derives a context that a signal ends, with *interrupted as its cause. After stop has returned, signals are
// left for others to take.
func (a *App) interruptible(ctx context.Context) (derived context.Context, stop func()) {
	derived, cancel := context.WithCancelCause(ctx)
	quit, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		for {
			select {
			case sig := <-a.signals:
				if ends(sig) {
					cancel(&interrupted{sig})
					return
				}
			case <-quit:
				return
			}
		}
	}()
	return derived, func() {
		close(quit)
		<-over
	}
}

// signalCode is the exit code of what a signal has ended.
func signalCode(sig os.Signal) int {
	if s, ok := sig.(syscall.Signal); ok {
		return 128 + int(s)
	}
	return CodeRefused
}
