package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/opencluster/oclocks/broker/admin"
	"github.com/opencluster/oclocks/conf"
)

// urlFlag names the node that is asked.
const urlFlag = "url"

// errAlone says that a command needs a cluster.
var errAlone = errors.New("the daemon is in no cluster, so there is nothing to do this with: set cluster_listen, or begin a cluster with oclocks-startup")

// inCluster says whether zones, users and shared settings are those of a cluster. Until a cluster has begun they are in the
// files of the node that will begin it.
func inCluster(cmd *cobra.Command, s *conf.Settings) (bool, error) {
	if s.Data == "" {
		return false, nil
	}
	if f := cmd.Flags().Lookup(urlFlag); f != nil && f.Changed {
		return true, nil
	}
	running, err := conf.ReadRunning(s.Data)
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return running.Clustered, err
	}
	if !s.Clustered() {
		return false, nil
	}
	if _, err := os.Stat(filepath.Join(s.Data, "control.db")); !errors.Is(err, fs.ErrNotExist) {
		return true, err
	}
	if s.MayFound() {
		return false, nil
	}
	return false, errors.New("this node joins a cluster that it has not met yet: start its daemon first, or name another node with --url nats://HOST:PORT")
}

// dial connects to the cluster of the node. errAlone if it is in none.
func dial(cmd *cobra.Command) (*admin.Client, *conf.Settings, error) {
	s, err := load(cmd)
	if err != nil {
		return nil, nil, err
	}
	client, in, err := dialIf(cmd, s)
	if err == nil && !in {
		err = errAlone
		if s.Data == "" {
			err = errors.New("name the data directory of a node of the cluster with --data DIR or OCLOCKS_DATA, or its configuration file with --config")
		}
	}
	return client, s, err
}

// dialIf is dial where there is a cluster; in is false where the files of the node count.
func dialIf(cmd *cobra.Command, s *conf.Settings) (client *admin.Client, in bool, err error) {
	if in, err = inCluster(cmd, s); err != nil || !in {
		return nil, false, err
	}
	url, err := cmd.Flags().GetString(urlFlag)
	if err != nil {
		return nil, false, err
	}
	client, err = admin.Dial(s.Data, url)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("no keys in %s: is that the data directory of a node? (%w)", s.Data, err)
	}
	if errors.Is(err, admin.ErrNoDaemon) {
		err = fmt.Errorf("%w. Another node of its cluster can be named with --url nats://HOST:PORT", err)
	}
	return client, true, err
}

// dialOrFile is dialIf for commands that change the configuration file where there is no cluster, and make it if it is not
// there yet.
func dialOrFile(cmd *cobra.Command) (client *admin.Client, in bool, err error) {
	s, err := load(cmd)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, false, nil
	case err != nil:
		return nil, false, err
	}
	return dialIf(cmd, s)
}

// with connects to the cluster and reads its state.
func with(cmd *cobra.Command, do func(*admin.Client, *admin.State) error) error {
	client, _, err := dial(cmd)
	if err != nil {
		return err
	}
	defer client.Close()
	state, err := client.State(cmd.Context())
	if errors.Is(err, admin.ErrUnavailable) {
		return fmt.Errorf("%w. oclocks-cli cluster shows who is up: more than half of the nodes that vote are needed", err)
	}
	if err != nil {
		return err
	}
	return do(client, state)
}
