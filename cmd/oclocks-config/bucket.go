package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/opencluster/oclocks/broker/admin"
	"github.com/opencluster/oclocks/conf/shared"
)

func bucketsCommand() *cobra.Command {
	var asJSON, all bool
	cmd := &cobra.Command{
		Use: "buckets", Short: "Show how the buckets are spread, double their number, move one", Args: cobra.NoArgs,
		Long: `Show how the buckets are spread over the nodes: each lock belongs to one of them by its name, each has one node that is its
primary, and copies on others. The commands below change it.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return with(cmd, func(c *admin.Client, state *admin.State) error {
				views, err := c.Views(cmd.Context())
				if err != nil {
					return err
				}
				list := bucketViews(state, views)
				switch {
				case asJSON:
					return printJSON(cmd.OutOrStdout(), list)
				case all:
					return printBuckets(cmd, state, list)
				}
				return printSpread(cmd, state, list)
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON: every bucket")
	cmd.Flags().BoolVar(&all, "all", false, "print every bucket")
	cmd.AddCommand(bucketsDouble(), bucketsMove(), bucketsUnpin())
	return cmd
}

// bucketView is a bucket as it is shown.
type bucketView struct {
	Bucket uint32   `json:"bucket"`
	Epoch  uint64   `json:"epoch"`
	Chain  []uint64 `json:"chain"`   // numbers of the nodes that have a copy, the primary first
	InSync int      `json:"in_sync"` // how many of them have everything that was answered
	Pin    uint64   `json:"pin,omitempty"`
}

func bucketViews(state *admin.State, views []shared.BucketView) []bucketView {
	list := make([]bucketView, len(views))
	for i, v := range views {
		b := bucketView{Bucket: v.Bucket, Epoch: v.View.Epoch, InSync: v.View.InSync, Chain: []uint64{}}
		for _, m := range v.View.Chain {
			b.Chain = append(b.Chain, m.Node)
		}
		for _, p := range state.Pins {
			if p.Bucket == b.Bucket {
				b.Pin = p.Number
			}
		}
		list[i] = b
	}
	return list
}

func printSpread(cmd *cobra.Command, state *admin.State, list []bucketView) error {
	out := cmd.OutOrStdout()
	none := 0
	for i := range list {
		if len(list[i].Chain) == 0 {
			none++
		}
	}
	fmt.Fprintf(out, "%d buckets, %d moved by hand", len(list), len(state.Pins))
	if none > 0 {
		fmt.Fprintf(out, ", %d without a primary yet", none)
	}
	fmt.Fprint(out, "\n\n")
	rows := [][]string{{"NODE", "NAME", "PRIMARY OF", "COPIES"}}
	for i := range state.Nodes {
		n := &state.Nodes[i]
		first, copies := 0, 0
		for _, b := range list {
			for at, number := range b.Chain {
				if number == n.Number {
					copies++
					if at == 0 {
						first++
					}
				}
			}
		}
		rows = append(rows, []string{strconv.FormatUint(n.Number, 10), n.Name, strconv.Itoa(first), strconv.Itoa(copies)})
	}
	return table(out, rows)
}

func printBuckets(cmd *cobra.Command, state *admin.State, list []bucketView) error {
	rows := [][]string{{"BUCKET", "EPOCH", "PRIMARY", "COPIES", "IN SYNC", "MOVED TO"}}
	name := func(number uint64) string {
		for i := range state.Nodes {
			if state.Nodes[i].Number == number {
				return state.Nodes[i].Name
			}
		}
		return fmt.Sprint("node ", number)
	}
	for _, b := range list {
		names := []string{"-"}
		for _, number := range b.Chain {
			names = append(names, name(number))
		}
		primary, copies, pin := "-", "-", "-"
		if len(names) > 1 {
			primary = names[1]
		}
		if len(names) > 2 {
			copies = strings.Join(names[2:], " ")
		}
		if b.Pin > 0 {
			pin = name(b.Pin)
		}
		rows = append(rows, []string{fmt.Sprint(b.Bucket), fmt.Sprint(b.Epoch), primary, copies, strconv.Itoa(b.InSync), pin})
	}
	return table(cmd.OutOrStdout(), rows)
}

func bucketsDouble() *cobra.Command {
	return &cobra.Command{
		Use: "double", Short: "Double the number of buckets, while the cluster runs", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return with(cmd, func(c *admin.Client, state *admin.State) error {
				if _, err := c.Change(cmd.Context(), shared.Command{Double: &shared.Double{Buckets: state.Buckets}}); err != nil {
					return explain(err)
				}
				fmt.Fprintf(cmd.OutOrStdout(), "There are %d buckets now, before %d.\n", 2*state.Buckets, state.Buckets)
				return nil
			})
		},
	}
}

func parseBucket(text string, state *admin.State) (uint32, error) {
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil || n >= uint64(state.Buckets) {
		return 0, fmt.Errorf("bucket %q: expected 0 to %d", text, state.Buckets-1)
	}
	return uint32(n), nil
}

func bucketsMove() *cobra.Command {
	wait := 30 * time.Second
	cmd := &cobra.Command{
		Use: "move BUCKET NODE", Short: "Make a node be a bucket's primary, as long as it is alive", Args: cobra.ExactArgs(2),
		Long: `Make a node be a bucket's primary, by a planned hand-over, and keep it there as long as the node is alive, instead of what
balance wants, until unpin.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return with(cmd, func(c *admin.Client, state *admin.State) error {
				bucket, err := parseBucket(args[0], state)
				if err != nil {
					return err
				}
				n, err := state.Node(args[1])
				if err != nil {
					return err
				}
				if _, err := c.Change(cmd.Context(), shared.Command{Pin: &shared.Pin{Bucket: bucket, Number: n.Number}}); err != nil {
					return explain(err)
				}
				there := false
				err = waitFor(cmd.Context(), wait, func(ctx context.Context) (bool, error) {
					views, err := c.Views(ctx)
					there = int(bucket) < len(views) && views[bucket].View.Epoch > 0 && views[bucket].View.Primary().Node == n.Number
					return there, err
				})
				switch {
				case err != nil:
					return err
				case there:
					fmt.Fprintf(cmd.OutOrStdout(), "Node %d (%s) is primary of bucket %d.\n", n.Number, n.Name, bucket)
				default:
					fmt.Fprintf(cmd.OutOrStdout(), "Bucket %d is to move to node %d (%s), and has not yet: see oclocks-config buckets --all.\n", bucket, n.Number, n.Name)
				}
				return nil
			})
		},
	}
	cmd.Flags().DurationVar(&wait, "wait", wait, "how long to wait until it is done")
	return cmd
}

func bucketsUnpin() *cobra.Command {
	return &cobra.Command{
		Use: "unpin BUCKET", Short: "Let balance decide again who is a bucket's primary", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return with(cmd, func(c *admin.Client, state *admin.State) error {
				bucket, err := parseBucket(args[0], state)
				if err != nil {
					return err
				}
				if _, err := c.Change(cmd.Context(), shared.Command{Unpin: &shared.Unpin{Bucket: bucket}}); err != nil {
					return explain(err)
				}
				fmt.Fprintf(cmd.OutOrStdout(), "Bucket %d goes where balance wants it.\n", bucket)
				return nil
			})
		},
	}
}
