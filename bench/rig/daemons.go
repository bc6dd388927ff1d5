package rig

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/opencluster/oclocks/conf"
	"github.com/opencluster/oclocks/subjects"
)

// Daemons is a cluster of daemons that are processes of their own, with default settings, on loopback.
type Daemons struct {
	Label  string // which build this is, if there are several
	binary string
	opts   Options
	dir    string
	users  []string // by zone
	Nodes  []*Node
}

// Node is one of them. Its directory and its addresses stay over its deaths.
type Node struct {
	id, Name, dir string
	listen, route string
	http          string // address of the metrics, "off" if nobody asks for them
	args          []string
	read          int64 // bytes of its log that Pauses has read
	*Child
}

// Options of a cluster.
type Options struct {
	Args   []string         // further arguments of all daemons
	ArgsOf map[int][]string // of single ones, by index
	Env    []string         // further environment of all
	Zones  int              // how many zones with users there are beside the open one, named as ZoneName says
	HTTP   bool             // the daemons tell their metrics
	Keep   bool             // the directories, with the logs
}

// StartCluster starts n daemons and returns when every bucket has its copies and the primaries are spread.
func StartCluster(ctx context.Context, binary string, n int, opts Options) (_ *Daemons, err error) {
	c := &Daemons{binary: binary, opts: opts, Label: filepath.Base(binary)}
	if c.dir, err = os.MkdirTemp("", "oclocks-bench"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			c.Stop()
		}
	}()
	addresses, err := FreeAddresses(3 * n)
	if err != nil {
		return nil, err
	}
	for i := range n {
		name := fmt.Sprint("n", i+1)
		node := &Node{Name: name, dir: filepath.Join(c.dir, name), listen: addresses[3*i], route: addresses[3*i+1], http: "off",
			args: opts.ArgsOf[i]}
		if opts.HTTP {
			node.http = addresses[3*i+2]
		}
		c.Nodes = append(c.Nodes, node)
	}
	if err := c.enroll(); err != nil {
		return nil, fmt.Errorf("make the directories of a cluster: %w", err)
	}
	for i := range c.Nodes {
		if err := c.Start(ctx, i); err != nil {
			return nil, err
		}
	}
	return c, c.Settled(ctx)
}

