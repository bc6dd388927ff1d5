package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/opencluster/oclocks/internal/cli"
)

func infoCommand(app *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "info",
		Short: "Describe the broker, the zone, and who you are in it", GroupID: groupBroker,
		Long:    `Describe the broker, the zone, and who you are in it. With --quiet it prints the mode of the cluster.`,
		Example: `  oclocks-cli info`,
		Args:    arguments(cobra.NoArgs),
		RunE:    func(cmd *cobra.Command, _ []string) error { return app.Info(cmd.Context()) },
	}
}

func serversCommand(app *cli.App) *cobra.Command {
	var location string
	cmd := &cobra.Command{
		Use:   "servers [--location PLACE]",
		Short: "List the servers of the cluster", GroupID: groupBroker,
		Long:    `List the servers of the cluster, the nearest first. With --quiet it prints their addresses.`,
		Example: `  oclocks-cli servers`,
		Args:    arguments(cobra.NoArgs),
		RunE:    func(cmd *cobra.Command, _ []string) error { return app.Servers(cmd.Context(), location) },
	}
	cmd.Flags().StringVar(&location, "location", "", "`PLACE` where you are, in the cluster's own words")
	return cmd
}

func pingCommand(app *cli.App) *cobra.Command {
	var wait cli.Duration
	every := &cli.Duration{Value: time.Second}
	count := 1
	cmd := &cobra.Command{
		Use:   "ping [flags] [NODE]",
		Short: "Measure the response time of a node", GroupID: groupBroker,
		Long:    `Measure the response time of a node, or of any; and compare its clock with ours.`,
		Example: `  oclocks-cli ping --wait 10s    # wait until a broker is there`,
		Args:    arguments(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			node := ""
			if len(args) == 1 {
				node = args[0]
			}
			if count < 1 {
				return fmt.Errorf("%w: --count is at least 1", cli.ErrUsage)
			}
			return app.Ping(cmd.Context(), node, count, every.Value, wait.Value)
		},
	}
	cmd.Flags().IntVarP(&count, "count", "c", count, "`N` times")
	cmd.Flags().Var(every, "every", "how long between two")
	cmd.Flags().VarP(&wait, "wait", "w", "try again for so long until a broker answers")
	return cmd
}
