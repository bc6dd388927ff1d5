package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/opencluster/oclocks/broker/admin"
	"github.com/opencluster/oclocks/conf"
	"github.com/opencluster/oclocks/conf/shared"
	"github.com/opencluster/oclocks/internal/cli/setup"
)

// keysWait is how long the daemon on this machine may take to write the keys of a zone that was just added elsewhere.
const keysWait = 5 * time.Second

// addUser makes credentials of a zone of the cluster. They are made here, from the keys in the data directory, so that no
// secret goes over the network; the cluster is told who has them.
func addUser(cmd *cobra.Command, client *admin.Client, s *conf.Settings, h conf.Handout) error {
	ctx := cmd.Context()
	if err := h.Check(); err != nil {
		return err
	}
	state, err := client.State(ctx)
	if err != nil {
		return err
	}
	zone, there := state.Zone(h.Zone)
	if !there {
		return fmt.Errorf("the cluster has no zone %s: oclocks-config zone list shows those that it has, zone add adds one", h.Zone)
	}
	if urls := setup.ClientURLs(state.Nodes); len(urls) > 0 {
		h.URL = strings.Join(urls, ",")
	}
	keys, err := zoneKeys(ctx, s.Data, zone)
	if err != nil {
		return err
	}
	now := time.Now()
	creds, user, err := keys.Issue(h.Zone, h.Name, h.Role, h.TTL, now)
	if err != nil {
		return err
	}
	change := shared.Users{Zone: h.Zone, Drop: keys.Expired(now), Put: []conf.User{user}}
	if _, err := client.Change(ctx, shared.Command{Users: &change}); err != nil {
		return explain(err)
	}
	path, err := h.Write(creds, user.Key, os.Environ())
	if err != nil { // nobody has the credentials
		_, undo := client.Change(ctx, shared.Command{Users: &shared.Users{Zone: h.Zone, Drop: []string{user.Key}}})
		return errors.Join(err, undo)
	}
	return printHandout(cmd.OutOrStdout(), h, user.Key, path)
}

// zoneKeys reads the keys of a zone, and waits until they are those that the cluster has.
func zoneKeys(ctx context.Context, data string, zone admin.Zone) (conf.ZoneKeys, error) {
	var keys conf.ZoneKeys
	found := false
	err := waitFor(ctx, keysWait, func(context.Context) (bool, error) {
		auth, err := conf.ReadAuth(data)
		if err != nil {
			return false, err
		}
		account, err := auth.AccountID(zone.Zone.Name)
		if err != nil && !errors.Is(err, conf.ErrNotFound) {
			return false, err
		}
		found = account == zone.Account
		keys = auth.Export()[zone.Zone.Name]
		return found, nil
	})
	if err == nil && !found {
		err = fmt.Errorf("the keys of zone %s are not in %s: the daemon with that directory, which writes them there, is behind or does not run",
			zone.Zone.Name, data)
	}
	return keys, err
}

// clusterUsers are the users of a zone of the cluster, or of all its zones.
func clusterUsers(ctx context.Context, client *admin.Client, zone string) ([]conf.User, error) {
	if zone != "" {
		return client.Users(ctx, zone)
	}
	state, err := client.State(ctx)
	if err != nil {
		return nil, err
	}
	all := []conf.User{}
	for _, z := range state.Zones {
		of, err := client.Users(ctx, z.Zone.Name)
		if err != nil {
			return nil, err
		}
		all = append(all, of...)
	}
	return all, nil
}

// revokeUser takes credentials back in the whole cluster.
func revokeUser(ctx context.Context, client *admin.Client, zone, keyOrName string) ([]conf.User, error) {
	users, err := client.Users(ctx, zone)
	if err != nil {
		return nil, err
	}
	revoked, err := conf.ZoneKeys{Users: users}.Revoke(zone, keyOrName, time.Now())
	if err != nil {
		return nil, err
	}
	if _, err := client.Change(ctx, shared.Command{Users: &shared.Users{Zone: zone, Put: revoked}}); err != nil {
		return nil, explain(err)
	}
	return revoked, nil
}
