package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"

	"github.com/opencluster/oclocks/internal/mutant"
)

const head = `# Mutants

What the simulator is worth: bugs that were planted on purpose, one at a time, and how long it took until a seed found each. They are
behind the build tag ` + "`mutants`" + `, one line of code each; the normal build has nothing of them (` + "`internal/mutant`" + `). This page is written by
` + "`make mutants`" + ` (` + "`MUTANTS=name,…`" + ` for some, ` + "`SEEDS=`" + ` for the most seeds of one).

Each seed is another cluster with another mix of faults, so a mutant that needs a rare fault needs many: *runs* is how many seeds in a
row had to be run, beginning with seed 1, *simulated* the time of the clusters in them. A find is a broken promise, not a crash of the
mutated code, and only if the same seed says nothing without the mutant; *lesser* is how many seeds before had already said something
weaker (the cluster did not come together again, a copy stopped itself, a part failed). *Found by* names the checker: one word is that
promise of ` + "`internal/check`" + `, which knows only what clients saw; the others are what only the simulator sees. A seed means something else
after each change of the code, so these numbers are of one moment. What is not found within the seeds that were run is told as such.
`

const columns = `
| mutant | what is broken | the promise that it breaks | runs | simulated | lesser | found by | it said |
|---|---|---|---|---|---|---|---|
`

const covered = `
## Mistakes that another rule covers

These were planted as well, and reached; no seed found them, because they do no harm: something else prevents it. They were taken out again.

`

// update writes the page, with one row anew; of says what was run. Rows of mutants that exist stay, those of others go.
func update(path, of string, f *finding) error {
	old, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	rows := map[string]string{}
	for line := range strings.Lines(string(old)) {
		if cells := strings.Split(line, "|"); len(cells) == 10 {
			rows[strings.Trim(cells[1], " `")] = line
		}
	}
	rows[f.mutant.String()] = f.row()
	var text strings.Builder
	text.WriteString(head)
	text.WriteString(of)
	text.WriteString(columns)
	for _, m := range mutant.All() {
		text.WriteString(rows[m.String()])
	}
	text.WriteString(covered)
	for _, c := range mutant.CoveredBugs() {
		fmt.Fprintf(&text, "- *%s*: %s.\n", c.Bug, c.Why)
	}
	return os.WriteFile(path, []byte(text.String()), 0o644)
}

func (f *finding) row() string {
	e := f.mutant.Entry()
	checker, says := f.checker, f.says
	if !f.found() {
		checker, says = "**not found**", ""
	}
	if f.kind != promise && f.earlier != nothing {
		checker, says = "less: "+f.lessChecker, f.lessText
	}
	return fmt.Sprintf("| `%s` | %s | %s | %d | %s | %d | %s | %s |\n", e.Name, e.Bug, e.Promise, f.runs, span(f.time), f.lesser, checker, cell(says))
}

// stamp is the simulated time before what a violation says.
var stamp = regexp.MustCompile(`^\s*[0-9]+\.[0-9]+ `)

// cell makes a text fit into a table.
func cell(text string) string {
	text = firstLine(stamp.ReplaceAllString(text, ""))
	text = strings.NewReplacer("|", "/", "<", "&lt;", "*", `\*`, "`", "'").Replace(text)
	if r := []rune(text); len(r) > 200 {
		text = string(r[:200]) + "…"
	}
	return text
}
