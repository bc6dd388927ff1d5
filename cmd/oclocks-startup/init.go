package main

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/opencluster/oclocks/internal/cli/setup"
)

// nodeFlags are what the first node and one that joins are both told.
func nodeFlags(cmd *cobra.Command, n *setup.Node) {
	f := cmd.Flags()
	f.StringVar(&n.Data, "data", "", "`DIR` for the node's identifier, keys and locks, empty or missing (required)")
	f.StringVar(&n.Config, "config", "", "configuration `FILE` to write (default DIR/oclocks.yaml)")
	f.StringVar(&n.Name, "node", "", "`NAME` of this node, for people (default the host's name)")
	f.StringVar(&n.Location, "location", "", "`PATH` that says where this node is, such as eu/fra/rack7")
	f.StringVar(&n.ClusterListen, "cluster-listen", "", "`HOST:PORT` for the other nodes, such as 10.1.2.3:6222 (required)")
	f.StringVar(&n.Advertise, "cluster-advertise", "", "`HOST:PORT` where the other nodes reach that, if it is another address")
	f.StringVar(&n.Listen, "listen", "", "`HOST:PORT` for clients (default port 4222 on the host of --cluster-listen)")
	f.StringVar(&n.HTTP, "http", "", "`HOST:PORT` for health and metrics, or off (default 127.0.0.1:8222)")
}

func initCommand() *cobra.Command {
	var n setup.Node
	var yes bool
	cmd := &cobra.Command{
		Use: "init", Short: "Make the first node of a new cluster", Args: cobra.NoArgs,
		Long: `Make the first node of a new cluster: its identifier, the keys of the cluster, certificates, a configuration file, and
credentials of a first user. The cluster begins when the daemon is started with them.

What is not given is asked for on a terminal; elsewhere, or with --yes, the defaults count. Nothing that is there is
overwritten.`,
		Example: `  oclocks-startup init
  oclocks-startup init --data /var/lib/oclocks --cluster-listen 10.1.2.3:6222 --zone orders --user alice`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := n.Fill(asker(cmd, yes), true, cmd.Flags().Changed); err != nil {
				return err
			}
			made, err := setup.First(&n, os.Environ())
			if err != nil {
				return err
			}
			return printFirst(cmd.OutOrStdout(), &n, made)
		},
	}
	nodeFlags(cmd, &n)
	f := cmd.Flags()
	f.StringVar(&n.Cluster, "cluster", "", "`NAME` of the cluster (default oclocks)")
	f.StringVar(&n.Zone, "zone", "", "`NAME` of the first zone, a tenant with locks of its own (default default)")
	f.BoolVar(&n.Open, "open", false, "the zone is open to everybody who reaches --listen, which must be on loopback")
	f.StringVar(&n.User, "user", "", "make credentials for `NAME`, as admin of that zone")
	f.StringVar(&n.Out, "out", "", "`FILE` for the credentials (default ZONE-NAME.creds beside the configuration file)")
	f.BoolVar(&yes, "yes", false, "ask nothing")
	return cmd
}

func printFirst(out io.Writer, n *setup.Node, m *setup.Made) error {
	rows := [][]string{
		{"node", n.Name + " (" + m.ID + ")"}, {"cluster", m.Cluster}, {"configuration", m.Config},
		{"keys", n.Data + " (secrets: back them up)"}, {"clients", n.Listen}, {"other nodes", n.ClusterListen},
	}
	if m.Creds != "" {
		rows = append(rows, []string{"credentials", m.Creds + " (a secret: whoever has the file is " + n.User + ", admin in zone " + n.Zone + ")"})
	}
	if err := table(out, rows); err != nil {
		return err
	}
	next := [][]string{{"  oclocks-daemon --config " + m.Config, "# the cluster begins"}}
	switch {
	case m.Creds != "":
		next = append(next, []string{"  oclocks-cli --url nats://" + n.Listen + " --creds " + m.Creds + " info", "# be " + n.User})
	case !n.Open:
		next = append(next, []string{"  oclocks-config --config " + m.Config + " user add --zone " + n.Zone + " NAME", "# credentials for somebody"})
	}
	next = append(next, []string{"  oclocks-config --config " + m.Config + " verify", "# what is wrong, if something is"},
		[]string{"  oclocks-startup token --config " + m.Config, "# let another node join: once for each"})
	fmt.Fprintln(out, "\nNext:")
	return table(out, next)
}