// enroll makes the directories of nodes that belong together.
func (c *Daemons) enroll() error {
	var membership conf.Membership
	for i, n := range c.Nodes {
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
		auth, err := c.zones()
		if err != nil {
			return err
		}
		identity, err := conf.CreateIdentity(n.dir, "oclocks", n.id)
		if err != nil {
			return err
		}
		if membership, err = auth.Membership(identity.Authority(), map[string][]string{n.id: {n.route}}); err != nil {
			return err
		}
		file, err := conf.OpenAuth(n.dir)
		if err != nil {
			return err
		}
		if err := os.WriteFile(file.File(), membership.Auth, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// Start starts the i-th daemon, for the first time or again, and returns when it serves.
func (c *Daemons) Start(ctx context.Context, i int) error {
	n := c.Nodes[i]
	args := []string{"--data", n.dir, "--node", n.Name, "--listen", n.listen, "--http", n.http, "--log-format", "json",
		"--cluster-listen", n.route}
	if i == 0 && c.opts.Zones > 0 {
		args = append(args, "--config", c.config())
	}
	if i > 0 {
		var others []string
		for _, o := range c.Nodes {
			if o != n {
				others = append(others, o.route)
			}
		}
		args = append(args, "--join", strings.Join(others, ","))
	}
	cmd := exec.Command(c.binary, append(append(args, c.opts.Args...), n.args...)...)
	cmd.Env = append(os.Environ(), c.opts.Env...)
	var err error
	n.Child, err = Spawn(cmd, n.dir+".log", `"msg":"serving"`)
	if err != nil {
		return fmt.Errorf("start %s: %w", n.Name, err)
	}
	return n.Serving(ctx)
}

// Stop kills all daemons and removes their directories.
func (c *Daemons) Stop() {
	for _, n := range c.Nodes {
		if n.Child != nil {
			n.Kill()
		}
	}
	if c.opts.Keep {
		fmt.Fprintln(os.Stderr, "kept:", c.dir)
		return
	}
	os.RemoveAll(c.dir) // it is in the temporary directory
}

// Only is a plain connection to one node, which stays with it.
func (c *Daemons) Only(i int) (*nats.Conn, error) {
	nc, err := nats.Connect(c.URL(i), nats.IgnoreDiscoveredServers(), nats.MaxReconnects(-1), nats.ReconnectWait(LookPause))
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", c.Nodes[i].Name, err)
	}
	return nc, nil
}

// URL is the address of the i-th node for clients.
func (c *Daemons) URL(i int) string { return "nats://" + c.Nodes[i].listen }

// URLs are the addresses of all nodes, beginning with the i-th.
func (c *Daemons) URLs(i int) string {
	var all []string
	for k := range c.Nodes {
		all = append(all, c.URL((i+k)%len(c.Nodes)))
	}
	return strings.Join(all, ",")
}

// Settled waits until all daemons are there, every bucket has a copy on each of them, and the primaries are spread.
func (c *Daemons) Settled(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 3*Patience)
	defer cancel()
	nc, err := c.Only(0)
	if err != nil {
		return err
	}
	defer nc.Close()
	var last error
	if err := Await(ctx, func() (bool, error) { last = c.complete(nc); return last == nil, nil }); err != nil {
		return fmt.Errorf("the cluster does not settle: %w: %w", err, last)
	}
	return nil
}

// complete tells what is not as it should be.
func (c *Daemons) complete(nc *nats.Conn) error {
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
	if up < len(c.Nodes) || all.Leader == 0 || len(all.Buckets) > 0 {
		return fmt.Errorf("%d of %d nodes are up, %d leads, %d buckets lack something", up, len(c.Nodes), all.Leader, len(all.Buckets))
	}
	primary, err := c.Primaries(nc)
	if err != nil {
		return err
	}
	lo, hi := 1<<30, 0
	for i, n := range c.Nodes {
		have := 0
		for _, p := range primary {
			if p == i {
				have++
			}
		}
		if slices.Contains(n.args, "--priority") {
			if have > 0 {
				return fmt.Errorf("%s is primary of %d buckets", n.Name, have)
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

func (c *Daemons) look(nc *nats.Conn) (*subjects.Cluster, error) {
	msg, err := nc.Request(subjects.SimpleSubject(subjects.OpCluster, subjects.Anyone), nil, Patience)
	if err != nil {
		return nil, fmt.Errorf("look at the cluster: %w", err)
	}
	var all subjects.Cluster
	return &all, json.Unmarshal(msg.Data, &all)
}

// Leader is the node that leads the control plane.
func (c *Daemons) Leader(nc *nats.Conn) (int, error) {
	all, err := c.look(nc)
	if err != nil {
		return 0, err
	}
	for _, n := range all.Nodes {
		if n.Number == all.Leader {
			return slices.IndexFunc(c.Nodes, func(m *Node) bool { return m.id == n.Node }), nil
		}
	}
	return 0, errors.New("nobody leads")
}

// Primaries has for each bucket the node that is its primary, -1 if there is none.
func (c *Daemons) Primaries(nc *nats.Conn) ([]int, error) {
	msg, err := nc.Request(subjects.SimpleSubject(subjects.OpInfo, subjects.Anyone), nil, Patience)
	if err != nil {
		return nil, fmt.Errorf("ask for the map of buckets: %w", err)
	}
	var info subjects.Info
	if err := info.DecodeJSON(msg.Data); err != nil {
		return nil, fmt.Errorf("read the map of buckets: %w", err)
	}
	all := make([]int, len(info.Map.Primary))
	for b, id := range info.Map.Primary {
		all[b] = slices.IndexFunc(c.Nodes, func(n *Node) bool { return n.id == id })
	}
	return all, nil
}

// Children are the processes.
func (c *Daemons) Children() []*Child {
	all := make([]*Child, len(c.Nodes))
	for i, n := range c.Nodes {
		all[i] = n.Child
	}
	return all
}
