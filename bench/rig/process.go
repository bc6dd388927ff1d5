package rig

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/opencluster/oclocks/internal/e2e/daemons"
)

const (
	// LookPause is the time between two looks at whether something has come about.
	LookPause = 20 * time.Millisecond
	// Patience bounds every wait.
	Patience = 20 * time.Second
)

// Child is a process whose output goes to a file.
type Child struct {
	Cmd   *exec.Cmd
	ready chan struct{} // closed when it has printed what it is waited for
	ended chan struct{}
	last  string // line that it printed; to be read when it has ended
}

// Spawn starts a process, which is ready when it has printed the sign. It dies with this one.
func Spawn(cmd *exec.Cmd, logFile, sign string) (*Child, error) {
	log, err := os.OpenFile(logFile, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	out, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if cmd.Stdout == nil {
		cmd.Stdout = cmd.Stderr
	}
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid, cmd.SysProcAttr.Pdeathsig = true, syscall.SIGKILL
	c := &Child{Cmd: cmd, ready: make(chan struct{}), ended: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		defer close(c.ended)
		defer log.Close()      // nothing of ours is in it
		runtime.LockOSThread() // the kernel takes the death of the thread that forked for that of the parent
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		if started <- err; err != nil {
			return
		}
		c.follow(io.TeeReader(out, log), sign)
		_ = cmd.Wait() // how it ended is in its state
	}()
	return c, <-started
}

func (c *Child) follow(out io.Reader, sign string) {
	said := false
	for in := bufio.NewScanner(out); in.Scan(); {
		c.last = in.Text()
		if !said && strings.Contains(in.Text(), sign) {
			close(c.ready)
			said = true
		}
	}
}

// Serving waits until the process has said that it serves.
func (c *Child) Serving(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 3*Patience) // a thousand zones take a while
	defer cancel()
	select {
	case <-c.ready:
		return nil
	case <-c.ended:
		return fmt.Errorf("%s ended: %v: %s", filepath.Base(c.Cmd.Path), c.Cmd.ProcessState, c.last)
	case <-ctx.Done():
		return fmt.Errorf("%s does not serve: %w", filepath.Base(c.Cmd.Path), ctx.Err())
	}
}

// Kill is kill -9.
func (c *Child) Kill() { c.End(syscall.SIGKILL) }

// End sends a signal and waits until the process is gone.
func (c *Child) End(s syscall.Signal) {
	select {
	case <-c.ended:
		return
	default:
	}
	_ = c.Cmd.Process.Signal(s) // it may end right now
	<-c.ended
}

// FreeAddresses are addresses on loopback that nobody listened on a moment ago.
func FreeAddresses(n int) ([]string, error) {
	ports, err := daemons.FreePorts(n)
	if err != nil {
		return nil, err
	}
	all := make([]string, n)
	for i, port := range ports {
		all[i] = fmt.Sprint("127.0.0.1:", port)
	}
	return all, nil
}

// Await looks again and again until it is done or fails, or ctx ends.
func Await(ctx context.Context, look func() (done bool, err error)) error {
	tick := time.NewTicker(LookPause)
	defer tick.Stop()
	for {
		if done, err := look(); done || err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
