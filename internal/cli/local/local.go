package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/opencluster/oclocks/conf"
)

const (
	lookEvery    = 20 * time.Millisecond // whether a node serves
	restartPause = time.Second
	logLines     = 5 // of a node that has ended, in the message
	// sameSignal is how long after a signal another one counts as the same: timeout(1) sends it to the process and its group.
	sameSignal = 500 * time.Millisecond
)

// cluster is one that runs.
type cluster struct {
	o     *Options
	nodes []*node
	ended chan *node // a child has ended
	ready bool       // what to try was told
}

// Run runs the cluster until a signal comes or ctx ends, and gives nil then. Errors: ErrInUse, ErrPort, ErrNodes, what is
// wrong with the directory or the daemon; ErrEnded when all nodes have ended by themselves, or one before it served.
func Run(ctx context.Context, o Options) (err error) {
	if err := o.validate(); err != nil {
		return err
	}
	if o.Dir, err = filepath.Abs(o.Dir); err != nil {
		return fmt.Errorf("the directory of the cluster: %w", err)
	}
	release, err := occupy(o.Dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	if err := count(&o); err != nil {
		return err
	}
	c := &cluster{o: &o, nodes: layout(&o), ended: make(chan *node, 2*MaxNodes)}
	if err := checkPorts(c.nodes); err != nil {
		return err
	}
	before, err := prepare(c.nodes)
	if err != nil {
		return err
	}
	defer c.stop()
	if err := c.begin(ctx, before); err != nil {
		if errors.Is(err, errStopped) {
			return nil
		}
		return err
	}
	c.tell()
	return c.watch(ctx)
}

// errStopped says that a signal came, or the context ended.
var errStopped = errors.New("stopped")

// begin starts the nodes and waits until all serve. In a new cluster one after the other: the first one founds it, which the
// others need to be there, and they get their numbers in the order of their names. Nodes that were in a cluster before need
// each other, so that they start together.
func (c *cluster) begin(ctx context.Context, before bool) error {
	waves := [][]*node{c.nodes}
	if !before {
		waves = slices.Collect(slices.Chunk(c.nodes, 1))
	}
	for _, wave := range waves {
		for _, n := range wave {
			if err := c.start(n); err != nil {
				return err
			}
		}
		if err := c.serving(ctx, wave); err != nil {
			return err
		}
	}
	return nil
}

// start starts a node.
func (c *cluster) start(n *node) error {
	if err := conf.RemoveRunning(n.data); err != nil {
		return err
	}
	run, err := spawn(c.o.Daemon, n)
	if err != nil {
		return err
	}
	n.run = run
	go func() {
		<-run.ended
		c.ended <- n
	}()
	return nil
}

// serving waits until nodes serve, and tells each that does.
func (c *cluster) serving(ctx context.Context, nodes []*node) error {
	deadline := time.NewTimer(c.o.Start)
	defer deadline.Stop()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	told := make(map[*node]bool, len(nodes))
	for {
		for _, n := range nodes {
			if running, err := conf.ReadRunning(n.data); err == nil && running.Serving && running.PID == n.run.pid && !told[n] {
				told[n] = true
				if err := c.announce(n, running); err != nil {
					return err
				}
			}
		}
		if len(told) == len(nodes) {
			return nil
		}
		select {
		case <-look.C:
		case n := <-c.ended:
			return fmt.Errorf("%s %w before it served (%s); the end of its log, %s:\n%s", n.name, ErrEnded, n.run.how(), n.log, lastLines(n.log, logLines))
		case <-c.o.Signals:
			return errStopped
		case <-ctx.Done():
			return errStopped
		case <-deadline.C:
			return c.late(nodes, told)
		}
	}
}

func (c *cluster) late(nodes []*node, told map[*node]bool) error {
	var b strings.Builder
	for _, n := range nodes {
		if !told[n] {
			fmt.Fprintf(&b, "\n%s does not serve; the end of its log, %s:\n%s", n.name, n.log, lastLines(n.log, logLines))
		}
	}
	return fmt.Errorf("not all nodes serve after %s:%s", c.o.Start, b.String())
}

// announce prints the line of a node that serves.
func (c *cluster) announce(n *node, r conf.Running) error {
	line, err := json.Marshal(struct {
		Node string `json:"node"`
		Name string `json:"name"`
		PID  int    `json:"pid"`
		URL  string `json:"url"`
		HTTP string `json:"http,omitempty"`
	}{n.id, n.name, r.PID, "nats://" + n.client, strings.TrimPrefix(n.http, "off")})
	if err == nil {
		_, err = fmt.Fprintf(c.o.Out, "%s\n", line)
	}
	if err != nil {
		return fmt.Errorf("tell that %s serves: %w", n.name, err)
	}
	return nil
}

// tell says what to try.
func (c *cluster) tell() {
	urls := make([]string, len(c.nodes))
	for i, n := range c.nodes {
		urls[i] = "nats://" + n.client
	}
	last := c.nodes[len(c.nodes)-1]
	fmt.Fprintf(c.o.Out, `
All %d nodes serve. In another terminal:

%s  export NATS_URL=%s
  oclocks-cli cluster --watch                        # who leads, who is primary of what
  oclocks-cli lock -w 10s orders/4711 -- sleep 60    # hold a lock
  oclocks-cli query orders/4711                      # who holds it
  kill -9 %-6d                                     # lose %s: the locks stay
  oclocks-daemon --config %s    # and bring it back
  oclocks-config --config %s nodes

The logs are %s. Ctrl-C stops all nodes; the same command starts them again with their locks.
`, len(c.nodes), pathLine(c.o.Daemon), strings.Join(urls, ","), last.run.pid, last.name, last.config, c.nodes[0].config, filepath.Join(c.o.Dir, "node*.log"))
	c.ready = true
}

// pathLine is what a shell needs to find the commands beside the daemon, "" if it finds them already.
func pathLine(daemon string) string {
	daemon, err := filepath.Abs(daemon)
	if err != nil {
		return ""
	}
	if found, err := exec.LookPath(filepath.Base(daemon)); err == nil && found == daemon {
		return ""
	}
	return fmt.Sprintf("  export PATH=\"%s:$PATH\"\n", filepath.Dir(daemon))
}

// watch tells of nodes that end, until a signal.
func (c *cluster) watch(ctx context.Context) error {
	again := make(chan *node, MaxNodes)
	for {
		select {
		case n := <-c.ended:
			fmt.Fprintf(c.o.Log, "%s (pid %d) ended: %s\n", n.name, n.run.pid, n.run.how())
			switch {
			case c.o.Restart:
				time.AfterFunc(restartPause, func() { again <- n })
			case c.none():
				return fmt.Errorf("the last node %w; the end of its log, %s:\n%s", ErrEnded, n.log, lastLines(n.log, logLines))
			default:
				fmt.Fprintf(c.o.Log, "  bring it back with: oclocks-daemon --config %s\n", n.config)
			}
		case n := <-again:
			if err := c.start(n); err != nil {
				return err
			}
			fmt.Fprintf(c.o.Log, "%s is started again as pid %d\n", n.name, n.run.pid)
		case <-c.o.Signals:
			return nil
		case <-ctx.Done():
			return nil
		}
	}
}

// none says whether no node runs.
func (c *cluster) none() bool {
	for _, n := range c.nodes {
		if n.run != nil && !n.run.over() {
			return false
		}
	}
	return true
}

// stop stops the nodes in an orderly way; another signal, or too long a time, kills them.
func (c *cluster) stop() {
	if c.none() {
		return
	}
	if c.ready {
		fmt.Fprintln(c.o.Log, "stopping all nodes; once more kills them")
	}
	c.each(func(r *child) { r.signal(syscall.SIGTERM) })
	began := time.Now()
	patience := time.NewTimer(c.o.Stop)
	defer patience.Stop()
	kill := func() { c.each(func(r *child) { r.signal(syscall.SIGKILL) }) }
	for !c.none() {
		select {
		case <-c.ended:
		case <-patience.C:
			fmt.Fprintf(c.o.Log, "not all nodes have stopped within %s: killing them\n", c.o.Stop)
			kill()
		case <-c.o.Signals:
			if time.Since(began) > c.o.same {
				kill()
			}
		}
	}
}

func (c *cluster) each(do func(*child)) {
	for _, n := range c.nodes {
		if n.run != nil {
			do(n.run)
		}
	}
}
