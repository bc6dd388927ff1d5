package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/opencluster/oclocks/internal/cli"
	"github.com/opencluster/oclocks/internal/cli/cluster"
)

func clusterCommand(app *cli.App) *cobra.Command {
	var buckets string
	every := &cli.Duration{Value: time.Second}
	var watch bool
	cmd := &cobra.Command{
		Use:   "cluster [flags]",
		Short: "Show the nodes of the cluster, who leads, and how the buckets are", GroupID: groupBroker,
		Long: `Show the nodes of the cluster, who leads, what each is primary of, how far its copies are, and the buckets that are not as
they should be; with --watch live, q quits.

  LEASE          how long the node may still act without hearing from the leader
  LAG            how many changes the copy that is the furthest behind is behind its primary
  CONFIGURATION  number of the last change of it and the beginning of its hash: the same number means the same hash
  IN SYNC        how many of the copies have everything that was answered
  HISTORY        whether the copies are equal, as far as they go

With --quiet it prints the mode of the cluster; with --json one object a look.`,
		Example: `  oclocks-cli cluster
  oclocks-cli cluster --watch
  oclocks-cli cluster --buckets all`,
		Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			wanted, err := cluster.ParseBuckets(buckets)
			if err != nil {
				return fmt.Errorf("%w: --buckets: %w", cli.ErrUsage, err)
			}
			const least = 100 * time.Millisecond
			if every.Value < least {
				return fmt.Errorf("%w: --every is %v at the least", cli.ErrUsage, least)
			}
			return app.Cluster(cmd.Context(), wanted, every.Value, watch)
		},
	}
	cmd.Flags().StringVar(&buckets, "buckets", "", "show these `BUCKETS`: all, 7, or 16-31")
	cmd.Flags().BoolVar(&watch, "watch", false, "look again and again")
	cmd.Flags().Var(every, "every", "how often to look")
	return cmd
}
