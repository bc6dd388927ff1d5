package top

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/opencluster/oclocks/internal/cli/output"
	"github.com/opencluster/oclocks/subjects"
)

// heading is how many lines stand above the rows.
const heading = 3

// columns are the widths of all columns but the name's and the holders', which share what is left.
var columns = []struct {
	title string
	width int
}{{"WAITING", 7}, {"MODE", 9}, {"HELD", 7}, {"LONGEST", 7}}

// Lines draws a frame in width columns and height lines, as many of the locks as fit. A width of 0 cuts nothing, a height
// of 0 leaves nothing out.
func Lines(f *Frame, width, height int) []string {
	lines := []string{
		output.Cut(fmt.Sprintf("oclocks %s  zone %s  node %s  %s  %s", output.Text(f.Info.Cluster), output.Text(f.Info.Zone),
			output.Text(f.Info.Node), output.Text(f.Info.Mode), f.At.Format(time.TimeOnly)), width),
		output.Cut(summary(f), width),
	}
	name, who := nameWidth(f, width), whoWidth(f)
	row := func(cells ...string) {
		line := pad(output.Cut(cells[0], name), name)
		for i, c := range columns {
			line += "  " + pad(cells[i+1], c.width)
		}
		line += "  " + pad(output.Cut(cells[5], who), who) + "  " + cells[6]
		lines = append(lines, strings.TrimRight(output.Cut(line, width), " "))
	}
	row("NAME", columns[0].title, columns[1].title, columns[2].title, columns[3].title, "HOLDER", "NEXT")
	for i := range f.Locks {
		if height > 0 && len(lines) >= height {
			break
		}
		r := &f.Locks[i]
		row(output.Text(r.Name), strconv.Itoa(r.Waiting), lockMode(r), heldFor(f, r), longest(f, r), holder(r), next(r))
	}
	if len(f.Locks) == 0 && (height == 0 || len(lines) < height) {
		lines = append(lines, output.Cut("no lock is held", width))
	}
	return lines
}

func summary(f *Frame) string {
	more := ""
	if f.More {
		more = "more than "
	}
	locks := "locks have"
	if f.Queued == 1 && !f.More {
		locks = "lock has"
	}
	return fmt.Sprintf("%s%d %s a queue, %d waiting", more, f.Queued, locks, f.Waiting)
}

// nameWidth is as wide as the longest name, but at most a third of the screen.
func nameWidth(f *Frame, width int) int {
	most := 4
	for i := range f.Locks {
		most = max(most, utf8.RuneCountInString(output.Text(f.Locks[i].Name)))
	}
	if width > 0 {
		most = min(most, max(width/3, 8))
	}
	return most
}

// whoWidth is as wide as the longest holder, within reason.
func whoWidth(f *Frame) int {
	most := 6
	for i := range f.Locks {
		most = max(most, utf8.RuneCountInString(holder(&f.Locks[i])))
	}
	return min(most, 28)
}

func lockMode(r *subjects.Record) string {
	if !r.Held {
		return "free"
	}
	return r.Mode.String()
}

func heldFor(f *Frame, r *subjects.Record) string {
	if len(r.Holders) == 0 {
		return "-"
	}
	return output.Span(f.At.Sub(time.UnixMilli(r.Holders[0].Since)))
}

// longest is how long the first in the queue has waited.
func longest(f *Frame, r *subjects.Record) string {
	if len(r.Queue) == 0 {
		return "-"
	}
	return output.Span(f.At.Sub(time.UnixMilli(r.Queue[0].Since)))
}

func holder(r *subjects.Record) string {
	if len(r.Holders) == 0 {
		return "-"
	}
	s := who(r.Holders[0].Holder, r.Holders[0].User)
	if more := len(r.Holders) + r.More - 1; more > 0 {
		s += " +" + strconv.Itoa(more)
	}
	return s
}

func next(r *subjects.Record) string {
	if len(r.Queue) == 0 {
		return "-"
	}
	return who(r.Queue[0].Holder, r.Queue[0].User)
}

func who(holder, user string) string {
	if holder == "" {
		return output.Text(user)
	}
	return output.Text(holder)
}

func pad(s string, width int) string {
	return s + strings.Repeat(" ", max(0, width-utf8.RuneCountInString(s)))
}
