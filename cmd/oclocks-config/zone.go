package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/opencluster/oclocks/conf"
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
			s, err := load(cmd)
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(cmd.OutOrStdout(), describe(s.Zones))
			}
			return printZones(cmd.OutOrStdout(), s)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func printZones(out io.Writer, s *conf.Settings) error {
	rows := [][]string{{"ZONE", "OPEN", "UNNAMED", "INBOXES", "EVENTS", "HOLDS", "WAITERS", "SESSIONS", "CONNECTIONS"}}
	for _, z := range describe(s.Zones) {
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
	if s.Development() {
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
		Use: "add NAME", Short: "Add a zone to the configuration file", Args: cobra.ExactArgs(1),
		Long: `Add a zone to the configuration file; comments in it stay.

A zone is a tenant: what is locked in one zone is invisible in all others. Its users come with credentials (see user add);
in an open zone, of which there can be one, everybody without credentials may work too.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			z.Name, z.Role = args[0], conf.Role(role)
			if cmd.Flags().Changed("unnamed") {
				z.Unnamed = &unnamed
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
		Long: `Remove a zone from the configuration file, and its keys, so that credentials of its users never count again, also if
a zone of the same name is added later. With --keep-keys they count again then.`,
		ValidArgsFunction: completeZones,
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := load(cmd)
			if err != nil {
				return err
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

func completeZones(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	s, err := load(cmd)
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	names := make([]string, len(s.Zones))
	for i, z := range s.Zones {
		names[i] = z.Name
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
