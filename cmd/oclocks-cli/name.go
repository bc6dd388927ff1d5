package main

import (
	"fmt"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/opencluster/oclocks/internal/cli"
)

// nameFlag adds --name64 to a command about one lock, and completion of its NAME.
func nameFlag(cmd *cobra.Command, app *cli.App) {
	cmd.Flags().String("name64", "", "the lock's name in `BASE64`, in place of NAME")
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveDefault
		}
		var names []string
		for _, name := range app.Names(cmd.Context(), typed) {
			if utf8.ValidString(name) && !containsUnprintable(name) {
				names = append(names, name)
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// offer adds completion of a flag that takes one of some words.
func offer[T fmt.Stringer](cmd *cobra.Command, flag string, words ...T) {
	var texts []string
	for _, w := range words {
		texts = append(texts, w.String())
	}
	// It fails only for a flag that is not there or has words already.
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(texts, cobra.ShellCompDirectiveNoFileComp)) // see above
}

func containsUnprintable(name string) bool {
	for _, r := range name {
		if !unicode.IsPrint(r) {
			return true
		}
	}
	return false
}

// nameOf is the name that a command line is about, and the arguments after it.
func nameOf(cmd *cobra.Command, args []string) (name string, rest []string, err error) {
	if cmd.Flags().Changed("name64") {
		encoded, err := cmd.Flags().GetString("name64")
		if err != nil {
			return "", nil, fmt.Errorf("read --name64: %w", err)
		}
		name, err := cli.DecodeName(encoded)
		return name, args, err
	}
	if len(args) == 0 {
		return "", nil, fmt.Errorf("%w: which lock? The form is: %s", cli.ErrUsage, cmd.UseLine())
	}
	return args[0], args[1:], nil
}

// onlyName is nameOf for a command that takes nothing but a name.
func onlyName(cmd *cobra.Command, args []string) (string, error) {
	name, rest, err := nameOf(cmd, args)
	if err == nil && len(rest) > 0 {
		err = fmt.Errorf("%w: too many arguments; the form is: %s", cli.ErrUsage, cmd.UseLine())
	}
	return name, err
}
