package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/opencluster/oclocks/conf"
	"github.com/opencluster/oclocks/internal/cli/ask"
	"github.com/opencluster/oclocks/internal/cli/setup"
	"github.com/opencluster/oclocks/internal/enroll"
)

// tokenEnv is where the token is looked for if it is not given.
const tokenEnv = "OCLOCKS_JOIN_TOKEN"

func joinCommand() *cobra.Command {
	var n setup.Node
	var token string
	var yes bool
	wait := 30 * time.Second
	cmd := &cobra.Command{
		Use: "join", Short: "Make a node that joins a cluster, with a join token", Args: cobra.NoArgs,
		Long: `Make a node that joins a cluster. A running node of it gives the keys in exchange for a join token, which oclocks-startup
token prints there. The node is one of the cluster when its daemon is started.

The token is TEXT, @FILE, or - for the standard input; or it is in ` + tokenEnv + `. What is not given is asked for on a
terminal; elsewhere, or with --yes, the defaults count. Nothing that is there is overwritten.`,
		Example: `  oclocks-startup join --token @token.txt
  oclocks-startup join --token - --data /var/lib/oclocks --cluster-listen 10.1.2.4:6222 < token.txt`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			asker := asker(cmd, yes)
			if !cmd.Flags().Changed("token") {
				token = os.Getenv(tokenEnv)
			}
			token, err := readToken(cmd, asker, token)
			if err != nil {
				return err
			}
			if err := n.Fill(asker, false, cmd.Flags().Changed); err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), wait)
			defer cancel()
			made, err := setup.Join(ctx, &n, token)
			if err != nil {
				return explainJoin(err)
			}
			return printJoined(cmd.OutOrStdout(), &n, made)
		},
	}
	nodeFlags(cmd, &n)
	f := cmd.Flags()
	f.StringVar(&token, "token", "", "join `TOKEN`, @FILE, or - for the standard input")
	f.DurationVar(&wait, "wait", wait, "how long to try to reach a node of the cluster")
	f.BoolVar(&yes, "yes", false, "ask nothing")
	return cmd
}

func readToken(cmd *cobra.Command, a *ask.Asker, token string) (string, error) {
	switch {
	case token != "":
		return setup.ReadToken(token, cmd.InOrStdin())
	case !a.Able():
		return "", fmt.Errorf("--token %w: a node of the cluster prints one with: oclocks-startup token", setup.ErrMissing)
	}
	checked := ""
	_, err := a.Text("Join token, as oclocks-startup token prints it on a node of the cluster; or @FILE", "", func(s string) (err error) {
		checked, err = setup.ReadToken(s, strings.NewReader(""))
		return err
	})
	return checked, err
}

// explainJoin adds what to do.
func explainJoin(err error) error {
	switch {
	case errors.Is(err, enroll.ErrUnreachable):
		return fmt.Errorf("%w. Is a daemon of the cluster running, and can this machine reach it? If it is at another address, "+
			"make a token with: oclocks-startup token --at nats://HOST:PORT", err)
	case errors.Is(err, conf.ErrExpired), errors.Is(err, enroll.ErrRefused), errors.Is(err, enroll.ErrUsed):
		return fmt.Errorf("%w. A node of the cluster prints another token with: oclocks-startup token", err)
	}
	return err
}

func printJoined(out io.Writer, n *setup.Node, m *setup.Made) error {
	err := table(out, [][]string{
		{"node", n.Name + " (" + m.ID + ")"}, {"cluster", m.Cluster}, {"configuration", m.Config},
		{"keys", n.Data + " (secrets)"}, {"clients", n.Listen}, {"other nodes", n.ClusterListen + ", joins " + strings.Join(m.Routes, " ")},
	})
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "\nNext:")
	return table(out, [][]string{
		{"  oclocks-daemon --config " + m.Config, "# the node joins; the token has done its work"},
		{"  oclocks-config --config " + m.Config + " nodes", "# who is there"},
		{"  oclocks-config --config " + m.Config + " verify", "# what is wrong, if something is"},
	})
}
