package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/opencluster/oclocks/conf"
)

func userCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "user", Short: "Give credentials to users, list them, take them back", Args: cobra.NoArgs}
	cmd.AddCommand(userAdd(), userList(), userRevoke())
	return cmd
}

// zoneFlag adds --zone, which must be given.
func zoneFlag(cmd *cobra.Command, zone *string) {
	cmd.Flags().StringVar(zone, "zone", "", "the zone (required)")
	complete := func(cmd *cobra.Command, _ []string, text string) ([]string, cobra.ShellCompDirective) {
		return completeZones(cmd, nil, text)
	}
	// Both fail only for a flag that does not exist.
	cobra.CheckErr(cmd.MarkFlagRequired("zone"))
	cobra.CheckErr(cmd.RegisterFlagCompletionFunc("zone", complete))
}

func userAdd() *cobra.Command {
	var h conf.Handout
	var role string
	cmd := &cobra.Command{
		Use: "add NAME", Short: "Make credentials for a user", Args: cobra.ExactArgs(1),
		Long: `Make credentials for a user of a zone and write them to a file. They count at once, in a cluster on all nodes.

Roles: viewer looks at locks; user takes them too; admin can take them away from others too (force).`,
		Example: `  oclocks-config user add --zone orders --role user --expires 720h --context orders alice`,
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := load(cmd)
			if err != nil {
				return err
			}
			h.Name, h.Role, h.URL = args[0], conf.Role(role), s.ClientURL()
			h.Creds = cmp.Or(h.Creds, h.Zone+"-"+h.Name+".creds")
			client, in, err := dialIf(cmd, s)
			if err != nil {
				return err
			}
			if in {
				defer client.Close()
				return addUser(cmd, client, s, h)
			}
			if !slices.ContainsFunc(s.Zones, func(z conf.Zone) bool { return z.Name == h.Zone }) {
				return fmt.Errorf("zone %s is not configured: oclocks-config zone list shows those that are, zone add adds one", h.Zone)
			}
			auth, err := keys(s, true)
			if err != nil {
				return err
			}
			key, path, err := auth.HandOut(h, os.Environ())
			if err != nil {
				return err
			}
			return printHandout(cmd.OutOrStdout(), h, key, path)
		},
	}
	f := cmd.Flags()
	zoneFlag(cmd, &h.Zone)
	f.StringVar(&role, "role", string(conf.RoleUser), "what the user may do: viewer, user or admin")
	f.DurationVar(&h.TTL, "expires", 0, "how long the credentials count, such as 24h; 0s for ever")
	f.StringVar(&h.Creds, "out", "", "file for the credentials (default ZONE-NAME.creds)")
	f.StringVar(&h.Context, "context", "", "also write a NATS context of this name, for nats --context and our client")
	roles := make([]string, 0, 3)
	for _, r := range conf.Roles() {
		roles = append(roles, string(r))
	}
	cobra.CheckErr(cmd.RegisterFlagCompletionFunc("role", cobra.FixedCompletions(roles, cobra.ShellCompDirectiveNoFileComp)))
	return cmd
}

func printHandout(out io.Writer, h conf.Handout, key, context string) error {
	expires := "never"
	if h.TTL > 0 {
		expires = time.Now().Add(h.TTL).UTC().Format(time.RFC3339)
	}
	rows := [][]string{
		{"user", h.Name + ", " + string(h.Role) + " in zone " + h.Zone}, {"key", key}, {"expires", expires},
		{"credentials", h.Creds + " (a secret: whoever has the file is the user)"}, {"inbox prefix", conf.InboxPrefix(key)},
	}
	if context != "" {
		rows = append(rows, []string{"NATS context", context})
	}
	if err := table(out, rows); err != nil {
		return err
	}
	fmt.Fprintln(out, "\nTry:")
	op := "locks.acquire."
	if h.Role == conf.RoleViewer {
		op = "locks.query."
	}
	if context != "" {
		fmt.Fprintf(out, "  NATS_CONTEXT=%s oclocks-cli list\n  nats --context %s req %s%s orders/4711\n", h.Context, h.Context, op, key)
		return nil
	}
	fmt.Fprintf(out, "  NATS_URL=%s NATS_CREDS=%s oclocks-cli list\n", h.URL, h.Creds)
	fmt.Fprintf(out, "  nats -s %s --creds %s --inbox-prefix %s req %s%s orders/4711\n", h.URL, h.Creds, conf.InboxPrefix(key), op, key)
	return nil
}

