package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/opencluster/oclocks/conf"
	"github.com/opencluster/oclocks/subjects"
)

// lookPause is the time between two looks at whether something has come about.
const lookPause = 20 * time.Millisecond

// daemons is a cluster of daemons that are processes of their own, with default settings, on loopback.
type daemons struct {
	label  string // which build this is, if there are several
	binary string
	dir    string
	nodes  []*node
}

// node is one of them. Its directory and its addresses stay over its deaths.
type node struct {
	id, name, dir string
	listen, route string
	args          []string
	*child
}

// startCluster starts n daemons and returns when every bucket has its copies and the primaries are spread. args has further
// arguments of single nodes, by index.
func startCluster(ctx context.Context, binary string, n int, args map[int][]string) (c *daemons, err error) {
	c = &daemons{binary: binary, label: filepath.Base(binary)}
	if c.dir, err = os.MkdirTemp("", "oclocks-bench"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			c.stop()
		}
	}()
	addresses, err := freeAddresses(2 * n)
	if err != nil {
		return nil, err
	}
	for i := range n {
		name := fmt.Sprint("n", i+1)
		c.nodes = append(c.nodes, &node{name: name, dir: filepath.Join(c.dir, name), listen: addresses[2*i],
			route: addresses[2*i+1], args: args[i]})
	}
	if err := c.enroll(); err != nil {
		return nil, fmt.Errorf("make the directories of a cluster: %w", err)
	}
	for i := range c.nodes {
		if err := c.start(ctx, i); err != nil {
			return nil, err
		}
	}
	return c, c.settled(ctx)
}

// freeAddresses are addresses on loopback that nobody listened on a moment ago.
func freeAddresses(n int) ([]string, error) {
	var all []string
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("find a free port: %w", err)
		}
		defer l.Close() //nolint:gocritic // all are kept until the last is found
		all = append(all, l.Addr().String())
	}
	return all, nil
}

// enroll makes the directories of nodes that belong together.
func (c *daemons) enroll() error {
	var membership conf.Membership
	for i, n := range c.nodes {
		var err error
		if n.id, err = conf.NodeID(n.dir); err != nil {
			return err
		}
		if i > 0 {
			if _, err := membership.Enter(n.dir, n.id); err != nil {
				return err
			}
			continue
		}
		auth, err := conf.OpenAuth(n.dir)
		if err != nil {
			return err
		}
		if err := auth.EnsureZone(conf.DefaultZone); err != nil {
			return err
		}
		identity, err := conf.CreateIdentity(n.dir, "oclocks", n.id)
		if err != nil {
			return err
		}
		if membership, err = auth.Membership(identity.Authority(), map[string][]string{n.id: {n.route}}); err != nil {
			return err
		}
	}
	return nil
}

// start starts the i-th daemon, for the first time or again, and returns when it serves.
func (c *daemons) start(ctx context.Context, i int) error {
	n := c.nodes[i]
	args := []string{"--data", n.dir, "--node", n.name, "--listen", n.listen, "--http", "off", "--log-format", "json",
		"--cluster-listen", n.route}
	if i > 0 {
		var others []string
		for _, o := range c.nodes {
			if o != n {
				others = append(others, o.route)
			}
		}
		args = append(args, "--join", strings.Join(others, ","))
	}
	var err error
	n.child, err = spawn(exec.Command(c.binary, append(append(args, flags.args...), n.args...)...), n.dir+".log", `"msg":"serving"`)
	if err != nil {
		return fmt.Errorf("start %s: %w", n.name, err)
	}
	return n.serving(ctx)
}

// stop kills all daemons and removes their directories.
func (c *daemons) stop() {
	for _, n := range c.nodes {
		if n.child != nil {
			n.kill()
		}
	}
	if flags.keep {
		fmt.Fprintln(os.Stderr, "kept:", c.dir)
		return
	}
	os.RemoveAll(c.dir) // it is in the temporary directory
}

// only is a plain connection to one node, which stays with it.
func (c *daemons) only(i int) (*nats.Conn, error) {
	nc, err := nats.Connect(c.url(i), nats.IgnoreDiscoveredServers(), nats.MaxReconnects(-1), nats.ReconnectWait(lookPause))
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", c.nodes[i].name, err)
	}
	return nc, nil
}

func (c *daemons) url(i int) string { return "nats://" + c.nodes[i].listen }

// urls are the addresses of all nodes, beginning with the i-th.
func (c *daemons) urls(i int) string {
	var all []string
	for k := range c.nodes {
		all = append(all, c.url((i+k)%len(c.nodes)))
	}
	return strings.Join(all, ",")
}

// settled waits until all daemons are there, every bucket has a copy on each of them, and the primaries are spread.
func (c *daemons) settled(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 3*patience)
	defer cancel()
	nc, err := c.only(0)
	if err != nil {
		return err
	}
	defer nc.Close()
	var last error
	if err := await(ctx, func() (bool, error) { last = c.complete(nc); return last == nil, nil }); err != nil {
		return fmt.Errorf("the cluster does not settle: %w: %w", err, last)
	}
	return nil
}

