package local

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"github.com/opencluster/oclocks/conf"
)

// child is a daemon that runs.
type child struct {
	pid   int
	ended chan struct{} // closed when it has ended
	state *os.ProcessState
}

// spawn starts a daemon. It dies with this process.
func spawn(path string, n *node) (*child, error) {
	log, err := os.OpenFile(n.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("the log of %s: %w", n.name, err)
	}
	cmd := exec.Command(path, "--config", n.config)
	cmd.Env = environ()
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // so that Ctrl-C reaches this process only, and the stop is orderly
	dieWithParent(cmd.SysProcAttr)
	c := &child{ended: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		defer log.Close() // nothing of ours is in it
		defer close(c.ended)
		// The kernel takes the death of the thread that forked for that of the parent, so it has to live as long.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		if err == nil {
			c.pid = cmd.Process.Pid
		}
		started <- err
		if err != nil {
			return
		}
		_ = cmd.Wait() // how it ended is in the state
		c.state = cmd.ProcessState
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", n.name, err)
	}
	return c, nil
}

// environ is this process's without the daemon's settings: those would win over the configuration files, and be the same for
// all nodes.
func environ() []string {
	ours := make(map[string]bool)
	for _, key := range conf.Keys() {
		ours["OCLOCKS_"+strings.ToUpper(key)] = true
	}
	return slices.DeleteFunc(os.Environ(), func(e string) bool {
		name, _, _ := strings.Cut(e, "=")
		return ours[name]
	})
}

// over says whether it has ended.
func (c *child) over() bool {
	select {
	case <-c.ended:
		return true
	default:
		return false
	}
}

// signal sends a signal to it and what it has started.
func (c *child) signal(s syscall.Signal) {
	if !c.over() {
		_ = syscall.Kill(-c.pid, s) // it may end right now
	}
}

// how says how it ended.
func (c *child) how() string {
	if c.state == nil {
		return "gone"
	}
	return c.state.String()
}

// lastLines are the last lines of a file, for a message.
func lastLines(path string, lines int) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close() // only read
	const most = 16 << 10
	if end, err := f.Seek(0, io.SeekEnd); err != nil || end > most {
		if _, err := f.Seek(-most, io.SeekEnd); err != nil {
			return ""
		}
	} else if _, err := f.Seek(0, io.SeekStart); err != nil {
		return ""
	}
	text, err := io.ReadAll(f)
	if err != nil {
		return ""
	}
	all := strings.Split(string(bytes.TrimSpace(text)), "\n")
	return "  " + strings.Join(all[max(0, len(all)-lines):], "\n  ")
}
