package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/opencluster/oclocks/internal/cli/local"
)

// daemonName is the command that local runs.
const daemonName = "oclocks-daemon"

func localCommand() *cobra.Command {
	o := local.Options{Dir: "oclocks-cluster", Port: 4221}
	cmd := &cobra.Command{
		Use: "local", Short: "Run a cluster on this machine, to try it", Args: cobra.NoArgs,
		Long: `Run a cluster on this machine, in the foreground, until Ctrl-C. Each node is a daemon of its own, with its directory, its
configuration file and its log in DIR; run again with the same DIR, the same nodes come back with their locks. Node 1
serves clients at the port after --port, node 2 at the one after that, and so on; for each other the nodes are 100 ports
higher.

It prints one JSON line for each node that serves, then what to try. A node that ends is told and stays away, unless
--restart is given. All nodes end with this command.`,
		Example: `  oclocks-startup local
  oclocks-startup local --nodes 5 --dir /tmp/five --port 5000`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("nodes") && o.Nodes < 1 {
				return fmt.Errorf("--nodes %d: expected 1 to %d", o.Nodes, local.MaxNodes)
			}
			var err error
			if o.Daemon, err = findDaemon(o.Daemon); err != nil {
				return err
			}
			signals := make(chan os.Signal, 2)
			signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
			defer signal.Stop(signals)
			o.Out, o.Log, o.Signals = cmd.OutOrStdout(), cmd.ErrOrStderr(), signals
			return local.Run(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.IntVar(&o.Nodes, "nodes", 0, fmt.Sprintf("how many nodes, 1 to %d (default those that DIR has, or 3)", local.MaxNodes))
	f.StringVar(&o.Dir, "dir", o.Dir, "`DIR` of the cluster")
	f.IntVar(&o.Port, "port", o.Port, "the `PORT` before that of node 1")
	f.BoolVar(&o.HTTP, "http", false, "serve health and metrics too, 200 ports above the clients")
	f.BoolVar(&o.Restart, "restart", false, "start a node again that has ended")
	f.StringVar(&o.Daemon, "daemon", "", "`PATH` of oclocks-daemon (default beside this command, or in PATH)")
	return cmd
}

// findDaemon finds the daemon that belongs to this command.
func findDaemon(path string) (string, error) {
	if path == "" {
		if self, err := os.Executable(); err == nil {
			beside := filepath.Join(filepath.Dir(self), daemonName)
			if info, err := os.Stat(beside); err == nil && !info.IsDir() {
				return beside, nil
			}
		}
		path = daemonName
	}
	found, err := exec.LookPath(path)
	if err != nil && !errors.Is(err, exec.ErrDot) {
		return "", fmt.Errorf("the daemon cannot be run (%w): build it with make build, or name it with --daemon PATH", err)
	}
	return filepath.Abs(found)
}
