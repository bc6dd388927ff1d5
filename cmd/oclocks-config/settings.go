package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/opencluster/oclocks/conf"
)

func setCommand() *cobra.Command {
	return &cobra.Command{
		Use: "set KEY VALUE", Short: "Write a setting into the configuration file", Args: cobra.ExactArgs(2),
		Long: "Write a setting into the configuration file; comments in it stay. `oclocks-config get` shows the keys.",
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveDefault
			}
			return conf.Keys(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			path, err := configFile(cmd)
			if err != nil {
				return err
			}
			if err := conf.SetKey(path, args[0], args[1]); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s is %s in %s.\nIt counts from the next start of the daemon.\n", args[0], args[1], path)
			return nil
		},
	}
}

func getCommand() *cobra.Command {
	return &cobra.Command{
		Use: "get [KEY]", Short: "Print a setting, or all, as the daemon would see them", Args: cobra.MaximumNArgs(1),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return conf.Keys(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := load(cmd)
			if err != nil {
				return err
			}
			if len(args) == 1 {
				value, err := s.Get(args[0])
				if err == nil {
					fmt.Fprintln(cmd.OutOrStdout(), value)
				}
				return err
			}
			var rows [][]string
			for _, key := range conf.Keys() {
				value, err := s.Get(key)
				if err != nil {
					return err
				}
				rows = append(rows, []string{key + ":", value})
			}
			return table(cmd.OutOrStdout(), rows)
		},
	}
}

func verifyCommand() *cobra.Command {
	return &cobra.Command{
		Use: "verify [CREDS-FILE…]", Short: "Check the configuration, the keys, the addresses, and credentials",
		Long: `Check what the daemon would find: whether the configuration is valid, the data directory and the keys can be used, and
the addresses are free; and whether files with credentials count. Prints one line for each check; exits with 1 if one
failed. It changes nothing.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := load(cmd)
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			fmt.Fprintln(out, "ok    configuration: valid")
			failed := 0
			for _, f := range conf.Verify(cmd.Context(), s, args) {
				if f.OK {
					fmt.Fprintf(out, "ok    %s: %s\n", f.What, f.Detail)
					continue
				}
				failed++
				fmt.Fprintf(out, "FAIL  %s: %s. %s\n", f.What, f.Detail, f.Fix)
			}
			switch failed {
			case 0:
				return nil
			case 1:
				return errors.New("one check failed")
			}
			return fmt.Errorf("%d checks failed", failed)
		},
	}
}
