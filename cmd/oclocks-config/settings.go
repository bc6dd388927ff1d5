package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/opencluster/oclocks/broker/admin"
	"github.com/opencluster/oclocks/conf"
	"github.com/opencluster/oclocks/conf/shared"
)

// settingKeys are all that there are: those of the file, then those that only a cluster has.
func settingKeys() []string {
	keys := conf.Keys()
	for _, key := range shared.Keys() {
		if !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	return keys
}

func completeKeys(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveDefault
	}
	return settingKeys(), cobra.ShellCompDirectiveNoFileComp
}

func setCommand() *cobra.Command {
	return &cobra.Command{
		Use: "set KEY VALUE", Short: "Change a setting: of the whole cluster, or of this node in its file", Args: cobra.ExactArgs(2),
		Long: `Change a setting. Those that all nodes of a cluster share are changed in the cluster, at once and for all nodes. The others,
and those of a daemon that runs alone, are written into the configuration file; comments in it stay, and they count from the
next start of the daemon. oclocks-config get shows the keys, and which are shared.`,
		ValidArgsFunction: completeKeys,
		RunE: func(cmd *cobra.Command, args []string) error {
			if slices.Contains(shared.Keys(), args[0]) || args[0] == "buckets" {
				client, in, err := dialOrFile(cmd)
				if wrong := new(conf.KeyError); err != nil && !errors.As(err, &wrong) { // a file with a mistake is to be corrected
					return err
				}
				if in {
					defer client.Close()
					return setShared(cmd, client, args[0], args[1])
				}
			}
			return setLocal(cmd, args[0], args[1])
		},
	}
}

func setShared(cmd *cobra.Command, client *admin.Client, key, value string) error {
	if key == "buckets" {
		return fmt.Errorf("the number of buckets of a cluster can be doubled only: oclocks-config buckets double")
	}
	r, err := client.Change(cmd.Context(), shared.Command{Set: &shared.Set{Settings: map[string]string{key: value}}})
	if err != nil {
		return explain(err)
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%s is %s on all nodes (change %d).\n", key, value, r.Change)
	switch key {
	case "min_quorum":
		warnQuorum(cmd, client)
	case "acks":
		fmt.Fprintln(cmd.OutOrStdout(), "A node goes by it from its next start on.")
	}
	return nil
}

// warnQuorum warns if so many nodes are asked for that nothing is granted now. It is no error if that cannot be known.
func warnQuorum(cmd *cobra.Command, client *admin.Client) {
	state, err := client.State(cmd.Context())
	if err != nil {
		return
	}
	status, err := client.Status(cmd.Context())
	if err != nil {
		return
	}
	if f := quorumFinding(state, status); !f.OK {
		fmt.Fprintf(cmd.ErrOrStderr(), "oclocks-config: now %s: %s\n", f.Detail, f.Fix)
	}
}

func setLocal(cmd *cobra.Command, key, value string) error {
	if !slices.Contains(conf.Keys(), key) && slices.Contains(shared.Keys(), key) {
		return fmt.Errorf("%s: %w", key, errAlone)
	}
	path, err := configFile(cmd)
	if err != nil {
		return err
	}
	if err := conf.SetKey(path, key, value); err != nil {
		return err
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%s is %s in %s.\nIt counts from the next start of the daemon.\n", key, value, path)
	if flag, ok := map[string]string{"node": "name", "location": "location", "priority": "priority"}[key]; ok {
		if s, err := load(cmd); err == nil && s.Clustered() {
			fmt.Fprintf(cmd.OutOrStdout(), "At once, and from any node: oclocks-config nodes set NODE --%s %s\n", flag, value)
		}
	}
	return nil
}

// settingView is one setting as it counts.
type settingView struct {
	Key    string `json:"key"`
	Value  string `json:"value"`
	Shared bool   `json:"shared"` // by all nodes of the cluster
	Help   string `json:"help,omitempty"`
	Values string `json:"values,omitempty"` // that it can have
}

func getCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "get [KEY]", Short: "Print a setting, or all, as they count", Args: cobra.MaximumNArgs(1),
		Long: `Print a setting, or all: those of this node as its daemon would see them, and in a cluster those that all nodes share.`,
		ValidArgsFunction: func(cmd *cobra.Command, args []string, text string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return completeKeys(cmd, args, text)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			all, err := settings(cmd)
			if err != nil {
				return err
			}
			if len(args) == 1 {
				i := slices.IndexFunc(all, func(v settingView) bool { return v.Key == args[0] })
				switch {
				case i < 0 && slices.Contains(shared.Keys(), args[0]):
					return fmt.Errorf("%s: %w", args[0], errAlone)
				case i < 0:
					_, err := (&conf.Settings{}).Get(args[0]) // which says what comes near
					return err
				case !asJSON:
					fmt.Fprintln(cmd.OutOrStdout(), all[i].Value)
					return nil
				}
				return printJSON(cmd.OutOrStdout(), all[i])
			}
			if asJSON {
				return printJSON(cmd.OutOrStdout(), all)
			}
			return printSettings(cmd, all)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// settings gathers those of the node, without those that the cluster has in their place, then those of the cluster.
func settings(cmd *cobra.Command) ([]settingView, error) {
	s, err := load(cmd)
	if err != nil {
		return nil, err
	}
	state, in, err := stateIf(cmd.Context(), cmd, s)
	if err != nil {
		return nil, err
	}
	var all []settingView
	for _, key := range conf.Keys() {
		value, err := s.Get(key)
		if err != nil {
			return nil, err
		}
		if !in || key != "buckets" && !slices.Contains(shared.Keys(), key) {
			all = append(all, settingView{Key: key, Value: value})
		}
	}
	if !in {
		return all, nil
	}
	for _, key := range shared.Keys() {
		help, values := shared.Help(key)
		all = append(all, settingView{key, state.Settings[key], true, help, values})
	}
	return append(all, settingView{Key: "buckets", Value: fmt.Sprint(state.Buckets), Shared: true, Help: "number of buckets", Values: "double"}), nil
}

// stateIf is the state of the cluster; in is false if there is none.
func stateIf(ctx context.Context, cmd *cobra.Command, s *conf.Settings) (state *admin.State, in bool, err error) {
	client, in, err := dialIf(cmd, s)
	if err != nil || !in {
		return nil, false, err
	}
	defer client.Close()
	state, err = client.State(ctx)
	return state, true, err
}

func printSettings(cmd *cobra.Command, all []settingView) error {
	var own, common [][]string
	for _, v := range all {
		if v.Shared {
			common = append(common, []string{v.Key + ":", v.Value, "# " + v.Help + ": " + v.Values})
			continue
		}
		own = append(own, []string{v.Key + ":", v.Value})
	}
	out := cmd.OutOrStdout()
	if common == nil {
		return table(out, own)
	}
	fmt.Fprintln(out, "# of this node")
	if err := table(out, own); err != nil {
		return err
	}
	fmt.Fprintln(out, "\n# shared by all nodes of the cluster")
	return table(out, common)
}
