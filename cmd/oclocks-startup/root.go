package main

import (
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/opencluster/oclocks/internal/cli/ask"
)

func command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "oclocks-startup",
		Short: "Begin a cluster of lock brokers, and let nodes join it",
		Long: `Begin a cluster of lock brokers, and let nodes join it.

On the first machine:

  oclocks-startup init        # asks what it needs to know; or give it all in flags
  oclocks-daemon --config /var/lib/oclocks/oclocks.yaml
  oclocks-startup token --config /var/lib/oclocks/oclocks.yaml

On every further machine, with a token of its own:

  oclocks-startup join --token TOKEN
  oclocks-daemon --config /var/lib/oclocks/oclocks.yaml

All of it on this machine, to try it:

  oclocks-startup local`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Version:       version(),
	}
	cmd.AddCommand(initCommand(), joinCommand(), tokenCommand(), localCommand())
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fmt.Errorf("%w; for the flags see: %s --help", err, cmd.CommandPath())
	})
	return cmd
}

// asker asks on the terminal, if there is one and nobody said not to.
func asker(cmd *cobra.Command, yes bool) *ask.Asker {
	in, isFile := cmd.InOrStdin().(*os.File)
	out, isToo := cmd.OutOrStdout().(*os.File)
	if yes || !isFile || !isToo {
		return &ask.Asker{}
	}
	return ask.Terminal(in, out)
}

// table prints lines of columns that stand below each other.
func table(out io.Writer, rows [][]string) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	return w.Flush()
}

// version is the module's version, as the go command recorded it.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "devel"
}
