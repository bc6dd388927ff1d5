package local

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/opencluster/oclocks/conf"
)

// clusterName is what every local cluster is called.
const clusterName = "local"

// node is one daemon of the cluster.
type node struct {
	index  int    // 1 and up
	name   string // node1
	id     string // identifier
	data   string // directory
	config string // file
	log    string // file
	client string // HOST:PORT
	route  string
	http   string // HOST:PORT or off

	run *child // nil if it does not run
}

// layout is the nodes of a directory.
func layout(o *Options) []*node {
	nodes := make([]*node, o.Nodes)
	for i := range nodes {
		name := fmt.Sprint("node", i+1)
		n := &node{
			index: i + 1, name: name, data: filepath.Join(o.Dir, name), config: filepath.Join(o.Dir, name+".yaml"),
			log: filepath.Join(o.Dir, name+".log"), client: address(o.Port + i + 1), route: address(o.Port + routeDistance + i + 1), http: "off",
		}
		if o.HTTP {
			n.http = address(o.Port + httpDistance + i + 1)
		}
		nodes[i] = n
	}
	return nodes
}

func address(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// occupy makes the directory and keeps other processes from running its cluster. The lock ends with release, or with the
// process.
func occupy(dir string) (release func() error, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the directory of the cluster: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the directory of the cluster: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		if errors.Is(err, unix.EWOULDBLOCK) {
			err = fmt.Errorf("the cluster in %s %w: stop that one, or choose another directory with --dir", dir, ErrInUse)
		}
		return nil, errors.Join(err, f.Close())
	}
	return f.Close, nil
}

// present counts the nodes that a directory has.
func present(dir string) (n int, err error) {
	for ; n < MaxNodes; n++ {
		_, err := os.Stat(filepath.Join(dir, fmt.Sprint("node", n+1), "tls"))
		if errors.Is(err, fs.ErrNotExist) {
			break
		}
		if err != nil {
			return 0, fmt.Errorf("look at the directory of the cluster: %w", err)
		}
	}
	return n, nil
}

// count decides how many nodes there are to be.
func count(o *Options) error {
	have, err := present(o.Dir)
	switch {
	case err != nil:
		return err
	case o.Nodes == 0 && have == 0:
		o.Nodes = defaultNodes
	case o.Nodes == 0:
		o.Nodes = have
	case o.Nodes < have:
		return fmt.Errorf("the cluster in %s %w: %d. Run it with --nodes %d, or without --nodes; or begin another one with --dir",
			o.Dir, ErrNodes, have, have)
	}
	return nil
}

// prepare makes the directories belong together, and writes the configuration files; what is there already stays, but for
// the addresses. It says whether the cluster was there before.
func prepare(nodes []*node) (before bool, err error) {
	first := nodes[0]
	for _, n := range nodes {
		if n.id, err = conf.NodeID(n.data); err != nil {
			return false, err
		}
	}
	_, err = os.Stat(filepath.Join(first.data, "control.db"))
	before = err == nil
	auth, err := conf.OpenAuth(first.data)
	if err != nil {
		return false, err
	}
	if err := auth.EnsureZone(conf.DefaultZone); err != nil {
		return false, err
	}
	identity, err := conf.CreateIdentity(first.data, clusterName, first.id)
	if err != nil {
		return false, err
	}
	routes := make(map[string][]string, len(nodes))
	for _, n := range nodes {
		routes[n.id] = []string{n.route}
	}
	membership, err := auth.Membership(identity.Authority(), routes)
	if err != nil {
		return false, err
	}
	for _, n := range nodes {
		if n != first {
			if _, err := membership.Enter(n.data, n.id); err != nil && !errors.Is(err, conf.ErrExists) {
				return false, fmt.Errorf("node %s: %w", n.name, err)
			}
		}
		if before || n.index > 1 { // who knows of others founds nothing
			others := maps.Clone(routes)
			delete(others, n.id)
			if err := conf.SaveRoutes(n.data, others); err != nil {
				return false, err
			}
		}
		if err := configure(n, nodes); err != nil {
			return false, err
		}
	}
	return before, nil
}

// configure writes a node's configuration file, or the addresses in it.
func configure(n *node, nodes []*node) error {
	var others []string
	for _, o := range nodes {
		if o != n {
			others = append(others, o.route)
		}
	}
	addresses := []conf.KeyValue{{Key: "listen", Value: n.client}, {Key: "http", Value: n.http}, {Key: "cluster_listen", Value: n.route}}
	if n.index > 1 { // the first one has nobody to join: it founds the cluster
		addresses = append(addresses, conf.KeyValue{Key: "join", Value: strings.Join(others, ",")})
	}
	settings := append([]conf.KeyValue{{Key: "cluster", Value: clusterName}, {Key: "node", Value: n.name}, {Key: "data", Value: n.data}}, addresses...)
	if lease := leaseOf(len(nodes)); lease > conf.Default().NodeLease {
		settings = append(settings, conf.KeyValue{Key: "node_lease", Value: lease.String()})
	}
	comment := fmt.Sprintf("# %s of the cluster that `oclocks-startup local --dir %s` runs. It writes the addresses anew at each start.\n",
		n.name, filepath.Dir(n.config))
	err := conf.NewFile(n.config, comment, settings, nil)
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	for _, a := range addresses {
		if err := conf.SetKey(n.config, a.Key, a.Value); err != nil {
			return err
		}
	}
	return nil
}

// leaseOf is the node lease of a new cluster: many nodes share the processors of one machine, so each gets more time before
// the others give it up.
func leaseOf(nodes int) time.Duration {
	const few = 5
	return conf.Default().NodeLease * time.Duration((nodes+few-1)/few)
}

// checkPorts wants that nobody listens where the nodes will.
func checkPorts(nodes []*node) error {
	for _, n := range nodes {
		for _, a := range []string{n.client, n.route, n.http} {
			if a == "off" {
				continue
			}
			l, err := net.Listen("tcp", a)
			if err != nil {
				return fmt.Errorf("%s, which %s needs, %w (%w): stop what listens there, or choose other ports with --port", a, n.name, ErrPort, err)
			}
			if err := l.Close(); err != nil {
				return fmt.Errorf("try the port of %s: %w", n.name, err)
			}
		}
	}
	return nil
}