// await looks again and again until it is done or fails, or ctx ends.
func await(ctx context.Context, look func() (done bool, err error)) error {
	tick := time.NewTicker(lookPause)
	defer tick.Stop()
	for {
		if done, err := look(); done || err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// complete tells what is not as it should be.
func (c *daemons) complete(nc *nats.Conn) error {
	all, err := c.look(nc)
	if err != nil {
		return err
	}
	up := 0
	for _, n := range all.Nodes {
		if n.Status == "up" && n.Answered {
			up++
		}
	}
	if up < len(c.nodes) || all.Leader == 0 || len(all.Buckets) > 0 {
		return fmt.Errorf("%d of %d nodes are up, %d leads, %d buckets lack something", up, len(c.nodes), all.Leader, len(all.Buckets))
	}
	primary, err := c.primaries(nc)
	if err != nil {
		return err
	}
	lo, hi := 1<<30, 0
	for i, n := range c.nodes {
		have := 0
		for _, p := range primary {
			if p == i {
				have++
			}
		}
		if slices.Contains(n.args, "--priority") {
			if have > 0 {
				return fmt.Errorf("%s is primary of %d buckets", n.name, have)
			}
			continue
		}
		lo, hi = min(lo, have), max(hi, have)
	}
	if hi-lo > 1 {
		return fmt.Errorf("nodes are primary of %d to %d buckets", lo, hi)
	}
	return nil
}

func (c *daemons) look(nc *nats.Conn) (*subjects.Cluster, error) {
	msg, err := nc.Request(subjects.SimpleSubject(subjects.OpCluster, subjects.Anyone), nil, patience)
	if err != nil {
		return nil, fmt.Errorf("look at the cluster: %w", err)
	}
	var all subjects.Cluster
	return &all, json.Unmarshal(msg.Data, &all)
}

// leader is the node that leads the control plane.
func (c *daemons) leader(nc *nats.Conn) (int, error) {
	all, err := c.look(nc)
	if err != nil {
		return 0, err
	}
	for _, n := range all.Nodes {
		if n.Number == all.Leader {
			return slices.IndexFunc(c.nodes, func(m *node) bool { return m.id == n.Node }), nil
		}
	}
	return 0, errors.New("nobody leads")
}

// primaries has for each bucket the node that is its primary, -1 if there is none.
func (c *daemons) primaries(nc *nats.Conn) ([]int, error) {
	msg, err := nc.Request(subjects.SimpleSubject(subjects.OpInfo, subjects.Anyone), nil, patience)
	if err != nil {
		return nil, fmt.Errorf("ask for the map of buckets: %w", err)
	}
	var info subjects.Info
	if err := info.DecodeJSON(msg.Data); err != nil {
		return nil, fmt.Errorf("read the map of buckets: %w", err)
	}
	all := make([]int, len(info.Map.Primary))
	for b, id := range info.Map.Primary {
		all[b] = slices.IndexFunc(c.nodes, func(n *node) bool { return n.id == id })
	}
	return all, nil
}

func (c *daemons) children() []*child {
	all := make([]*child, len(c.nodes))
	for i, n := range c.nodes {
		all[i] = n.child
	}
	return all
}

// child is a process whose output goes to a file.
type child struct {
	cmd   *exec.Cmd
	ready chan struct{} // closed when it has printed what it is waited for
	ended chan struct{}
}

// spawn starts a process. It dies with this one.
func spawn(cmd *exec.Cmd, logFile, sign string) (*child, error) {
	log, err := os.OpenFile(logFile, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	out, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	c := &child{cmd: cmd, ready: make(chan struct{}), ended: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		defer close(c.ended)
		defer log.Close()      // nothing of ours is in it
		runtime.LockOSThread() // the kernel takes the death of the thread that forked for that of the parent
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		if started <- err; err != nil {
			return
		}
		c.follow(io.TeeReader(out, log), sign)
		_ = cmd.Wait() // how it ended is in its state
	}()
	return c, <-started
}

func (c *child) follow(out io.Reader, sign string) {
	said := false
	for in := bufio.NewScanner(out); in.Scan(); {
		if !said && strings.Contains(in.Text(), sign) {
			close(c.ready)
			said = true
		}
	}
}

// serving waits until the process has said that it serves.
func (c *child) serving(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	select {
	case <-c.ready:
		return nil
	case <-c.ended:
		return fmt.Errorf("%s ended: %v", filepath.Base(c.cmd.Path), c.cmd.ProcessState)
	case <-ctx.Done():
		return fmt.Errorf("%s does not serve: %w", filepath.Base(c.cmd.Path), ctx.Err())
	}
}

// kill is kill -9.
func (c *child) kill() { c.end(syscall.SIGKILL) }

// end sends a signal and waits until the process is gone.
func (c *child) end(s syscall.Signal) {
	select {
	case <-c.ended:
		return
	default:
	}
	_ = c.cmd.Process.Signal(s) // it may end right now
	<-c.ended
}
