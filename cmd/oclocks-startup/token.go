package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/opencluster/oclocks/conf"
	"github.com/opencluster/oclocks/internal/cli/setup"
)

func tokenCommand() *cobra.Command {
	t := setup.TokenRequest{Life: time.Hour}
	cmd := &cobra.Command{
		Use: "token", Short: "Print a join token, which lets one new node in", Args: cobra.NoArgs,
		Long: setup.TokenHelp,
		Example: `  oclocks-startup token --config /var/lib/oclocks/oclocks.yaml --ttl 10m > token.txt
  oclocks-startup token --data /var/lib/oclocks --at nats://locks.example.org:4222`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := conf.Load(cmd.Flags(), os.Environ())
			if err != nil {
				return err
			}
			if s.Data == "" {
				return fmt.Errorf("--data %w: name the data directory of a node, or its configuration file with --config", setup.ErrMissing)
			}
			t.Data = s.Data
			return t.Print(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	conf.AddFlags(f)
	for _, key := range conf.Keys() {
		if flag := f.Lookup(strings.ReplaceAll(key, "_", "-")); key != "data" && flag != nil {
			flag.Hidden = true
		}
	}
	t.AddFlags(f, "at")
	return cmd
}
