package daemons

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"
)

// Process is a child that prints one JSON object a line. The lines are kept in memory.
type Process struct {
	Cmd   *exec.Cmd
	ended chan struct{} // closed when it prints no more

	mu    sync.Mutex
	keep  int // lines, 0: all
	lines []map[string]any
	gone  int           // lines that were kept once
	seen  int           // lines that Find has looked at, with those that are gone
	more  chan struct{} // closed when there is another line, or no more will come
	over  bool

	reap sync.Once
}

// Pipe is what of a command's output has the JSON lines: (*exec.Cmd).StdoutPipe or (*exec.Cmd).StderrPipe.
type Pipe func(*exec.Cmd) (io.ReadCloser, error)

// Output says what becomes of what a child prints, besides that its lines can be waited for.
type Output struct {
	File string // everything that it prints is added to this file; "": to none
	Keep int    // so many lines are kept in memory, the newest; 0: all
}

// Start starts a command and reads the JSON lines that it prints. The child is killed when this process ends, whatever ends it.
func Start(cmd *exec.Cmd, pipe Pipe, output Output) (*Process, error) {
	out, err := pipe(cmd)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", filepath.Base(cmd.Path), err)
	}
	var file *os.File
	if output.File != "" {
		if file, err = os.OpenFile(output.File, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644); err != nil { //nolint:gosec // a log for people
			return nil, fmt.Errorf("keep what %s prints: %w", filepath.Base(cmd.Path), err)
		}
	}
	dieWithParent(cmd)
	if err := cmd.Start(); err != nil {
		if file != nil {
			file.Close()
		}
		return nil, fmt.Errorf("start %s: %w", filepath.Base(cmd.Path), err)
	}
	p := &Process{Cmd: cmd, ended: make(chan struct{}), more: make(chan struct{}), keep: output.Keep}
	go p.read(out, file)
	return p, nil
}

func (p *Process) read(out io.Reader, file *os.File) {
	defer close(p.ended)
	if file != nil {
		defer file.Close()
		out = io.TeeReader(out, file)
	}
	in := bufio.NewScanner(out)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		var line map[string]any
		if json.Unmarshal(in.Bytes(), &line) == nil {
			p.said(line)
		}
	}
	p.said(nil)
}

// said notes a line; nil: there will be no more.
func (p *Process) said(line map[string]any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if line == nil {
		p.over = true
	} else {
		p.lines = append(p.lines, line)
	}
	if p.keep > 0 && len(p.lines) > 2*p.keep {
		p.gone += len(p.lines) - p.keep
		p.lines = slices.Clone(p.lines[len(p.lines)-p.keep:])
	}
	close(p.more)
	p.more = make(chan struct{})
}

// Find waits for a line after the one that the last call gave; nil if it does not come in time, or the process ends before.
func (p *Process) Find(patience time.Duration, ok func(line map[string]any) bool) map[string]any {
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	for {
		p.mu.Lock()
		for p.seen = max(p.seen, p.gone); p.seen < p.gone+len(p.lines); {
			line := p.lines[p.seen-p.gone]
			if p.seen++; ok(line) {
				p.mu.Unlock()
				return line
			}
		}
		more, over := p.more, p.over
		p.mu.Unlock()
		if over {
			return nil
		}
		select {
		case <-more:
		case <-timeout.C:
			return nil
		}
	}
}

// Has says whether it has printed such a line, of those that are kept.
func (p *Process) Has(ok func(line map[string]any) bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.ContainsFunc(p.lines, ok)
}

// Signal sends a signal; false: the process has ended.
func (p *Process) Signal(s syscall.Signal) bool {
	err := p.Cmd.Process.Signal(s)
	return err == nil || !errors.Is(err, os.ErrProcessDone)
}

// Ended is closed when the process has closed its output, which is when it ends.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Kill is kill -9, and waits until the process is gone.
func (p *Process) Kill() {
	p.Signal(syscall.SIGKILL)
	p.Wait()
}

// Wait waits until the process is gone. How it ended is in Cmd.ProcessState then.
func (p *Process) Wait() {
	<-p.ended
	p.reap.Do(func() { p.Cmd.Wait() }) //nolint:errcheck // how it ended is asked of ProcessState
}
