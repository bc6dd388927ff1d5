package rig

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

const clockTicks = 100 // of /proc/PID/stat in a second, on every Linux that Go runs on

// Processors is the processor time that processes have used.
func Processors(all []*Child) (sum time.Duration, err error) {
	for _, c := range all {
		used, _, err := Usage(c.Cmd.Process.Pid)
		if err != nil {
			return 0, err
		}
		sum += used
	}
	return sum, nil
}

// Usage is the processor time that a process has used, and the bytes of its resident memory.
func Usage(pid int) (used time.Duration, memory float64, err error) {
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
