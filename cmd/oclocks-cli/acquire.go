package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/opencluster/oclocks/internal/cli"
	"github.com/opencluster/oclocks/internal/cli/run"
)

func acquireCommand(app *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "acquire [flags] NAME",
		Short: "Take a lock that outlives this command, and print its key", GroupID: groupLocks,
		Long: `Take a lock that outlives this command, and print the grant, with the key to renew and release it.

The lock is static: it is held until it is released, or until its --ttl is over, 60s unless said otherwise; 0s is for
ever. "renew" counts the limit anew. With --session it belongs to that session and ends with it.

Without -w it tries once. With --quiet it prints the key and the token only.`,
		Example: `  oclocks-cli acquire --ttl 10m orders/4712
  read -r key token <<< "$(oclocks-cli acquire -q -w 10s orders/4713)"
  oclocks-cli release orders/4713 "$key"`,
	}
	spec := lockFlags(cmd, app)
	session, request := "", ""
	cmd.Flags().StringVar(&session, "session", "", "`TOKEN` of the session that the lock shall belong to, from \"session open\"")
	cmd.Flags().StringVar(&request, "request", "", "`ID` of this request: repeated with the same id, it takes effect once")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		name, err := onlyName(cmd, args)
		if err != nil {
			return err
		}
		s, err := spec(name)
		if err != nil {
			return err
		}
		if s.Session, s.Request = session, request; s.Holder == "" {
			s.Holder = cli.DefaultHolder()
		}
		return app.Acquire(cmd.Context(), s)
	}
	return cmd
}

// keyOf reads the key, from --key, the argument after the name, or the environment that "lock" gives to its command.
func keyOf(name, flag string, rest []string) (uint64, error) {
	switch {
	case len(rest) > 1, len(rest) == 1 && flag != "":
		return 0, fmt.Errorf("%w: too many arguments: one key is enough", cli.ErrUsage)
	case len(rest) == 1:
		return cli.ParseKey(rest[0])
	case flag != "":
		return cli.ParseKey(flag)
	case os.Getenv(run.EnvName) == name && os.Getenv(run.EnvKey) != "":
		return cli.ParseKey(os.Getenv(run.EnvKey))
	}
	return 0, fmt.Errorf("%w: with which key? It is in the grant: say --key KEY", cli.ErrUsage)
}

// tokenOf reads the fencing token, from --token, or the environment that "lock" gives to its command.
func tokenOf(name, flag string) (uint64, error) {
	switch {
	case flag != "":
		return cli.ParseToken(flag)
	case os.Getenv(run.EnvName) == name && os.Getenv(run.EnvToken) != "":
		return cli.ParseToken(os.Getenv(run.EnvToken))
	}
	return 0, fmt.Errorf("%w: which token? It is in the grant: say --token TOKEN", cli.ErrUsage)
}

func releaseCommand(app *cli.App) *cobra.Command {
	var key, outcome string
	cmd := &cobra.Command{
		Use:   "release [flags] NAME [KEY]",
		Short: "Release a lock by its key", GroupID: groupLocks,
		Long: `Release a lock by its key, which is in the grant. Below "lock NAME -- CMD" the key is known from OCLOCKS_KEY.`,
		Example: `  oclocks-cli release orders/4711 --key 0f3c5a7e9b1d2468
  oclocks-cli release orders/4711 0f3c5a7e9b1d2468 --outcome "all shipped"`,
		RunE: func(cmd *cobra.Command, args []string) error {
			name, rest, err := nameOf(cmd, args)
			if err != nil {
				return err
			}
			k, err := keyOf(name, key, rest)
			if err != nil {
				return err
			}
			return app.Release(cmd.Context(), name, k, outcome)
		},
	}
	nameFlag(cmd, app)
	cmd.Flags().StringVar(&key, "key", "", "unlock `KEY`, 16 hexadecimal digits")
	cmd.Flags().StringVar(&outcome, "outcome", "", "`TEXT` for the lock's history")
	return cmd
}

func renewCommand(app *cli.App) *cobra.Command {
	var key, data string
	var ttl, trusted cli.Duration
	cmd := &cobra.Command{
		Use:   "renew [flags] NAME [KEY]",
		Short: "Count the limit of a hold anew", GroupID: groupLocks,
		Long: `Count the limit of a hold anew, by its key, and print the grant. --ttl and --data replace what there was.

After a grant or a renewal you may trust the lock for 3/4 of the limit that it tells, counted from before the command.
If you have counted that, and have trusted the lock without a break, say with --trusted for how long you still may: then
the lock is renewed in a recovery of its bucket too, where others are refused until it is over. If no answer comes while
you trust it, you do not any more (exit code 76): stop, and renew without --trusted, which begins anew when it is granted.`,
		Example: `  oclocks-cli renew orders/4711 --key 0f3c5a7e9b1d2468
  oclocks-cli renew orders/4711 --key 0f3c5a7e9b1d2468 --ttl 5m
  oclocks-cli renew orders/4711 --key 0f3c5a7e9b1d2468 --trusted 25s    # 20s after: acquire --ttl 60s orders/4711`,
		RunE: func(cmd *cobra.Command, args []string) error {
			name, rest, err := nameOf(cmd, args)
			if err != nil {
				return err
			}
			k, err := keyOf(name, key, rest)
			if err != nil {
				return err
			}
			var raw []byte
			if cmd.Flags().Changed("data") {
				raw = []byte(data)
			}
			return app.Renew(cmd.Context(), name, k, ttl.Pointer(), raw, trusted.Pointer())
		},
	}
	nameFlag(cmd, app)
	cmd.Flags().StringVar(&key, "key", "", "unlock `KEY`, 16 hexadecimal digits")
	cmd.Flags().Var(&ttl, "ttl", "limit from now on; 0s for none")
	cmd.Flags().Var(&trusted, "trusted", "you have trusted the lock without a break, and may for this long from now")
	cmd.Flags().StringVar(&data, "data", "", "`JSON` that everybody sees who asks for the lock")
	return cmd
}

func forceCommand(app *cli.App) *cobra.Command {
	var token, reason string
	var now bool
	cmd := &cobra.Command{
		Use:   "force --token TOKEN --reason TEXT [--now] NAME",
		Short: "Take a lock away from its holder (role admin)", GroupID: groupLocks,
		Long: `Take a lock away from its holder: from exactly the one that has the token. It needs the role admin.

The holder is told and can renew no more. The lock is handed on when the holder has confirmed, or its lease is over: then
it has stopped by itself. With --now it is handed on at once, although the holder may still believe in it: only what checks
the fencing token is protected then.`,
		Example: `  oclocks-cli query orders/4711
  oclocks-cli force orders/4711 --token 1610612737 --reason "host is gone"`,
		RunE: func(cmd *cobra.Command, args []string) error {
			name, err := onlyName(cmd, args)
			if err != nil {
				return err
			}
			if token == "" || reason == "" {
				return fmt.Errorf("%w: force needs --token, as shown by query, and --reason", cli.ErrUsage)
			}
			t, err := cli.ParseToken(token)
			if err != nil {
				return err
			}
			return app.Force(cmd.Context(), name, t, reason, now)
		},
	}
	nameFlag(cmd, app)
	cmd.Flags().StringVar(&token, "token", "", "fencing `TOKEN` of the hold, as shown by query")
	cmd.Flags().StringVar(&reason, "reason", "", "why: a `TEXT` for the holder and the history")
	cmd.Flags().BoolVar(&now, "now", false, "hand on at once, whatever the holder still does")
	return cmd
}
