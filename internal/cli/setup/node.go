package setup

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"

	"github.com/opencluster/oclocks/conf"
)

// Node is what a new node is told. The names in the comments are those of the flags.
type Node struct {
	Data          string // --data: directory
	Config        string // --config: file, which must not exist
	Name          string // --node
	Location      string // --location
	Cluster       string // --cluster; first node
	Listen        string // --listen: HOST:PORT for clients
	ClusterListen string // --cluster-listen: HOST:PORT for other nodes
	Advertise     string // --cluster-advertise: HOST:PORT, "" if that is ClusterListen
	HTTP          string // --http: HOST:PORT or off

	Zone string // --zone; first node
	Open bool   // --open: the zone is for everybody who reaches Listen
	User string // --user: who gets credentials in the zone, as admin; first node; "" for nobody
	Out  string // --out: file for them
}

// Made is what became of it.
type Made struct {
	ID      string // identifier of the node
	Cluster string
	Config  string   // file
	Creds   string   // file, "" if there is none
	Key     string   // of the user
	Routes  []string // joined: HOST:PORT of other nodes
}

// settings are those of the configuration file, as far as they differ from what a daemon does without.
func (n *Node) settings(cluster string) []conf.KeyValue {
	all := []conf.KeyValue{
		{Key: "cluster", Value: cluster}, {Key: "node", Value: n.Name}, {Key: "location", Value: n.Location},
		{Key: "data", Value: n.Data}, {Key: "listen", Value: n.Listen}, {Key: "http", Value: n.HTTP},
		{Key: "cluster_listen", Value: n.ClusterListen}, {Key: "cluster_advertise", Value: n.Advertise},
	}
	return slices.DeleteFunc(all, func(s conf.KeyValue) bool { return s.Value == "" })
}

// zones are those that the cluster begins with.
func (n *Node) zones() []conf.Zone {
	z := conf.Zone{Name: n.Zone, Open: n.Open}
	if n.Open {
		z.Role = conf.RoleAdmin
	}
	return []conf.Zone{z}
}

// validate is what the daemon would say.
func (n *Node) validate(first bool) error {
	s := conf.Default()
	s.Node, s.Location, s.Data, s.Listen, s.HTTP = n.Name, n.Location, n.Data, n.Listen, n.HTTP
	s.ClusterListen, s.ClusterAdvertise = n.ClusterListen, n.Advertise
	if first {
		s.Cluster, s.Zones = n.Cluster, n.zones()
		if n.User != "" {
			if err := conf.CheckUserName(n.User); err != nil {
				return fmt.Errorf("--user: %w", err)
			}
		}
	} else {
		s.Zones = []conf.Zone{{Name: conf.DefaultZone}} // the cluster's own zones are not known yet
	}
	return s.Validate()
}

// untouched refuses what would have to be overwritten.
func (n *Node) untouched() error {
	for _, c := range []struct{ path, what, advice string }{
		{filepath.Join(n.Data, "control.db"), "a daemon has run with it", "choose an empty one with --data"},
		{filepath.Join(n.Data, "journal"), "a daemon has run with it", "choose an empty one with --data"},
		{filepath.Join(n.Data, "tls", "ca.pem"), "it belongs to a cluster", "start the daemon with it, or choose an empty one with --data"},
	} {
		_, err := os.Lstat(c.path)
		switch {
		case err == nil:
			return fmt.Errorf("the data directory %s %w, and %s: %s", n.Data, ErrThere, c.what, c.advice)
		case !errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("look at the data directory: %w", err)
		}
	}
	for _, f := range []struct{ path, flag string }{{n.Config, "--config"}, {n.Out, "--out"}} {
		if f.path == "" {
			continue
		}
		if _, err := os.Lstat(f.path); !errors.Is(err, fs.ErrNotExist) {
			return errors.Join(fmt.Errorf("the file %s %w: choose another with %s, or remove it", f.path, ErrThere, f.flag), err)
		}
		if info, err := os.Stat(filepath.Dir(f.path)); err == nil && !info.IsDir() {
			return fmt.Errorf("%s is no directory: choose another file with %s", filepath.Dir(f.path), f.flag)
		}
	}
	return nil
}

// absolute makes the paths independent of where the daemon is started.
func (n *Node) absolute() error {
	for _, p := range []*string{&n.Data, &n.Config, &n.Out} {
		if *p == "" {
			continue
		}
		path, err := filepath.Abs(*p)
		if err != nil {
			return fmt.Errorf("the path %s: %w", *p, err)
		}
		*p = path
	}
	return nil
}

// listenable says whether a daemon could listen on an address now.
func listenable(address string) error {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("a daemon could not listen on %s: %w", address, err)
	}
	return l.Close()
}
