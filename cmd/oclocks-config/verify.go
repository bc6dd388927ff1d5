package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/opencluster/oclocks/broker/admin"
	"github.com/opencluster/oclocks/broker/control"
	"github.com/opencluster/oclocks/conf"
	"github.com/opencluster/oclocks/conf/shared"
)

// reachWait is how long another node may take to answer at its clients' address.
const reachWait = 2 * time.Second

func verifyCommand() *cobra.Command {
	return &cobra.Command{
		Use: "verify [CREDS-FILE…]", Short: "Check the configuration, the keys, the addresses, the cluster, and credentials",
		Long: `Check what the daemon would find: whether the configuration is valid, the data directory, the keys and the certificates can
be used, the addresses are free, the other nodes are reached, and the cluster is whole; and whether files with credentials
count. Prints one line for each check; exits with 1 if one failed. It changes nothing.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := load(cmd)
			if err != nil {
				return err
			}
			findings := []conf.Finding{{What: "configuration", OK: true, Detail: "valid"}}
			state, ofCluster := clusterFindings(cmd, s)
			if zones := clusterZones(s, state, ofCluster); zones != nil {
				s.Zones = zones
			}
			findings = append(findings, conf.Verify(cmd.Context(), s, args)...)
			return report(cmd, append(findings, ofCluster...))
		},
	}
}

// report prints a line for each finding.
func report(cmd *cobra.Command, findings []conf.Finding) error {
	failed := 0
	for _, f := range findings {
		if f.OK {
			fmt.Fprintf(cmd.OutOrStdout(), "ok    %s: %s\n", f.What, f.Detail)
			continue
		}
		failed++
		stop := "."
		if strings.HasSuffix(f.Detail, "?") {
			stop = ""
		}
		fmt.Fprintf(cmd.OutOrStdout(), "FAIL  %s: %s%s %s\n", f.What, f.Detail, stop, sentence(f.Fix))
	}
	switch failed {
	case 0:
		return nil
	case 1:
		return errors.New("one check failed")
	}
	return fmt.Errorf("%d checks failed", failed)
}

// sentence begins with a capital letter, unless it begins with a command.
func sentence(text string) string {
	if text == "" || strings.HasPrefix(text, "oclocks-") || strings.HasPrefix(text, "ch") { // chmod, chown
		return text
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// clusterZones are the zones that count: those of the cluster, or, where it cannot be asked, those that have keys. nil: those
// of the file.
func clusterZones(s *conf.Settings, state *admin.State, findings []conf.Finding) []conf.Zone {
	var zones []conf.Zone
	if state != nil {
		for _, z := range state.Zones {
			zones = append(zones, z.Zone)
		}
		return zones
	}
	if len(findings) == 0 {
		return nil
	}
	auth, err := conf.ReadAuth(s.Data)
	if err != nil {
		return nil
	}
	for _, name := range auth.Zones() {
		zones = append(zones, conf.Zone{Name: name})
	}
	return zones
}

// clusterFindings looks at the cluster through the daemon on this machine. There is nothing to find for a daemon that is in
// none; state is nil if it cannot be asked.
func clusterFindings(cmd *cobra.Command, s *conf.Settings) (state *admin.State, findings []conf.Finding) {
	ctx := cmd.Context()
	ask := conf.Finding{What: "cluster"}
	client, in, err := dialIf(cmd, s)
	if err == nil && !in {
		return nil, nil
	}
	if err != nil {
		ask.Detail, ask.Fix = err.Error(), "its log says why it does not run"
		return nil, []conf.Finding{ask}
	}
	defer client.Close()
	state, err = client.State(ctx)
	var status *admin.Status
	if err == nil {
		status, err = client.Status(ctx)
	}
	var views []shared.BucketView
	if err == nil {
		views, err = client.Views(ctx)
	}
	if err != nil {
		ask.Detail, ask.Fix = err.Error(), "see that more than half of the nodes that vote are up and reach each other"
		return nil, []conf.Finding{ask}
	}
	findings = append(findings, leaderFinding(state, status), bucketFinding(state, views), quorumFinding(state, status))
	for i := range state.Nodes {
		findings = append(findings, nodeFinding(ctx, &state.Nodes[i], status))
	}
	if state.Cluster != s.Cluster {
		findings = append(findings, conf.Finding{What: "cluster name", Detail: fmt.Sprintf("cluster is set to %s here, and its name is %s", s.Cluster, state.Cluster),
			Fix: "oclocks-config set cluster " + state.Cluster})
	}
	return state, findings
}

func leaderFinding(state *admin.State, status *admin.Status) conf.Finding {
	f := conf.Finding{What: "cluster " + state.Cluster}
	votes := 0
	for i := range status.Nodes {
		if status.Nodes[i].Voter {
			votes++
		}
	}
	for i := range status.Nodes {
		if st := &status.Nodes[i]; st.Leading {
			f.OK, f.Detail = true, fmt.Sprintf("node %d (%s) leads, nodes that vote: %d, change %d", st.Number, st.Name, votes, state.Change)
			if state.Locked {
				f.Detail += "; the configuration is locked"
			}
			return f
		}
	}
	f.Detail, f.Fix = "nobody leads", "see that more than half of the nodes that vote are up and reach each other"
	return f
}

func bucketFinding(state *admin.State, views []shared.BucketView) conf.Finding {
	f := conf.Finding{What: "buckets", OK: true, Detail: fmt.Sprintf("all %d have a primary", len(views))}
	none, alone := 0, 0
	for _, v := range views {
		switch {
		case v.View.Epoch == 0:
			none++
		case v.View.InSync < 2:
			alone++
		}
	}
	switch {
	case none > 0:
		f.OK, f.Detail, f.Fix = false, fmt.Sprintf("%d have no primary", none), "wait a moment; if it stays so, look at the leader's log"
	case alone > 0 && len(state.Nodes) > 1:
		f.OK, f.Detail = false, fmt.Sprintf("%d have no second copy that counts", alone)
		f.Fix = "start the nodes that do not answer; until then the loss of one more node loses locks"
	}
	return f
}

func quorumFinding(state *admin.State, status *admin.Status) conf.Finding {
	need := state.Settings["min_quorum"]
	f := conf.Finding{What: "quorum", OK: true, Detail: fmt.Sprintf("%d nodes answer, min_quorum is %s", len(status.Nodes), need)}
	least := 0
	if _, err := fmt.Sscan(need, &least); err == nil && len(status.Nodes) < least {
		f.OK, f.Fix = false, "no new lock is given until more nodes are up; or lower it with: oclocks-config set min_quorum N"
	}
	return f
}

// nodeFinding says whether a node answers the others, agrees with them, and serves clients.
func nodeFinding(ctx context.Context, n *shared.Node, status *admin.Status) conf.Finding {
	f := conf.Finding{What: fmt.Sprintf("node %d (%s)", n.Number, n.Name)}
	st := status.Node(n.Number)
	switch {
	case st == nil:
		f.Detail = "does not answer"
		f.Fix = fmt.Sprintf("start its daemon; or, if it is gone for good: oclocks-config nodes remove %d", n.Number)
		return f
	case st.Refused != "":
		f.Detail, f.Fix = "gets no lease: "+st.Refused, "see oclocks-config alerts, and its log"
		return f
	case len(unreached(st, status)) > 0:
		f.Detail = "does not reach node " + strings.Trim(fmt.Sprint(unreached(st, status)), "[]")
		f.Fix = "see that each of them runs, and that the nodes reach each other's cluster_listen"
		return f
	}
	for _, same := range status.Nodes {
		if same.Change == st.Change && same.Digest != st.Digest {
			f.Detail = fmt.Sprintf("its configuration differs from that of node %d at change %d", same.Number, st.Change)
			f.Fix = "stop the one that is in quarantine (oclocks-config alerts), remove its control.db, and start it again"
			return f
		}
	}
	f.OK, f.Detail = true, "up"
	for _, address := range n.Clients {
		if err := reach(ctx, address, n); err != nil {
			f.OK = false
			f.Detail = fmt.Sprintf("is up, but not at its clients' address %s: %v", address, err)
			f.Fix = "see that its listen is an address that clients reach, and what is between"
		}
	}
	if f.OK && len(n.Clients) > 0 {
		f.Detail = "up, serves clients at " + strings.Join(n.Clients, " ")
	}
	return f
}

// unreached are the nodes that a node does not reach although they are up.
func unreached(st *control.Status, status *admin.Status) []uint64 {
	return slices.DeleteFunc(slices.Clone(st.Away), func(number uint64) bool { return status.Node(number) == nil })
}

// reach connects to a node's clients' address. One that listens on all of its addresses is tried where other nodes reach it.
func reach(ctx context.Context, address string, n *shared.Node) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	if ip := net.ParseIP(host); (host == "" || ip != nil && ip.IsUnspecified()) && len(n.Routes) > 0 {
		if host, _, err = net.SplitHostPort(n.Routes[0]); err != nil {
			return err
		}
	}
	d := net.Dialer{Timeout: reachWait}
	conn, err := d.DialContext(ctx, "tcp", net.JoinHostPort(host, port))
	if err != nil {
		return err
	}
	return conn.Close()
}
