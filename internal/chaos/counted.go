package chaos

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/opencluster/oclocks/internal/e2e/daemons"
)

// counts is what a daemon says in its metrics of the requests that have come to it.
type counts struct {
	passed  int // it has passed on over direct links
	bundled int // have come with others in one message
}

// of gives where a metric is kept, nil if it is of no interest.
func (c *counts) of(metric string) *int {
	switch metric {
	case `oclocks_passed_on_total{way="direct"}`:
		return &c.passed
	case "oclocks_bundled_requests_total":
		return &c.bundled
	}
	return nil
}

// counted is what each process has said last.
type counted struct {
	mu   sync.Mutex
	each map[*daemons.Process]counts
}

func (c *counted) set(process *daemons.Process, n counts) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.each == nil {
		c.each = make(map[*daemons.Process]counts)
	}
	old := c.each[process]
	c.each[process] = counts{passed: max(old.passed, n.passed), bundled: max(old.bundled, n.bundled)}
}

func (c *counted) sum() (sum counts) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range c.each { // order: they are added
		sum.passed += n.passed
		sum.bundled += n.bundled
	}
	return sum
}

// metrics is where a node tells its figures.
func (n *node) metrics() string { return fmt.Sprint(daemons.Address(n.host), ":", httpPort) }

// count asks the nodes now and then what they have counted, until ctx ends.
func (r *run) count(ctx context.Context) {
	for sleep(ctx, time.Second) {
		for _, node := range r.members() {
			node.mu.Lock()
			process := node.process
			node.mu.Unlock()
			if !node.runs() {
				continue
			}
			bounded, cancel := context.WithTimeout(ctx, askTime)
			n, err := readCounts(bounded, node.metrics())
			cancel()
			if err == nil {
				r.counted.set(process, n)
			}
		}
	}
}

// readCounts asks a daemon what it has counted.
func readCounts(ctx context.Context, address string) (all counts, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/metrics", nil)
	if err != nil {
		return all, fmt.Errorf("ask for metrics: %w", err)
	}
	req.Close = true // a connection that is kept would be one to a process that is no more
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		return all, fmt.Errorf("ask for metrics: %w", err)
	}
	defer answer.Body.Close()
	found := 0
	in := bufio.NewScanner(answer.Body)
	for in.Scan() {
		metric, text, _ := strings.Cut(in.Text(), " ")
		count := all.of(metric)
		if count == nil {
			continue
		}
		n, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return all, fmt.Errorf("ask for metrics: %w", err)
		}
		*count = int(n)
		found++
	}
	if err := in.Err(); err != nil {
		return all, fmt.Errorf("ask for metrics: %w", err)
	}
	if found != 2 {
		return all, fmt.Errorf("ask for metrics: %s tells %d of the 2 that are counted", address, found)
	}
	return all, nil
}