func userList() *cobra.Command {
	var zone string
	var asJSON bool
	cmd := &cobra.Command{
		Use: "list", Short: "Print who has credentials", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			users, err := users(cmd, zone)
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(cmd.OutOrStdout(), users)
			}
			return printUsers(cmd.OutOrStdout(), users, time.Now())
		},
	}
	cmd.Flags().StringVar(&zone, "zone", "", "only those of this zone")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// users are those of a zone, or of all if zone is "", of the cluster or of the node's own file.
func users(cmd *cobra.Command, zone string) ([]conf.User, error) {
	s, err := load(cmd)
	if err != nil {
		return nil, err
	}
	client, in, err := dialIf(cmd, s)
	if err != nil {
		return nil, err
	}
	if in {
		defer client.Close()
		return clusterUsers(cmd.Context(), client, zone)
	}
	auth, err := keys(s, false)
	if err != nil {
		return nil, err
	}
	zones := auth.Zones()
	if zone != "" {
		zones = []string{zone}
	}
	users := []conf.User{}
	for _, z := range zones {
		of, err := auth.Users(z)
		if err != nil {
			return nil, err
		}
		users = append(users, of...)
	}
	return users, nil
}

func printUsers(out io.Writer, users []conf.User, now time.Time) error {
	rows := [][]string{{"ZONE", "NAME", "ROLE", "STATUS", "ISSUED", "EXPIRES", "KEY"}}
	for _, u := range users {
		rows = append(rows, []string{u.Zone, cmp.Or(u.Name, "-"), cmp.Or(string(u.Role), "-"), u.Status(now), date(u.Issued), date(u.Expires), u.Key})
	}
	return table(out, rows)
}

func date(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format("2006-01-02T15:04Z")
}

func userRevoke() *cobra.Command {
	var zone string
	cmd := &cobra.Command{
		Use: "revoke NAME|KEY", Short: "Take credentials back", Args: cobra.ExactArgs(1),
		Long: `Take credentials back: those with the public key, or all that were made for the name. A cluster disconnects whoever uses
them at once, a daemon that runs alone once it gets SIGHUP.`,
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			return completeUsers(cmd, zone, args), cobra.ShellCompDirectiveNoFileComp
		},
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
				revoked, err := revokeUser(cmd.Context(), client, zone, args[0])
				return printRevoked(cmd.OutOrStdout(), revoked, everywhere, err)
			}
			auth, err := keys(s, false)
			if err != nil {
				return err
			}
			revoked, err := auth.RevokeUser(zone, args[0])
			return printRevoked(cmd.OutOrStdout(), revoked, sighup, err)
		},
	}
	zoneFlag(cmd, &zone)
	return cmd
}

func printRevoked(out io.Writer, revoked []conf.User, when string, err error) error {
	if err != nil {
		return err
	}
	for _, u := range revoked {
		fmt.Fprintf(out, "Revoked: %s %s\n", cmp.Or(u.Name, "(not in the list)"), u.Key)
	}
	fmt.Fprintln(out, when)
	return nil
}

// completeUsers are the names of those whose credentials count.
func completeUsers(cmd *cobra.Command, zone string, args []string) []string {
	if len(args) > 0 {
		return nil
	}
	all, err := users(cmd, zone)
	if err != nil {
		return nil
	}
	var names []string
	for _, u := range all {
		if u.Status(time.Now()) == "valid" && !slices.Contains(names, u.Name) {
			names = append(names, u.Name)
		}
	}
	return names
}
