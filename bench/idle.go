package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

const (
	idleTime = 10 * time.Second
	idleGoal = 0.01

	clockTicks = 100 // of /proc/PID/stat in a second, on every Linux that Go runs on
)

// measureIdle measures what a cluster costs that nobody asks anything.
func measureIdle(ctx context.Context) ([]table, error) {
	paths, remove, err := binaries(ctx)
	if err != nil {
		return nil, err
	}
	defer remove()
	t := table{Title: "Three idle daemons", Columns: []string{"of a processor", "memory"}}
	for _, path := range paths {
		if err := idle(ctx, path, &t); err != nil {
			return nil, err
		}
	}
	t.note("Over %v; memory is what is resident. Goal: below %.2f.", idleTime, idleGoal)
	return []table{t}, nil
}

func idle(ctx context.Context, path string, t *table) error {
	d, err := startCluster(ctx, path, clusterNodes, nil)
	if err != nil {
		return err
	}
	defer d.stop()
	if err := rest(ctx, idleTime/2); err != nil { // what the start has left to do
		return err
	}
	var before []time.Duration
	for _, n := range d.nodes {
		used, _, err := usage(n.cmd.Process.Pid)
		if err != nil {
			return err
		}
		before = append(before, used)
	}
	begin := time.Now()
	if err := rest(ctx, idleTime); err != nil {
		return err
	}
	for i, n := range d.nodes {
		used, memory, err := usage(n.cmd.Process.Pid)
		if err != nil {
			return err
		}
		t.add(d.label+" "+n.name, value{float64(used-before[i]) / float64(time.Since(begin)), "ratio", "%.4f"}, mebibytes(memory))
	}
	return nil
}

func rest(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// processors is the processor time that processes have used.
func processors(all []*child) (sum time.Duration, err error) {
	for _, c := range all {
		used, _, err := usage(c.cmd.Process.Pid)
		if err != nil {
			return 0, err
		}
		sum += used
	}
	return sum, nil
}

// usage is the processor time that a process has used, and the bytes of its resident memory.
func usage(pid int) (used time.Duration, memory float64, err error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0, err
	}
	const utime, stime, rss = 11, 12, 21 // after the command's name
	_, rest, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(rest)
	if len(fields) <= rss {
		return 0, 0, errors.New("/proc has no such fields: this needs Linux")
	}
	var n [3]int64
	for i, at := range []int{utime, stime, rss} {
		if n[i], err = strconv.ParseInt(fields[at], 10, 64); err != nil {
			return 0, 0, err
		}
	}
	return time.Duration(n[0]+n[1]) * time.Second / clockTicks, float64(n[2]) * float64(os.Getpagesize()), nil
}
