package cluster

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/opencluster/oclocks/internal/cli/output"
	"github.com/opencluster/oclocks/subjects"
)

// Heading is how many lines stand above the rows.
const Heading = 3

// Lines draws a frame in width columns and height lines, as much as fits. A width of 0 cuts nothing, a height of 0 leaves
// nothing out.
func (f *Frame) Lines(width, height int) []string {
	lines := []string{f.title(), f.summary(), ""}
	lines = append(lines, columns(f.nodes())...)
	lines = append(lines, "")
	stands := f.stands()
	if stands != "" {
		lines = append(lines, stands)
	}
	switch {
	case len(f.Buckets) > 0:
		lines = append(lines, columns(f.buckets())...)
		if f.More > 0 {
			lines = append(lines, fmt.Sprintf("and %d more", f.More))
		}
	case !f.Asked && stands == "":
		lines = append(lines, fmt.Sprintf("All %d buckets are as they should be.", f.Total))
	}
	for i, line := range lines {
		lines[i] = output.Cut(line, width)
	}
	if height > 0 && len(lines) > height {
		lines = lines[:height]
	}
	return lines
}

// stands says why nothing is granted in the whole cluster; "" if that is not so.
func (f *Frame) stands() string {
	switch {
	case f.Leader == 0:
		return "Nobody leads: nothing is granted until more than half of the nodes that vote reach each other."
	case f.Quorum.Have < f.Quorum.Need:
		return fmt.Sprintf("Nothing new is granted: min_quorum asks for %d nodes. Start more, or: oclocks-config set min_quorum N", f.Quorum.Need)
	}
	return ""
}

func (f *Frame) title() string {
	return fmt.Sprintf("cluster %s  %s  %s", output.Text(f.Cluster.Cluster), output.Text(f.Mode), f.At.Format(time.TimeOnly))
}

func (f *Frame) summary() string {
	leader := "nobody leads"
	if f.Leader != 0 {
		leader = f.name(f.Leader) + " leads"
	}
	nodes := "nodes"
	if f.Quorum.Have == 1 {
		nodes = "node"
	}
	return fmt.Sprintf("%s, %d %s up, min_quorum %d, %d buckets, configuration %d", leader, f.Quorum.Have, nodes, f.Quorum.Need, f.Total, f.Change)
}

// name is a node's name for people.
func (f *Frame) name(number uint64) string {
	for i := range f.Nodes {
		if n := &f.Nodes[i]; n.Number == number && n.Name != "" {
			return output.Text(n.Name)
		}
	}
	return fmt.Sprint("node ", number)
}

// maxNames is how many nodes are named in one cell.
const maxNames = 6

func (f *Frame) names(numbers []uint64) string {
	var all []string
	for i, n := range numbers {
		if i == maxNames {
			all = append(all, fmt.Sprintf("+%d", len(numbers)-maxNames))
			break
		}
		all = append(all, f.name(n))
	}
	return strings.Join(all, " ")
}

// nodes are the rows of the nodes.
func (f *Frame) nodes() [][]string {
	rows := [][]string{{"NODE", "NAME", "STATUS", "LEASE", "PRIMARY OF", "COPIES", "LAG", "DIRECT", "CONFIGURATION", "LOCATION", "REMARKS"}}
	for i := range f.Nodes {
		n := &f.Nodes[i]
		row := []string{strconv.FormatUint(n.Number, 10), output.Text(n.Name), status(n), "-", "-", "-", "-", "-", "-",
			output.Text(n.Location), strings.Join(f.remarks(n), ", ")}
		if n.Answered {
			row[3], row[7], row[8] = lease(n), f.direct(n), configuration(n)
			row[4], row[5], row[6] = strconv.Itoa(n.Primaries), strconv.Itoa(n.Copies), strconv.FormatUint(n.Lag, 10)
		}
		rows = append(rows, row)
	}
	return rows
}

// status is how a node is. One that was stopping and has gone is stopped.
func status(n *subjects.ClusterNode) string {
	if n.Status == "stopping" && !n.Answered {
		return "stopped"
	}
	return output.Text(n.Status)
}

func lease(n *subjects.ClusterNode) string {
	d, err := time.ParseDuration(n.Lease)
	if err != nil || d <= 0 {
		return "none"
	}
	return d.Round(10 * time.Millisecond).String()
}

// configuration is the change ID and the beginning of the digest: equal on two nodes of the same change.
func configuration(n *subjects.ClusterNode) string {
	return fmt.Sprintf("%d/%s", n.Change, output.Text(n.Digest[:min(len(n.Digest), 6)]))
}

// direct is with how many other nodes a node has a direct link, out of those that want them.
func (f *Frame) direct(n *subjects.ClusterNode) string {
	if n.Direct == nil {
		return "-"
	}
	return fmt.Sprintf("%d/%d", len(n.Direct), len(n.Direct)+len(f.unlinked(n)))
}

