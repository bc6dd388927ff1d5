package main

import (
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/opencluster/oclocks/internal/cli/setup"
)

func tokenCommand() *cobra.Command {
	t := setup.TokenRequest{Life: time.Hour}
	cmd := &cobra.Command{
		Use: "token", Short: "Print a join token, which lets one new node in", Args: cobra.NoArgs,
		Long: setup.TokenHelp,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := load(cmd)
			if err != nil {
				return err
			}
			if s.Data == "" {
				return errors.New("name the data directory of a node with --data DIR or OCLOCKS_DATA, or its configuration file with --config")
			}
			if t.Ask, err = cmd.Flags().GetString(urlFlag); err != nil {
				return err
			}
			t.Data = s.Data
			return t.Print(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	t.AddFlags(cmd.Flags(), "at")
	return cmd
}
