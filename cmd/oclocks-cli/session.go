package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/opencluster/oclocks/internal/cli"
	"github.com/opencluster/oclocks/subjects"
)

func sessionCommand(app *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "session",
		Short: "Open, keep and close sessions by hand", GroupID: groupLocks,
		Long: `Open, keep and close sessions by hand. Locks that are acquired with --session end with it.

The token of a session proves it: keep it to yourself. It may also come from the environment, as OCLOCKS_SESSION.`,
		Example: `  export OCLOCKS_SESSION=$(oclocks-cli session open --quiet | cut -d ' ' -f 1)
  oclocks-cli session keep &
  oclocks-cli acquire --session "$OCLOCKS_SESSION" orders/4714
  oclocks-cli session close`,
		Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(sessionOpenCommand(app), sessionKeepCommand(app), sessionCloseCommand(app))
	return cmd
}

func sessionOpenCommand(app *cli.App) *cobra.Command {
	var lease cli.Duration
	req := &subjects.Request{}
	cmd := &cobra.Command{
		Use:   "open [flags]",
		Short: "Open a session, or come back as an earlier one",
		Long: `Open a session and print its token and its secret. It lives for its lease and as long as somebody keeps it.

With --secret it is an earlier session that comes back; its earlier token is void then. With --quiet it prints the token and
the secret only.`,
		Example: `  oclocks-cli session open --lease 30s`,
		Args:    arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if lease.Given {
				req.TTL, req.Has = lease.Value, subjects.HasTTL
			}
			if req.Holder == "" {
				req.Holder = cli.DefaultHolder()
			}
			return app.OpenSession(cmd.Context(), req)
		},
	}
	cmd.Flags().Var(&lease, "lease", "how long it survives silence (default: the broker's, 10s)")
	cmd.Flags().StringVar(&req.Secret, "secret", "", "`SECRET` of the session to come back as")
	cmd.Flags().StringVar(&req.Holder, "name", "", "`TEXT` by which people know it (default: user@host)")
	cmd.Flags().StringVar(&req.Location, "location", "", "`PLACE` where you are, in the cluster's own words")
	return cmd
}

func sessionKeepCommand(app *cli.App) *cobra.Command {
	once := false
	cmd := &cobra.Command{
		Use:   "keep [--once] [TOKEN]",
		Short: "Keep a session alive until Ctrl-C",
		Long: `Keep a session alive, at each half of its lease, until Ctrl-C; exit code 76 if it is over before, 69 if no broker
answers for the rest of its lease. With --json each answer is printed.`,
		Example: `  oclocks-cli session keep "$OCLOCKS_SESSION"`,
		Args:    arguments(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			token, err := sessionToken(args)
			if err != nil {
				return err
			}
			return app.KeepSession(cmd.Context(), token, once)
		},
	}
	cmd.Flags().BoolVar(&once, "once", false, "one keep-alive, and print the answer")
	return cmd
}

func sessionCloseCommand(app *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:     "close [TOKEN]",
		Short:   "End a session and release all that it holds",
		Long:    `End a session and release all that it holds.`,
		Example: `  oclocks-cli session close "$OCLOCKS_SESSION"`,
		Args:    arguments(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			token, err := sessionToken(args)
			if err != nil {
				return err
			}
			return app.CloseSession(cmd.Context(), token)
		},
	}
}

func sessionToken(args []string) (string, error) {
	if len(args) == 1 {
		return args[0], nil
	}
	if token := os.Getenv("OCLOCKS_SESSION"); token != "" {
		return token, nil
	}
	return "", fmt.Errorf("%w: which session? Give its token, or set OCLOCKS_SESSION", cli.ErrUsage)
}
