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

// passedMetric is what a daemon calls the number of requests that it has passed on over direct links.
const passedMetric = `oclocks_passed_on_total{way="direct"}`

// passed is what each process has said last.
type passed struct {
	mu   sync.Mutex
	each map[*daemons.Process]int
}

func (p *passed) set(process *daemons.Process, n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.each == nil {
		p.each = make(map[*daemons.Process]int)
	}
	p.each[process] = max(p.each[process], n)
}

func (p *passed) sum() (sum int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, n := range p.each { // order: they are added
		sum += n
	}
	return sum
}

// metrics is where a node tells its figures.
func (n *node) metrics() string { return fmt.Sprint(daemons.Address(n.host), ":", httpPort) }

// countPassed asks the nodes now and then how many requests they have passed on, until ctx ends.
func (r *run) countPassed(ctx context.Context) {
	for sleep(ctx, time.Second) {
		for _, n := range r.members() {
			n.mu.Lock()
			process := n.process
			n.mu.Unlock()
			if !n.runs() {
				continue
			}
			bounded, cancel := context.WithTimeout(ctx, askTime)
			passed, err := readPassed(bounded, n.metrics())
			cancel()
			if err == nil {
				r.passed.set(process, passed)
			}
		}
	}
}

// readPassed asks a daemon how many requests it has passed on over direct links.
func readPassed(ctx context.Context, address string) (int, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/metrics", nil)
	if err != nil {
		return 0, fmt.Errorf("ask for metrics: %w", err)
	}
	req.Close = true // a connection that is kept would be one to a process that is no more
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, fmt.Errorf("ask for metrics: %w", err)
	}
	defer answer.Body.Close()
	in := bufio.NewScanner(answer.Body)
	for in.Scan() {
		if text, found := strings.CutPrefix(in.Text(), passedMetric+" "); found {
			n, err := strconv.ParseFloat(text, 64)
			if err != nil {
				return 0, fmt.Errorf("ask for metrics: %w", err)
			}
			return int(n), nil
		}
	}
	return 0, fmt.Errorf("%s has no metric %s: %w", address, passedMetric, in.Err())
}
