package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/opencluster/oclocks/broker/admin"
	"github.com/opencluster/oclocks/conf"
	"github.com/opencluster/oclocks/internal/cli/setup"
)

func tokenCommand() *cobra.Command {
	var urls []string
	var asJSON bool
	ttl := time.Hour
	cmd := &cobra.Command{
		Use: "token", Short: "Print a join token, which lets one new node in", Args: cobra.NoArgs,
		Long: `Print a join token, which lets one new node into the cluster of this one. It is a secret until it was used or has expired.

Run it on a node of the cluster, as the user that the daemon runs as, and tell it the daemon's configuration file or data
directory. The token alone goes to the standard output.`,
		Example: `  oclocks-startup token --config /var/lib/oclocks/oclocks.yaml --ttl 10m > token.txt
  oclocks-startup token --data /var/lib/oclocks --url nats://locks.example.org:4222`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := conf.Load(cmd.Flags(), os.Environ())
			if err != nil {
				return err
			}
			if s.Data == "" {
				return fmt.Errorf("--data %w: name the data directory of a node, or its configuration file with --config", setup.ErrMissing)
			}
			if len(urls) == 0 {
				if urls, err = known(cmd.Context(), s.Data); err != nil {
					return err
				}
			}
			i, err := setup.Invite(s.Data, urls, ttl)
			if err != nil {
				return err
			}
			if asJSON {
				return json.NewEncoder(cmd.OutOrStdout()).Encode(i)
			}
			fmt.Fprintln(cmd.OutOrStdout(), i.Token)
			fmt.Fprintf(cmd.ErrOrStderr(), "It lets one node in, until %s, by way of %s. On the new machine:\n  oclocks-startup join --token TOKEN\n",
				i.Expires.Format(time.RFC3339), strings.Join(i.URLs, " "))
			if i.Local() {
				fmt.Fprintln(cmd.ErrOrStderr(), "Only this machine reaches that address. For another one name an address that it reaches, with --url.")
			}
			return nil
		},
	}
	f := cmd.Flags()
	conf.AddFlags(f)
	for _, key := range conf.Keys() {
		if flag := f.Lookup(strings.ReplaceAll(key, "_", "-")); key != "data" && flag != nil {
			flag.Hidden = true
		}
	}
	f.DurationVar(&ttl, "ttl", ttl, "how long it counts, 1m to 168h")
	f.StringSliceVar(&urls, "url", nil, "`ADDRESS` where the new node reaches a daemon's clients' port, several with commas (default those of the cluster)")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// known asks the daemon where the nodes of its cluster are.
func known(ctx context.Context, data string) ([]string, error) {
	client, err := admin.Dial(data, "")
	if err != nil {
		return nil, fmt.Errorf("ask where the nodes of the cluster are: %w", err)
	}
	defer client.Close()
	state, err := client.State(ctx)
	if err != nil {
		return nil, fmt.Errorf("ask where the nodes of the cluster are: %w", err)
	}
	return setup.ClientURLs(state.Nodes), nil
}
