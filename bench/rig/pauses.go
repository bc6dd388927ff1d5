package rig

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"time"
)

// PausesEnv has a daemon tell of each collection of its garbage in its log.
const PausesEnv = "GODEBUG=gctrace=1"

// collection is such a line: two pauses with what the collector does beside the program's work between them.
var collection = regexp.MustCompile(`^gc \d+ @[^:]*: ([0-9.]+)\+[0-9.]+\+([0-9.]+) ms clock`)

// Pauses are those of the daemons' collectors, each exactly, since they were asked for the last time.
func (c *Daemons) Pauses() (all []time.Duration, err error) {
	for _, n := range c.Nodes {
		more, err := n.pauses()
		if err != nil {
			return nil, fmt.Errorf("read the log of %s: %w", n.Name, err)
		}
		all = append(all, more...)
	}
	return all, nil
}

func (n *Node) pauses() (all []time.Duration, err error) {
	log, err := os.Open(n.dir + ".log")
	if err != nil {
		return nil, err
	}
	defer log.Close() // it was read
	if _, err := log.Seek(n.read, io.SeekStart); err != nil {
		return nil, err
	}
	lines := bufio.NewReader(log)
	for {
		line, err := lines.ReadString('\n')
		if err == io.EOF {
			return all, nil // the rest is not a whole line yet
		}
		if err != nil {
			return nil, err
		}
		n.read += int64(len(line))
		found := collection.FindStringSubmatch(line)
		for i := 1; i < len(found); i++ {
			v, err := strconv.ParseFloat(found[i], 64)
			if err != nil {
				return nil, err
			}
			all = append(all, time.Duration(v*float64(time.Millisecond)))
		}
	}
}
