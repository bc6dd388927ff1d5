package rig

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// What is counted.
const (
	AllCalls   = "raw_syscalls:sys_enter"
	FutexCalls = "syscalls:sys_enter_futex"
	Switches   = "context-switches"
)

// CountCalls counts what processes do meanwhile, by perf, which slows them down. Nothing is counted where there is no perf.
func CountCalls(ctx context.Context, processes []*Child, meanwhile func() error) (map[string]float64, error) {
	path, err := exec.LookPath("perf")
	if err != nil {
		return map[string]float64{}, nil //nolint:nilerr // told by what is missing
	}
	pids := make([]string, len(processes))
	for i, c := range processes {
		pids[i] = strconv.Itoa(c.Cmd.Process.Pid)
	}
	events := []string{AllCalls, FutexCalls, Switches}
	counting := exec.CommandContext(ctx, path, "stat", "-x", ",", "-e", strings.Join(events, ","), "-p", strings.Join(pids, ","))
	var out bytes.Buffer
	counting.Stderr = &out
	if err := counting.Start(); err != nil {
		return nil, fmt.Errorf("start perf: %w", err)
	}
	err = meanwhile()
	if stopErr := counting.Process.Signal(os.Interrupt); stopErr != nil && !errors.Is(stopErr, os.ErrProcessDone) {
		err = errors.Join(err, stopErr)
	}
	var exit *exec.ExitError
	if waitErr := counting.Wait(); errors.As(waitErr, &exit) {
		if s, ok := exit.Sys().(syscall.WaitStatus); !ok || !s.Signaled() && s.ExitStatus() != 0 {
			return nil, errors.Join(err, fmt.Errorf("perf: %w: %s", waitErr, out.String()))
		}
	}
	if err != nil {
		return nil, err
	}
	return readCounts(out.Bytes(), events)
}

// readCounts reads the lines of perf: count, unit, event, and more.
func readCounts(text []byte, events []string) (map[string]float64, error) {
	in := csv.NewReader(bytes.NewReader(text))
	in.FieldsPerRecord, in.Comment = -1, '#'
	lines, err := in.ReadAll()
	if err != nil {
		return nil, fmt.Errorf("read what perf tells: %w", err)
	}
	counts := make(map[string]float64)
	for _, line := range lines {
		for _, event := range events {
			if len(line) > 2 && line[2] == event {
				if counts[event], err = strconv.ParseFloat(line[0], 64); err != nil {
					return nil, fmt.Errorf("perf does not count %s: %w", event, err)
				}
			}
		}
	}
	return counts, nil
}
