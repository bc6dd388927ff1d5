package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/opencluster/oclocks/internal/cli"
	"github.com/opencluster/oclocks/subjects"
)

func queryCommand(app *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "query NAME",
		Short: "Show who holds a lock and who waits for it", GroupID: groupLook,
		Long:    `Show who holds a lock and who waits for it. With --quiet it prints "held" or "free".`,
		Example: `  oclocks-cli query orders/4711`,
		RunE: func(cmd *cobra.Command, args []string) error {
			name, err := onlyName(cmd, args)
			if err != nil {
				return err
			}
			return app.Query(cmd.Context(), name)
		},
	}
	nameFlag(cmd, app)
	return cmd
}

func listCommand(app *cli.App) *cobra.Command {
	var prefix, prefix64, state string
	var olderThan cli.Duration
	var limit int
	cmd := &cobra.Command{
		Use:   "list [flags]",
		Short: "List locks, in the order of their names", GroupID: groupLook,
		Long: `List locks that are held or waited for, in the order of their names, all pages of them.

With --quiet it prints the names only.`,
		Example: `  oclocks-cli list --prefix orders/
  oclocks-cli list --older-than 1h --limit 20
  oclocks-cli list --state waited --json`,
		Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			req := &subjects.Request{Prefix: prefix, OlderThan: olderThan.Value}
			var err error
			if cmd.Flags().Changed("prefix64") {
				if req.Prefix, err = cli.DecodeName(prefix64); err != nil {
					return err
				}
			}
			if limit < 0 {
				return fmt.Errorf("%w: --limit is a number of locks, 0 for all", cli.ErrUsage)
			}
			if req.State, err = cli.Word("--state", state, subjects.AnyState, subjects.Held, subjects.Waited); err != nil {
				return err
			}
			return app.List(cmd.Context(), req, limit)
		},
	}
	f := cmd.Flags()
	f.StringVar(&prefix, "prefix", "", "only names that begin with `TEXT`")
	f.StringVar(&prefix64, "prefix64", "", "the same, in `BASE64`")
	f.Var(&olderThan, "older-than", "only what has been held for so long")
	f.StringVar(&state, "state", "", "only those in this `STATE`: held, or waited (they have a queue)")
	f.IntVar(&limit, "limit", 0, "`N` locks at the most; 0 for all")
	offer(cmd, "state", subjects.Held, subjects.Waited)
	return cmd
}

func checkCommand(app *cli.App) *cobra.Command {
	var token string
	cmd := &cobra.Command{
		Use:   "check [--token TOKEN] NAME",
		Short: "Check a fencing token", GroupID: groupLook,
		Long: `Check whether a fencing token is that of a present holder: exit code 0 if it is, 1 if not. Below "lock NAME -- CMD" the
token is known from OCLOCKS_TOKEN.

A resource that can remember the highest token it has seen has no need to ask.`,
		Example: `  oclocks-cli check orders/4711 --token 1610612737 && echo "still ours"`,
		RunE: func(cmd *cobra.Command, args []string) error {
			name, err := onlyName(cmd, args)
			if err != nil {
				return err
			}
			t, err := tokenOf(name, token)
			if err != nil {
				return err
			}
			return app.Check(cmd.Context(), name, t)
		},
	}
	nameFlag(cmd, app)
	cmd.Flags().StringVar(&token, "token", "", "fencing `TOKEN`")
	return cmd
}

func watchCommand(app *cli.App) *cobra.Command {
	prefix := ""
	cmd := &cobra.Command{
		Use:   "watch [lock|server|session|all]",
		Short: "Print events as they come", GroupID: groupLook,
		Long: `Print events as they come, until Ctrl-C.

  lock      locks are granted, released, expired, lost, forced; only in zones that have these events switched on
  server    servers come, go and change, and so does the mode of the cluster
  session   what the sessions of your user are told: lost locks, grants of waiting requests
  all       all of these, the default`,
		Example: `  oclocks-cli watch
  oclocks-cli watch lock --prefix orders/ --json`,
		ValidArgs: cli.WatchFamilies,
		Args:      arguments(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			family := "all"
			if len(args) == 1 {
				family = args[0]
			}
			return app.Watch(cmd.Context(), family, prefix)
		},
	}
	cmd.Flags().StringVar(&prefix, "prefix", "", "of locks, only those whose names begin with `TEXT`")
	return cmd
}

func topCommand(app *cli.App) *cobra.Command {
	var prefix string
	every := &cli.Duration{Value: time.Second}
	var once bool
	cmd := &cobra.Command{
		Use:   "top [flags]",
		Short: "Show the longest queues and their holders, live", GroupID: groupLook,
		Long: `Show the locks with the longest queues, who holds them and who is next, live; q quits.

Where the output is no terminal, it is printed again and again.`,
		Example: `  oclocks-cli top
  oclocks-cli top --once --prefix orders/`,
		Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			const least = 50 * time.Millisecond
			if every.Value < least {
				return fmt.Errorf("%w: --every is %v at the least", cli.ErrUsage, least)
			}
			return app.Top(cmd.Context(), prefix, every.Value, once)
		},
	}
	cmd.Flags().StringVar(&prefix, "prefix", "", "only names that begin with `TEXT`")
	cmd.Flags().Var(every, "every", "how often to look")
	cmd.Flags().BoolVar(&once, "once", false, "look once and print that")
	return cmd
}
