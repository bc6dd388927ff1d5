package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/opencluster/oclocks/broker/admin"
	"github.com/opencluster/oclocks/conf/shared"
)

// lookEvery is how often a command looks whether what it waits for has come.
const lookEvery = 100 * time.Millisecond

func nodesCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "nodes", Short: "List the nodes of the cluster, name them, drain them, remove them", Args: cobra.NoArgs,
		Long: `List the nodes of the cluster; the commands below change them. A NODE is given by its number, its name or its identifier.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return with(cmd, func(c *admin.Client, state *admin.State) error {
				views, err := nodeViews(cmd.Context(), c, state)
				if err != nil {
					return err
				}
				if asJSON {
					return printJSON(cmd.OutOrStdout(), views)
				}
				return printNodes(cmd.OutOrStdout(), views)
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.AddCommand(nodeSet(), nodeDrain(), nodeUndrain(), nodeRemove())
	return cmd
}

// nodeView is a node as it is shown.
type nodeView struct {
	shared.Node
	State     string `json:"state"` // leads, up, no answer
	Voter     bool   `json:"voter"` // it votes about who leads
	Primaries int    `json:"primaries"`
	Copies    int    `json:"copies"` // buckets that it has a copy of, by the views
	Change    uint64 `json:"change,omitempty"`
}

func nodeViews(ctx context.Context, c *admin.Client, state *admin.State) ([]nodeView, error) {
	status, err := c.Status(ctx)
	if err != nil {
		return nil, err
	}
	views, err := c.Views(ctx)
	if err != nil {
		return nil, err
	}
	list := make([]nodeView, len(state.Nodes))
	for i := range state.Nodes {
		n := nodeView{Node: state.Nodes[i], State: "no answer"}
		if st := status.Node(n.Number); st != nil {
			n.State, n.Change, n.Voter = "up", st.Change, st.Voter
			switch {
			case st.Leading:
				n.State = "leads"
			case st.Leaving:
				n.State = "stopping"
			case st.Refused != "":
				n.State = "refused: " + st.Refused
			}
		}
		for _, v := range views {
			for at, m := range v.View.Chain {
				if m.Node == n.Number {
					n.Copies++
					if at == 0 {
						n.Primaries++
					}
				}
			}
		}
		list[i] = n
	}
	return list, nil
}

func printNodes(out io.Writer, views []nodeView) error {
	rows := [][]string{{"NODE", "NAME", "STATE", "PRIMARY OF", "COPIES", "PRIORITY", "LOCATION", "CLIENTS", "NODES", "IDENTIFIER"}}
	for i := range views {
		n := &views[i]
		state := n.State
		if n.Drain {
			state += ", drained"
			if n.Primaries > 0 {
				state = n.State + ", draining"
			}
		}
		rows = append(rows, []string{strconv.FormatUint(n.Number, 10), n.Name, state, strconv.Itoa(n.Primaries), strconv.Itoa(n.Copies),
			strconv.Itoa(n.Priority), cmp.Or(n.Location, "-"), cmp.Or(strings.Join(n.Clients, " "), "-"), cmp.Or(strings.Join(n.Routes, " "), "-"), n.ID})
	}
	return table(out, rows)
}

// edit changes one node and says what came of it.
func edit(cmd *cobra.Command, c *admin.Client, e shared.NodeEdit) error {
	_, err := c.Change(cmd.Context(), shared.Command{Node: &e})
	return explain(err)
}

func nodeSet() *cobra.Command {
	var name, location string
	var priority int
	cmd := &cobra.Command{
		Use: "set NODE", Short: "Change a node's name, location or priority", Args: cobra.ExactArgs(1),
		Long: `Change a node's name, location or priority. What is set here goes before what the node's own configuration says.`,
		Example: `  oclocks-config nodes set 2 --name rack7-b --location eu/fra/rack7
  oclocks-config nodes set rack7-b --priority 15     # leads, and is primary, only if nothing else is left`,
		ValidArgsFunction: completeNodes,
		RunE: func(cmd *cobra.Command, args []string) error {
			return with(cmd, func(c *admin.Client, state *admin.State) error {
				n, err := state.Node(args[0])
				if err != nil {
					return err
				}
				e := shared.NodeEdit{Number: n.Number}
				if cmd.Flags().Changed("name") {
					e.Name = &name
				}
				if cmd.Flags().Changed("location") {
					e.Location = &location
				}
				if cmd.Flags().Changed("priority") {
					e.Priority = &priority
				}
				if e.Name == nil && e.Location == nil && e.Priority == nil {
					return errors.New("nothing to change: give --name, --location or --priority")
				}
				if err := edit(cmd, c, e); err != nil {
					return err
				}
				fmt.Fprintf(cmd.OutOrStdout(), "Node %d is changed.\n", n.Number)
				return nil
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&name, "name", "", "a `NAME` for people, which no other node has")
	f.StringVar(&location, "location", "", "a `PATH` such as eu/fra/rack7; empty for none")
	f.IntVar(&priority, "priority", 0, "1, the first choice to lead and to be primary, to 15, the last resort")
	return cmd
}

func nodeDrain() *cobra.Command {
	wait := 30 * time.Second
	cmd := &cobra.Command{
		Use: "drain NODE", Short: "Hand over everything that a node is primary of, so that it can be stopped", Args: cobra.ExactArgs(1),
		Long: `Hand over everything that a node is primary of, and give it nothing until undrain. It keeps its copies. An orderly stop of
the daemon hands over too: drain a node to keep it up and idle, or before it is removed.`,
		ValidArgsFunction: completeNodes,
		RunE: func(cmd *cobra.Command, args []string) error {
			return with(cmd, func(c *admin.Client, state *admin.State) error {
				n, err := state.Node(args[0])
				if err != nil {
					return err
				}
				on := true
				if err := edit(cmd, c, shared.NodeEdit{Number: n.Number, Drain: &on}); err != nil {
					return err
				}
				left := 0
				err = waitFor(cmd.Context(), wait, func(ctx context.Context) (bool, error) {
					left, err = primaries(ctx, c, n.Number)
					return left == 0, err
				})
				switch {
				case err != nil:
					return err
				case left > 0:
					fmt.Fprintf(cmd.OutOrStdout(), "Node %d (%s) is being drained; it is still primary of %d buckets: see oclocks-config nodes.\n",
						n.Number, n.Name, left)
				default:
					fmt.Fprintf(cmd.OutOrStdout(), "Node %d (%s) is drained: it is primary of nothing.\n", n.Number, n.Name)
				}
				return nil
			})
		},
	}
	cmd.Flags().DurationVar(&wait, "wait", wait, "how long to wait until it is done")
	return cmd
}

// primaries counts what a node is primary of.
func primaries(ctx context.Context, c *admin.Client, number uint64) (n int, err error) {
	views, err := c.Views(ctx)
	for _, v := range views {
		if v.View.Epoch > 0 && v.View.Primary().Node == number {
			n++
		}
	}
	return n, err
}

// waitFor looks again and again until it is done, or the time is over, which is no error.
func waitFor(ctx context.Context, limit time.Duration, done func(context.Context) (bool, error)) error {
	deadline := time.Now().Add(limit)
	for {
		if yes, err := done(ctx); yes || err != nil || !time.Now().Before(deadline) {
			return err
		}
		select {
		case <-time.After(lookEvery):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func nodeUndrain() *cobra.Command {
	return &cobra.Command{
		Use: "undrain NODE", Short: "Let a node be primary again", Args: cobra.ExactArgs(1),
		ValidArgsFunction: completeNodes,
		RunE: func(cmd *cobra.Command, args []string) error {
			return with(cmd, func(c *admin.Client, state *admin.State) error {
				n, err := state.Node(args[0])
				if err != nil {
					return err
				}
				off := false
				if err := edit(cmd, c, shared.NodeEdit{Number: n.Number, Drain: &off}); err != nil {
					return err
				}
				fmt.Fprintf(cmd.OutOrStdout(), "Node %d (%s) may be primary again.\n", n.Number, n.Name)
				return nil
			})
		},
	}
}

func nodeRemove() *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use: "remove NODE", Short: "Forget a node for ever", Args: cobra.ExactArgs(1),
		Long: `Forget a node for ever, once its daemon is stopped. Its data directory counts no more: to come back it joins as a new node,
with an empty directory and a join token. A node that is only away for a while need not be removed.`,
		ValidArgsFunction: completeNodes,
		RunE: func(cmd *cobra.Command, args []string) error {
			return with(cmd, func(c *admin.Client, state *admin.State) error {
				n, err := state.Node(args[0])
				if err != nil {
					return err
				}
				status, err := c.Status(cmd.Context())
				if err != nil {
					return err
				}
				if status.Node(n.Number) != nil && !force {
					return fmt.Errorf("node %d (%s) is up: stop its daemon first, which hands over what it is primary of; "+
						"or say --force, and its daemon ends without that", n.Number, n.Name)
				}
				if _, err := c.Change(cmd.Context(), shared.Command{Remove: &shared.Remove{Number: n.Number}}); err != nil {
					return explain(err)
				}
				fmt.Fprintf(cmd.OutOrStdout(), "Node %d (%s) is removed.\n", n.Number, n.Name)
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "also if its daemon runs")
	return cmd
}

func completeNodes(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	var names []string
	if len(args) == 0 {
		_ = with(cmd, func(_ *admin.Client, state *admin.State) error { // nothing to complete with is no reason to complain
			for i := range state.Nodes {
				if !slices.Contains(names, state.Nodes[i].Name) {
					names = append(names, state.Nodes[i].Name)
				}
			}
			return nil
		})
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
