package main

import (
	"fmt"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"

	"github.com/opencluster/oclocks/internal/cli"
)

const defaultTimeout = 5 * time.Second

// Groups of commands in the help.
const (
	groupLocks  = "locks"
	groupLook   = "look"
	groupBroker = "broker"
)

func command(app *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "oclocks-cli",
		Short: "Take, hold, release and show locks",
		Long: `Take, hold, release and show locks of an oclocks broker.

Where the broker is and who you are comes from the flags, else from the environment of the nats CLI: NATS_URL, NATS_CREDS,
NATS_CONTEXT, and the context selected with "nats context select"; else it is nats://127.0.0.1:4222.

Durations are written 10s, 1m30s, or as a number of seconds. A name is any 1 to 4096 bytes; one that cannot be typed goes
in base64 into --name64, in place of NAME, and is shown quoted, as in "\xff". With --json every answer and event is one
JSON object a line, with the field names of the protocol; what went wrong is one on standard error.

Exit codes:
` + cli.CodesHelp + `
  128+n    ended by signal n
The command "lock" passes on the exit code of the command that it runs, see there.`,
		Example: `  oclocks-cli lock -w 10s orders/4711 -- sh -c 'echo "I hold $OCLOCKS_NAME with token $OCLOCKS_TOKEN"'
  oclocks-cli query orders/4711
  oclocks-cli top --once`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Version:       version(),
	}
	flags := cmd.PersistentFlags()
	timeout := &cli.Duration{Value: defaultTimeout}
	flags.StringVar(&app.URL, "url", "", "`ADDRESS` of the broker, several with commas (default $NATS_URL or nats://127.0.0.1:4222)")
	flags.StringVar(&app.Creds, "creds", "", "`FILE` with the user's credentials (default $NATS_CREDS)")
	flags.StringVar(&app.Context, "context", "", "`NAME` of a NATS context, as of the nats CLI (default $NATS_CONTEXT)")
	flags.Var(timeout, "timeout", "how long to wait for a connection and for the answer to one request")
	flags.BoolVar(&app.JSON, "json", false, "print JSON, one object a line")
	flags.BoolVarP(&app.Quiet, "quiet", "q", false, "print only what a script would read, and nothing when a lock is not free")
	cmd.PersistentPreRunE = func(*cobra.Command, []string) error {
		if app.Timeout = timeout.Value; app.Timeout <= 0 {
			return fmt.Errorf("%w: --timeout must be above 0", cli.ErrUsage)
		}
		return nil
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return fmt.Errorf("%w: %w", cli.ErrUsage, err) })
	cmd.SetOut(app.Stdout)
	cmd.SetErr(app.Stderr)

	cmd.AddGroup(&cobra.Group{ID: groupLocks, Title: "Take and give back:"},
		&cobra.Group{ID: groupLook, Title: "Look:"}, &cobra.Group{ID: groupBroker, Title: "The broker:"})
	cmd.AddCommand(lockCommand(app), acquireCommand(app), releaseCommand(app), renewCommand(app), forceCommand(app),
		sessionCommand(app),
		queryCommand(app), listCommand(app), checkCommand(app), watchCommand(app), topCommand(app),
		infoCommand(app), serversCommand(app), pingCommand(app), clusterCommand(app))
	return cmd
}

// arguments wraps a check of the number of arguments, so that its error counts as wrong usage.
func arguments(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return fmt.Errorf("%w: %w; the form is: %s", cli.ErrUsage, err, cmd.UseLine())
		}
		return nil
	}
}

// version is the module's version, as the go command recorded it.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "devel"
}