// unlinked are the nodes with which a node has no direct link, although both want them.
func (f *Frame) unlinked(n *subjects.ClusterNode) (list []uint64) {
	if n.Direct == nil {
		return nil
	}
	for i := range f.Nodes {
		if o := &f.Nodes[i]; o.Number != n.Number && o.Direct != nil && !slices.Contains(n.Direct, o.Number) {
			list = append(list, o.Number)
		}
	}
	return list
}

// remarks are what is special about a node, what is bad first.
func (f *Frame) remarks(n *subjects.ClusterNode) []string {
	var all []string
	note := func(yes bool, format string, args ...any) {
		if yes {
			all = append(all, fmt.Sprintf(format, args...))
		}
	}
	note(!n.Answered && !n.Arbiter, "does not answer")
	note(n.Refused != "", "no lease: %s", output.Text(n.Refused))
	note(f.differs(n), "its configuration differs")
	note(len(n.Away) > 0, "does not reach %s", f.names(n.Away))
	note(len(f.unlinked(n)) > 0, "no direct link to %s", f.names(f.unlinked(n)))
	note(n.Recovery > 0, "%d in recovery", n.Recovery)
	note(n.Degraded > 0, "%d without a second copy", n.Degraded)
	note(n.Leader, "leads")
	note(n.Answered && !n.Voter, "does not vote")
	note(n.Arbiter, "arbiter")
	return all
}

// differs says whether another node has another configuration under the same change.
func (f *Frame) differs(n *subjects.ClusterNode) bool {
	return n.Answered && slices.ContainsFunc(f.Nodes, func(o subjects.ClusterNode) bool {
		return o.Answered && o.Change == n.Change && o.Digest != n.Digest
	})
}

// buckets are the rows of the buckets.
func (f *Frame) buckets() [][]string {
	rows := [][]string{{"BUCKET", "PRIMARY", "EPOCH", "COPIES", "IN SYNC", "CONFIRMED", "LAG", "HISTORY", "REMARKS"}}
	for i := range f.Buckets {
		b := &f.Buckets[i]
		primary, copies := "none", "-"
		if b.Primary != 0 {
			primary = f.name(b.Primary)
		}
		if len(b.Chain) > 1 {
			copies = f.names(b.Chain[1:])
		}
		confirmed := "-"
		if b.Confirmed > 0 {
			confirmed = strconv.FormatUint(b.Confirmed, 10)
		}
		rows = append(rows, []string{strconv.FormatUint(uint64(b.Bucket), 10), primary, strconv.FormatUint(b.Epoch, 10), copies,
			strconv.Itoa(b.InSync), confirmed, strconv.FormatUint(lag(b), 10), f.history(b), remark(b)})
	}
	return rows
}

// lag is how far the copy is behind that is the furthest behind.
func lag(b *subjects.ClusterBucket) (most uint64) {
	for _, c := range b.Copies {
		most = max(most, c.Lag)
	}
	return most
}

// history says whether the copies are equal as far as they go.
func (f *Frame) history(b *subjects.ClusterBucket) string {
	by := map[string][]uint64{}
	for _, c := range b.Copies {
		by[c.History] = append(by[c.History], c.Node)
	}
	switch {
	case len(by["differs"]) > 0:
		return "differs: " + f.names(by["differs"])
	case len(by["behind"]) > 0:
		return "behind: " + f.names(by["behind"])
	case len(by["unknown"]) > 0:
		return "unknown: " + f.names(by["unknown"])
	case len(by["equal"]) > 0:
		return "equal"
	}
	return "-"
}

// remark is what is special about a bucket.
func remark(b *subjects.ClusterBucket) string {
	var all []string
	note := func(yes bool, text string) {
		if yes && !strings.Contains(b.Problem, text) {
			all = append(all, text)
		}
	}
	if b.Problem != "" {
		all = append(all, output.Text(b.Problem))
	}
	note(b.Recovery, "in recovery")
	note(b.Degraded, "without a second copy")
	note(!b.Acting && b.Problem == "", "its primary does not act")
	for _, c := range b.Copies {
		if c.Stopped != "" {
			all = append(all, fmt.Sprintf("copy of node %d stopped: %s", c.Node, output.Text(c.Stopped)))
		}
	}
	return strings.Join(all, ", ")
}

// columns puts the cells of rows below each other.
func columns(rows [][]string) []string {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	lines := make([]string, len(rows))
	for i, row := range rows {
		var b strings.Builder
		for k, cell := range row {
			b.WriteString(cell + strings.Repeat(" ", widths[k]-utf8.RuneCountInString(cell)+2))
		}
		lines[i] = strings.TrimRight(b.String(), " ")
	}
	return lines
}
