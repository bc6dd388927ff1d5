// Command hunt runs the simulator on each mutant until a seed finds it, and writes the table of docs/mutants.md.
//
//	go run -tags mutants ./internal/mutant/hunt -mutants=name,… -seeds=2000 -jobs=2 -page=docs/mutants.md
//
// Read main.go (the order of things), search.go (one mutant), kind.go (what found it), page.go (the page). A seed counts as a find only
// if it says that a promise is broken; what the seeds before said that was less (a cluster that does not come together, an alert, a
// panic) is told beside it. It ends with 1 if a mutant was not found.
package main
