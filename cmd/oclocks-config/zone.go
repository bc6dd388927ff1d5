package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/opencluster/oclocks/broker/admin"
	"github.com/opencluster/oclocks/conf"
	"github.com/opencluster/oclocks/conf/shared"
)

func zoneCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "zone", Short: "List, add and remove zones", Args: cobra.NoArgs}
	cmd.AddCommand(zoneList(), zoneAdd(), zoneRemove())
	return cmd
}

func zoneList() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "list", Short: "Print the zones", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			zones, development, err := zones(cmd)
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(cmd.OutOrStdout(), describe(zones))
			}
			return printZones(cmd.OutOrStdout(), zones, development)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// zones are those of the cluster, or of the file; development says that the only one is there because there is none.
func zones(cmd *cobra.Command) (zones []conf.Zone, development bool, err error) {
	s, err := load(cmd)
	if err != nil {
		return nil, false, err
	}
	state, in, err := stateIf(cmd.Context(), cmd, s)
	if err != nil || !in {
		return s.Zones, s.Development(), err
	}
	for _, z := range state.Zones {
		zones = append(zones, z.Zone)
	}
	return zones, false, nil
}

func printZones(out io.Writer, zones []conf.Zone, development bool) error {
	rows := [][]string{{"ZONE", "OPEN", "UNNAMED", "INBOXES", "EVENTS", "HOLDS", "WAITERS", "SESSIONS", "CONNECTIONS"}}
	for _, z := range describe(zones) {
		open, inboxes := "no", "own"
		if z.Open {
			open = "as " + string(z.Role)
		}
		if z.SharedInboxes || z.Open {
			inboxes = "shared"
		}
		rows = append(rows, []string{z.Name, open, yesNo(z.Unnamed), inboxes, yesNo(z.LockEvents),
			strconv.Itoa(z.Holds), strconv.Itoa(z.Waiters), strconv.Itoa(z.Sessions), strconv.Itoa(z.Connections)})
	}
	if err := table(out, rows); err != nil {
		return err
	}
	if development {
		fmt.Fprintln(out, "\nNo zone is configured, so this one is open. It goes when you add one: oclocks-config zone add NAME")
	}
	return nil
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// zoneView is a zone with its defaults filled in.
type zoneView struct {
	Name          string    `json:"name"`
	Open          bool      `json:"open"`
	Role          conf.Role `json:"role,omitempty"`
	Unnamed       bool      `json:"unnamed"`
	SharedInboxes bool      `json:"shared_inboxes"`
	LockEvents    bool      `json:"lock_events"`
	Holds         int       `json:"holds"`
	Waiters       int       `json:"waiters"`
	Sessions      int       `json:"sessions"`
	Connections   int       `json:"connections"`
}

func describe(zones []conf.Zone) []zoneView {
	views := make([]zoneView, len(zones))
	for i, z := range zones {
		q := z.Quota.WithDefaults()
		views[i] = zoneView{z.Name, z.Open, z.OpenRole(), z.TakesUnnamed(), z.SharedInboxes, z.LockEvents,
			q.Holds, q.Waiters, q.Sessions, q.Connections}
	}
	return views
}

func zoneAdd() *cobra.Command {
	var z conf.Zone
	var role string
	var unnamed bool
	cmd := &cobra.Command{
		Use: "add NAME", Short: "Add a zone to the cluster, or to the configuration file", Args: cobra.ExactArgs(1),
		Long: `Add a zone to the cluster; for a daemon that runs alone, to its configuration file, in which comments stay.

A zone is a tenant: what is locked in one zone is invisible in all others. Its users come with credentials (see user add);
in an open zone, of which there can be one, everybody without credentials may work too.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			z.Name, z.Role = args[0], conf.Role(role)
			if cmd.Flags().Changed("unnamed") {
				z.Unnamed = &unnamed
			}
			client, in, err := dialOrFile(cmd)
			if err != nil {
				return err
			}
			if in {
				defer client.Close()
				return addShared(cmd, client, z)
			}
			path, err := configFile(cmd)
			if err != nil {
				return err
			}
			if err := conf.AddZone(path, z); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "Zone %s is in %s.\n%s\nNext: oclocks-config user add --zone %s NAME\n", z.Name, path, sighup, z.Name)
			return nil
		},
	}
	f := cmd.Flags()
	f.BoolVar(&z.Open, "open", false, "connections without credentials land here")
	f.StringVar(&role, "role", "", "open zone: role of those who come without credentials (viewer, user, admin)")
	f.BoolVar(&unnamed, "unnamed", false, "take requests to locks.<op>, without a user (default: if the zone is open)")
	f.BoolVar(&z.SharedInboxes, "shared-inboxes", false, "users may read each other's replies, for clients that cannot set an inbox prefix")
	f.BoolVar(&z.LockEvents, "lock-events", false, "publish what happens to locks on locks.event.lock.>")
	f.IntVar(&z.Quota.Holds, "holds", 0, "most locks held (0: the default)")
	f.IntVar(&z.Quota.Waiters, "waiters", 0, "most requests in queues (0: the default)")
	f.IntVar(&z.Quota.Sessions, "sessions", 0, "most sessions (0: the default)")
	f.IntVar(&z.Quota.Connections, "connections", 0, "most connections of clients (0: the default)")
	return cmd
}

func zoneRemove() *cobra.Command {
	var keepKeys bool
	cmd := &cobra.Command{
		Use: "remove NAME", Short: "Remove a zone and the keys of its users", Args: cobra.ExactArgs(1),
		Long: `Remove a zone from the cluster, or from the configuration file of a daemon that runs alone, and its keys, so that
credentials of its users never count again, also if a zone of the same name is added later. With --keep-keys, which a
cluster does not have, they count again then.`,
		ValidArgsFunction: completeZones,
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := load(cmd)
			if err != nil {
				return err
			}
			client, in, err := dialIf(cmd, s)
			if err != nil {
				return err
			}
			if in {
				defer client.Close()
				return removeShared(cmd, client, args[0], keepKeys)
			}
			path, err := configFile(cmd)
			if err != nil {
				return err
			}
			var auth *conf.Auth
			if !keepKeys {
				if auth, err = keys(s, false); err != nil && !errors.Is(err, fs.ErrNotExist) {
					return err
				}
			}
			if err := conf.RemoveZone(path, args[0]); err != nil {
				return err
			}
			if auth != nil {
				if err := auth.RemoveZone(args[0]); err != nil && !errors.Is(err, conf.ErrNotFound) {
					return err
				}
			}
			fmt.Fprintf(cmd.OutOrStdout(), "Zone %s is removed from %s.\n%s\n", args[0], path, sighup)
			return nil
		},
	}
	cmd.Flags().BoolVar(&keepKeys, "keep-keys", false, "keep the keys of its users")
	return cmd
}

// addShared adds a zone to the cluster.
func addShared(cmd *cobra.Command, client *admin.Client, z conf.Zone) error {
	if err := z.Validate(); err != nil {
		return err
	}
	state, err := client.State(cmd.Context())
	if err != nil {
		return err
	}
	if _, there := state.Zone(z.Name); there {
		return fmt.Errorf("zone %s: %w", z.Name, conf.ErrExists)
	}
	if z.Open {
		if err := openable(state); err != nil {
			return err
		}
	}
	if _, err := client.Change(cmd.Context(), shared.Command{Zone: &shared.ZonePut{Zone: z}}); err != nil {
		return explain(err)
	}
	fmt.Fprintf(cmd.OutOrStdout(), "Zone %s is in the cluster. %s\nNext: oclocks-config user add --zone %s NAME\n", z.Name, everywhere, z.Name)
	return nil
}

// openable refuses an open zone where others than this machine reach a node.
func openable(state *admin.State) error {
	for i := range state.Nodes {
		n := &state.Nodes[i]
		for _, c := range n.Clients {
			host, _, err := net.SplitHostPort(c)
			if ip := net.ParseIP(host); err != nil || ip == nil || !ip.IsLoopback() {
				return fmt.Errorf("node %d (%s) serves clients at %s, so anybody who reaches it could take the locks of an open zone: "+
					"add it without --open, and make credentials with oclocks-config user add", n.Number, n.Name, c)
			}
		}
	}
	return nil
}

// removeShared removes a zone from the cluster.
func removeShared(cmd *cobra.Command, client *admin.Client, name string, keepKeys bool) error {
	if keepKeys {
		return errors.New("--keep-keys: a cluster keeps the keys of a zone with the zone")
	}
	if _, err := client.Change(cmd.Context(), shared.Command{RemoveZone: &shared.ZoneName{Name: name}}); err != nil {
		return explain(err)
	}
	fmt.Fprintf(cmd.OutOrStdout(), "Zone %s is removed from the cluster. %s\n", name, everywhere)
	return nil
}

func completeZones(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	zones, _, err := zones(cmd)
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	names := make([]string, len(zones))
	for i, z := range zones {
		names[i] = z.Name
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
