package setup

import (
	"errors"
	"fmt"
	"os"

	"github.com/opencluster/oclocks/conf"
)

// First makes the first node of a new cluster, from a Node that Fill has completed: its directory, keys, certificates and
// configuration file, and the credentials of the first user. The cluster begins when the daemon is started. If something
// fails the directory belongs to no cluster, and it can be tried again.
func First(n *Node, environ []string) (*Made, error) {
	m := &Made{Cluster: n.Cluster, Config: n.Config}
	var err error
	if m.ID, err = conf.NodeID(n.Data); err != nil {
		return nil, err
	}
	auth, err := conf.OpenAuth(n.Data)
	if err != nil {
		return nil, err
	}
	if err := auth.EnsureZone(n.Zone); err != nil {
		return nil, err
	}
	if n.User != "" {
		m.Key, _, err = auth.HandOut(conf.Handout{Zone: n.Zone, Name: n.User, Role: conf.RoleAdmin, Creds: n.Out}, environ)
		if err != nil {
			return nil, err
		}
		m.Creds = n.Out
	}
	comment := "# Configuration of oclocks-daemon on this node. Zones and shared settings are those of a new cluster: once it has\n" +
		"# begun, they are in the cluster, and oclocks-config changes them there.\n"
	if err := conf.NewFile(n.Config, comment, n.settings(n.Cluster), n.zones()); err != nil {
		return nil, n.undo(err, false)
	}
	if _, err := conf.CreateIdentity(n.Data, n.Cluster, m.ID); err != nil { // last: with it the directory belongs to a cluster
		return nil, n.undo(err, true)
	}
	return m, nil
}

// undo takes away what would be in the way of another try.
func (n *Node) undo(err error, config bool) error {
	if n.User != "" {
		err = errors.Join(err, os.Remove(n.Out))
	}
	if config {
		err = errors.Join(err, os.Remove(n.Config))
	}
	return fmt.Errorf("make the first node: %w", err)
}
