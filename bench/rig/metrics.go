package rig

import (
	"bufio"
	"context"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
)

// Metrics are what a daemon tells of itself, by name with its labels.
type Metrics map[string]float64

// Metrics asks a daemon that was started with Options.HTTP.
func (n *Node) Metrics(ctx context.Context) (Metrics, error) {
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+n.http+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, fmt.Errorf("ask %s for its metrics: %w", n.Name, err)
	}
	defer resp.Body.Close() // it was read
	all := make(Metrics)
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		line := lines.Text()
		at := strings.LastIndexByte(line, ' ')
		if at < 0 || line[0] == '#' {
			continue
		}
		if v, err := strconv.ParseFloat(line[at+1:], 64); err == nil {
			all[line[:at]] = v
		}
	}
	return all, lines.Err()
}

// Sum adds up a metric of all daemons.
func (c *Daemons) Sum(ctx context.Context, names ...string) (sum float64, err error) {
	for _, n := range c.Nodes {
		all, err := n.Metrics(ctx)
		if err != nil {
			return 0, err
		}
		for _, name := range names {
			v, ok := all[name]
			if !ok {
				return 0, fmt.Errorf("%s does not tell %s", n.Name, name)
			}
			sum += v
		}
	}
	return sum, nil
}

// Memory is what the daemons have in use for each of them, in bytes: heap and stacks. They are asked until their collectors have run twice,
// which answering brings about, and the least counts: hardly any of it is garbage. [LeanEnv] makes that sooner.
func (c *Daemons) Memory(ctx context.Context) (float64, error) {
	ctx, cancel := context.WithTimeout(ctx, 3*Patience)
	defer cancel()
	sum := 0.0
	for _, n := range c.Nodes {
		least, first := math.Inf(1), math.Inf(1)
		if err := Await(ctx, func() (bool, error) {
			all, err := n.Metrics(ctx)
			if err != nil {
				return false, err
			}
			least = min(least, all["go_memstats_heap_alloc_bytes"]+all["go_memstats_stack_inuse_bytes"])
			first = min(first, all["go_gc_duration_seconds_count"])
			return all["go_gc_duration_seconds_count"] >= first+2, nil
		}); err != nil {
			return 0, fmt.Errorf("ask %s until it has collected its garbage: %w", n.Name, err)
		}
		sum += least
	}
	return sum / float64(len(c.Nodes)), nil
}

// LeanEnv has a daemon collect its garbage often.
const LeanEnv = "GOGC=25"
