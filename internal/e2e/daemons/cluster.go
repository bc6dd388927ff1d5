package daemons

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/opencluster/oclocks/conf"
)

// Node is a daemon: its directory and its addresses stay over its deaths.
type Node struct {
	ID, Name, Dir string
	Listen, Route string   // host:port, for clients and for the other nodes
	Wrap          []string // command before the daemon's own, such as ip netns exec
	Args          []string // of this daemon
	Env           []string
	Founds        bool // it begins the cluster: it is told of nobody to join
}

// The ports of FreePorts lie below those that the kernel gives to outgoing connections: between the look and the start of a daemon
// one of hundreds of these would get it now and then.
const (
	firstPort = 12_000
	lastPort  = 30_000
	besides   = 1000 // a daemon's direct links are so far from its route
)

// FreePorts are ports of loopback that nobody listened on a moment ago, and besides them there is room for direct links.
func FreePorts(n int) ([]int, error) {
	var ports []int
	for tries := 100 * n; len(ports) < n; tries-- {
		port := firstPort + rand.IntN(lastPort-firstPort)
		if err := errors.Join(free(port), free(port+besides)); err != nil {
			if tries <= 0 {
				return nil, fmt.Errorf("find a free port: %w", err)
			}
			continue
		}
		if !slices.ContainsFunc(ports, func(p int) bool { return p == port || p == port+besides || p == port-besides }) {
			ports = append(ports, port)
		}
	}
	return ports, nil
}

// free says whether nobody listens there.
func free(port int) error {
	l, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", port))
	if err != nil {
		return err
	}
	return l.Close()
}

// OnLoopback gives n nodes addresses and places below dir, and names after the number of those that there are.
func OnLoopback(dir string, there, n int) ([]*Node, error) {
	ports, err := FreePorts(2 * n)
	if err != nil {
		return nil, err
	}
	nodes := make([]*Node, n)
	for i := range nodes {
		name := fmt.Sprint("n", there+i+1)
		nodes[i] = &Node{
			Name: name, Dir: filepath.Join(dir, name),
			Listen: fmt.Sprint("127.0.0.1:", ports[2*i]), Route: fmt.Sprint("127.0.0.1:", ports[2*i+1]),
		}
	}
	return nodes, nil
}

// Enroll makes the directories of nodes that belong together: the first one founds the cluster, with an open default zone.
func Enroll(nodes []*Node) error {
	var membership conf.Membership
	for i, n := range nodes {
		id, err := conf.NodeID(n.Dir)
		if err != nil {
			return fmt.Errorf("enroll %s: %w", n.Name, err)
		}
		if n.ID = id; i > 0 {
			if _, err := membership.Enter(n.Dir, id); err != nil {
				return fmt.Errorf("enroll %s: %w", n.Name, err)
			}
			continue
		}
		n.Founds = true
		if membership, err = found(n); err != nil {
			return fmt.Errorf("make a cluster: %w", err)
		}
	}
	return nil
}

func found(n *Node) (m conf.Membership, err error) {
	auth, err := conf.OpenAuth(n.Dir)
	if err != nil {
		return m, err
	}
	if err := auth.EnsureZone(conf.DefaultZone); err != nil {
		return m, err
	}
	identity, err := conf.CreateIdentity(n.Dir, "oclocks", n.ID)
	if err != nil {
		return m, err
	}
	return auth.Membership(identity.Authority(), map[string][]string{n.ID: {n.Route}})
}

// Command is the command line of a node that is one of nodes. args are of all daemons.
func (n *Node) Command(binary string, nodes []*Node, args []string) *exec.Cmd {
	line := append(slices.Clone(n.Wrap), binary, "--data", n.Dir, "--node", n.Name, "--listen", n.Listen,
		"--http", "off", "--log-format", "json", "--cluster-listen", n.Route)
	if !n.Founds {
		var others []string
		for _, o := range nodes {
			if o != n {
				others = append(others, o.Route)
			}
		}
		line = append(line, "--join", strings.Join(others, ","))
	}
	line = append(append(line, args...), n.Args...)
	cmd := exec.Command(line[0], line[1:]...) //nolint:gosec // it is what was asked for
	cmd.Env = append(os.Environ(), n.Env...)
	return cmd
}

// Serving waits until a daemon serves, and gives its address; "" if it does not in time, or ends.
func Serving(p *Process, patience time.Duration) string {
	line := p.Find(patience, func(line map[string]any) bool { return line["msg"] == "serving" })
	url, _ := line["url"].(string)
	return url
}
