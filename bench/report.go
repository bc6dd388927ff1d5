package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"
)

// table is one group of results. Values are text for people and numbers for programs.
type table struct {
	Title   string   `json:"title"`
	Columns []string `json:"columns"`
	Rows    []row    `json:"rows"`
	Notes   []string `json:"notes,omitempty"`
	When    string   `json:"when,omitempty"` // the newest of its rows was kept
}

type row struct {
	Name   string  `json:"name"`
	Values []value `json:"values"`
}

// value is a number and how people read it.
type value struct {
	Number float64 `json:"number"`
	Unit   string  `json:"unit"`
	format string
}

func (v value) String() string {
	if v.format == "" {
		return "" // there is nothing to tell
	}
	return fmt.Sprintf(v.format, v.Number)
}

// nothing stands where a row has nothing to tell.
var nothing = value{Unit: "none"}

func bytes(n float64) value { return value{n, "bytes", "%.0f B"} }
func nanos(n float64) value { return value{n, "ns", "%.0f ns"} }
func rate(n float64) value  { return value{n, "1/s", "%.0f/s"} }
func mebibytes(n float64) value {
	return value{n / (1 << 20), "MiB", "%.1f MiB"}
}
func kibibytes(n float64) value { return value{n / (1 << 10), "KiB", "%.1f KiB"} }
func share(n float64) value     { return value{n, "ratio", "%.3f"} }
func tenths(n float64) value    { return value{n, "mean", "%.1f"} }
func count(n int64) value       { return value{float64(n), "", "%.0f"} }
func ratio(n float64) value     { return value{n, "ratio", "%.2f"} }
func micros(d time.Duration) value {
	return value{float64(d.Nanoseconds()) / 1e3, "us", "%.0f µs"}
}
func millis(d time.Duration) value {
	return value{float64(d.Nanoseconds()) / 1e6, "ms", "%.2f ms"}
}

func (t *table) add(name string, values ...value) {
	t.Rows = append(t.Rows, row{name, values})
}

func (t *table) note(format string, args ...any) {
	t.Notes = append(t.Notes, fmt.Sprintf(format, args...))
}

// printer prints tables as they come, or all of them as one JSON object at the end.
type printer struct {
	w      io.Writer
	asJSON bool
	into   string // file
	all    struct {
		Machine string  `json:"machine"`
		Tables  []table `json:"tables"`
	}
}

func newPrinter(w io.Writer, asJSON bool, into string) *printer {
	return &printer{w: w, asJSON: asJSON, into: into}
}

func (p *printer) begin(machine string) {
	p.all.Machine = machine
	if !p.asJSON {
		fmt.Fprintln(p.w, machine)
	}
}

func (p *printer) print(t table) error {
	p.all.Tables = append(p.all.Tables, t)
	if err := keepTables(p.into, t); err != nil {
		return err
	}
	if p.asJSON {
		return nil
	}
	fmt.Fprintf(p.w, "\n%s\n", t.Title)
	lines := [][]string{append([]string{""}, t.Columns...)}
	for _, r := range t.Rows {
		line := []string{r.Name}
		for _, v := range r.Values {
			line = append(line, v.String())
		}
		lines = append(lines, line)
	}
	p.align(lines)
	for _, n := range t.Notes {
		fmt.Fprintln(p.w, "  "+n)
	}
	return nil
}

// align prints lines as columns, the first one flush left and the others flush right.
func (p *printer) align(lines [][]string) {
	var widths []int
	for _, line := range lines {
		for i, cell := range line {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for _, line := range lines {
		text := "  "
		for i, cell := range line {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if i == 0 {
				text += cell + pad
			} else {
				text += "  " + pad + cell
			}
		}
		fmt.Fprintln(p.w, strings.TrimRight(text, " "))
	}
}

func (p *printer) end() error {
	if !p.asJSON {
		return nil
	}
	enc := json.NewEncoder(p.w)
	enc.SetIndent("", "  ")
	return enc.Encode(p.all)
}
