package rig

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/opencluster/oclocks/conf"
)

// ZoneName is the i-th zone with users.
func ZoneName(i int) string { return fmt.Sprintf("zone-%04d", i) }

// config is the configuration file of the daemon that founds the cluster.
func (c *Daemons) config() string { return filepath.Join(c.dir, "founder.yaml") }

// creds is the file of the i-th zone's user.
func (c *Daemons) creds(i int) string { return filepath.Join(c.dir, ZoneName(i)+".creds") }

// zones makes the keys of a cluster and its zones, and a user in each zone but the open one. It does so in memory, since a file is written
// anew with each of them.
func (c *Daemons) zones() (*conf.Auth, error) {
	auth, err := conf.NewAuth()
	if err != nil {
		return nil, err
	}
	if err := auth.EnsureZone(conf.DefaultZone); err != nil || c.opts.Zones == 0 {
		return auth, err
	}
	var text strings.Builder
	fmt.Fprintf(&text, "zones:\n- name: %s\n  open: true\n", conf.DefaultZone)
	for i := range c.opts.Zones {
		if err := auth.EnsureZone(ZoneName(i)); err != nil {
			return nil, err
		}
		creds, key, err := auth.IssueUser(ZoneName(i), "bench", conf.RoleUser, 0)
		if err != nil {
			return nil, err
		}
		if err := os.WriteFile(c.creds(i), creds, 0o600); err != nil {
			return nil, err
		}
		c.users = append(c.users, key)
		fmt.Fprintf(&text, "- name: %s\n", ZoneName(i))
	}
	return auth, os.WriteFile(c.config(), []byte(text.String()), 0o600)
}

// InZone is a connection of the i-th zone's user to one node, and the user's name in subjects.
func (c *Daemons) InZone(zone, node int) (nc *nats.Conn, user string, err error) {
	user = c.users[zone]
	nc, err = nats.Connect(c.URL(node), nats.UserCredentials(c.creds(zone)), nats.CustomInboxPrefix("_INBOX."+user),
		nats.IgnoreDiscoveredServers())
	if err != nil {
		return nil, "", fmt.Errorf("connect to zone %s: %w", ZoneName(zone), err)
	}
	return nc, user, nil
}
