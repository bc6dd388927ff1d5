package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime/debug"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/opencluster/oclocks/conf"
)

// sighup is told after each change that a running daemon takes over at once.
const sighup = "A running daemon takes this over at SIGHUP: kill -HUP PID, or systemctl reload oclocks-daemon."

// everywhere is told in its place in a cluster.
const everywhere = "It counts on all nodes at once."

// Groups of commands in the help.
const (
	groupBoth    = "both"
	groupCluster = "cluster"
)

func command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "oclocks-config",
		Short: "Set up lock brokers: zones, users, settings, the nodes of a cluster",
		Long: `Set up lock brokers: their zones, their users with their credentials, their settings, and the nodes of a cluster.

Run it as the user that the daemon runs as, or as root, and tell it the daemon's configuration file and data directory,
with --config and --data or with OCLOCKS_CONFIG and OCLOCKS_DATA:

  export OCLOCKS_CONFIG=/etc/oclocks/oclocks.yaml OCLOCKS_DATA=/var/lib/oclocks
  oclocks-config zone add orders
  oclocks-config user add --zone orders --role user --context orders alice
  oclocks-config verify

In a cluster, zones, users and shared settings are the cluster's: run it on any node whose daemon runs, and it counts on all
nodes at once. For a daemon that runs alone it changes the files.`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Version:       version(),
	}
	flags := cmd.PersistentFlags()
	conf.AddFlags(flags)
	for _, key := range conf.Keys() {
		if key == "data" {
			continue
		}
		// They count, so that the daemon's command line can be tried here; they would hide what matters.
		if f := flags.Lookup(strings.ReplaceAll(key, "_", "-")); f != nil {
			f.Hidden = true
		}
	}
	flags.String(urlFlag, "", "`ADDRESS` of another node of the cluster to ask, such as nats://10.1.2.3:4222 (default the daemon with that data directory)")
	cmd.AddGroup(&cobra.Group{ID: groupBoth, Title: "Zones, users, settings:"}, &cobra.Group{ID: groupCluster, Title: "The cluster:"})
	for _, c := range []*cobra.Command{zoneCommand(), userCommand(), setCommand(), getCommand(), verifyCommand()} {
		c.GroupID = groupBoth
		cmd.AddCommand(c)
	}
	for _, c := range []*cobra.Command{nodesCommand(), bucketsCommand(), lockCommand(), unlockCommand(), tokenCommand(), alertsCommand()} {
		c.GroupID = groupCluster
		cmd.AddCommand(c)
	}
	tellForm(cmd)
	return cmd
}

// tellForm makes wrong arguments and flags of a command and those below it tell what is right.
func tellForm(cmd *cobra.Command) {
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			if err := check(cmd, args); err != nil {
				return fmt.Errorf("%w; the form is: %s", err, cmd.UseLine())
			}
			return nil
		}
	}
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fmt.Errorf("%w; for the flags see: %s --help", err, cmd.CommandPath())
	})
	for _, c := range cmd.Commands() {
		tellForm(c)
	}
}

// load is the configuration as the daemon would see it.
func load(cmd *cobra.Command) (*conf.Settings, error) {
	return conf.Load(cmd.Flags(), os.Environ())
}

// configFile is the file to edit.
func configFile(cmd *cobra.Command) (string, error) {
	if path := conf.ConfigFile(cmd.Flags(), os.Environ()); path != "" {
		return path, nil
	}
	return "", errors.New("there is no configuration file to change: name it with --config FILE or OCLOCKS_CONFIG")
}

// keys are those of the daemon; create says whether to make them if there are none.
func keys(s *conf.Settings, create bool) (*conf.Auth, error) {
	if s.Data == "" {
		return nil, errors.New("there is no data directory to keep keys in: name the daemon's with --data DIR or OCLOCKS_DATA")
	}
	if create {
		return conf.OpenAuth(s.Data)
	}
	auth, err := conf.ReadAuth(s.Data)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("no keys in %s: is that the daemon's data directory? (%w)", s.Data, err)
	}
	return auth, err
}

// table prints lines of columns that stand below each other.
func table(out io.Writer, rows [][]string) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	return w.Flush()
}

func printJSON(out io.Writer, v any) error {
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// version is the module's version, as the go command recorded it.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "devel"
}
