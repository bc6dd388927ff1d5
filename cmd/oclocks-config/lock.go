package main

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/opencluster/oclocks/broker/admin"
	"github.com/opencluster/oclocks/conf/shared"
)

// explain adds what to do about a refusal.
func explain(err error) error {
	switch {
	case errors.Is(err, shared.ErrLocked):
		return fmt.Errorf("%w: whoever may change it unlocks it with: oclocks-config unlock", err)
	case errors.Is(err, shared.ErrStale):
		return fmt.Errorf("%w: look again, and try again", err)
	case errors.Is(err, admin.ErrUnknown), errors.Is(err, admin.ErrUnavailable):
		return fmt.Errorf("%w: look with oclocks-config get, nodes or zone list, and try again", err)
	}
	return err
}

func lockCommand() *cobra.Command {
	return &cobra.Command{
		Use: "lock", Short: "Lock the cluster's configuration: it cannot be changed until it is unlocked", Args: cobra.NoArgs,
		Long: `Lock the cluster's configuration: its settings, zones, users and nodes cannot be changed until it is unlocked. Nodes still
come and go, and buckets move as balance wants. It keeps accidents away, where some other process deploys the configuration;
whoever can read a node's data directory can unlock it.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return with(cmd, func(c *admin.Client, _ *admin.State) error {
				if _, err := c.Change(cmd.Context(), shared.Command{Lock: &shared.Lock{}}); err != nil && !errors.Is(err, shared.ErrLocked) {
					return explain(err)
				}
				fmt.Fprintln(cmd.OutOrStdout(), "The configuration is locked.")
				return nil
			})
		},
	}
}

func unlockCommand() *cobra.Command {
	return &cobra.Command{
		Use: "unlock", Short: "Let the cluster's configuration be changed again", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return with(cmd, func(c *admin.Client, _ *admin.State) error {
				if _, err := c.Change(cmd.Context(), shared.Command{Unlock: &shared.Lock{}}); err != nil {
					return explain(err)
				}
				fmt.Fprintln(cmd.OutOrStdout(), "The configuration can be changed.")
				return nil
			})
		},
	}
}

func alertsCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "alerts", Short: "Print the alerts that a node has heard, the newest last", Args: cobra.NoArgs,
		Long: `Print the alerts that a node has heard since its start, of all nodes, the newest last. Each is something that people should
look into. They are in the log of every node too.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			// Without a leader too: the node that is asked knows them by itself, and then nodes go without their names.
			c, _, err := dial(cmd)
			if err != nil {
				return err
			}
			defer c.Close()
			alerts, err := c.Alerts(cmd.Context())
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(cmd.OutOrStdout(), alerts)
			}
			if len(alerts) == 0 {
				fmt.Fprintln(cmd.OutOrStdout(), "none")
				return nil
			}
			state, err := c.State(cmd.Context())
			if err != nil {
				state = &admin.State{}
			}
			rows := [][]string{{"TIME", "NODE", "BUCKET", "ALERT"}}
			for _, a := range alerts {
				bucket, node := "-", fmt.Sprint(a.Node)
				if a.Bucket >= 0 {
					bucket = strconv.FormatInt(a.Bucket, 10)
				}
				if n, err := state.Node(node); err == nil {
					node += " (" + n.Name + ")"
				}
				rows = append(rows, []string{a.Time.UTC().Format(time.RFC3339), node, bucket, a.Text})
			}
			return table(cmd.OutOrStdout(), rows)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
