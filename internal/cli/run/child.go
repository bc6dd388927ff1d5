package run

import (
	"errors"
	"fmt"
	"runtime"
	"syscall"
)

// child is the command's own process, the leader of its group.
type child struct {
	group   group
	stopped chan syscall.Signal     // the command was stopped by this signal
	exited  chan syscall.WaitStatus // delivers once

	reaped bool // exited has been read; owned by the caller of Run, as status is
	status syscall.WaitStatus
}

// start starts the command. The goroutine that it leaves behind ends with the command.
func start(job *Job) (*child, error) {
	attr := &syscall.ProcAttr{Env: job.Env, Sys: &syscall.SysProcAttr{Setpgid: true}}
	for _, f := range job.Files {
		attr.Files = append(attr.Files, f.Fd())
	}
	if job.TTY != nil && job.Foreground {
		attr.Sys.Foreground = true
		attr.Sys.Ctty = int(job.TTY.Fd())
	}
	dieWithParent(attr.Sys)

	c := &child{stopped: make(chan syscall.Signal, 1), exited: make(chan syscall.WaitStatus, 1)}
	started := make(chan error, 1)
	go c.live(job, attr, started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("starting %s: %w", job.Path, err)
	}
	return c, nil
}

// live forks the command and waits for it, all on one OS thread: the kernel counts the death of the *thread* that forked
// as the death of the parent, and the Go runtime may end a thread at any time, unless a goroutine is locked to it
// (golang/go#27505).
func (c *child) live(job *Job, attr *syscall.ProcAttr, started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	pid, err := syscall.ForkExec(job.Path, job.Args, attr)
	c.group = group(pid)
	started <- err
	if err != nil {
		return
	}
	for {
		var status syscall.WaitStatus
		_, err := syscall.Wait4(pid, &status, syscall.WUNTRACED, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil: // cannot be: the child is ours and nobody else waits for it
			c.exited <- status
			return
		case status.Stopped():
			select {
			case c.stopped <- status.StopSignal():
			default: // an earlier stop has not been looked at yet, and looking once is enough
			}
		default:
			c.exited <- status
			return
		}
	}
}

// over says whether the command and everybody of its group are gone.
func (c *child) over() bool {
	if !c.reaped {
		return false
	}
	c.group.reap()
	return !c.group.alive()
}
