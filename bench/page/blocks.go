package main

import (
	"fmt"
	"strings"
)

// blocks are the parts of the page that are made here.
var blocks = []struct {
	name string
	make func(f *figures) string
}{
	{"machine", machineBlock},
	{"goals", goalsBlock},
	{"peers", peersBlock},
	{"promises", promisesBlock},
	{"tables", tablesBlock},
}

func machineBlock(f *figures) string {
	first, last, rounds := "", "", 0
	for _, p := range f.Peers {
		rounds = max(rounds, len(p.Rounds))
		for _, r := range p.Rounds {
			if first == "" || r.When < first {
				first = r.When
			}
			last = max(last, r.When)
		}
	}
	return fmt.Sprintf("%s. Measured from %s to %s, %d rounds; each figure is a median, each ratio the median of the ratios of the rounds.",
		f.Machine, first, last, rounds)
}

func peersBlock(f *figures) string {
	var b strings.Builder
	b.WriteString("| | lock p50, 1 worker | p99 | pairs/s, 64 / 256 workers | hand-overs/s, 10 workers (most / least served) | 1,000 waiters drained | kill -9 of the leader: nobody / the unluckiest worker is granted anything for |\n|---|---|---|---|---|---|---|\n")
	for _, same := range []bool{true, false} {
		name := "raw NATS request-reply, other node"
		if same {
			name = "raw NATS request-reply, same node"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s / %s | – | – | – |\n", name, microText(f.raw("lock_p50_us", same)), microText(f.raw("lock_p99_us", same)),
			thousands(f.raw("pairs_64", same)), thousands(f.raw("pairs_256", same)))
	}
	for i := range f.Peers {
		p := &f.Peers[i]
		if p.Skipped != "" {
			fmt.Fprintf(&b, "| %s | skipped: %s | | | | | |\n", p.Name, p.Skipped)
			continue
		}
		name := p.Name
		if p.Key == "oclocks" {
			name = "**" + name + "**"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s / %s | %s | %s | %s |\n", name, p.withRatio("lock_p50_us", microText), p.withRatio("lock_p99_us", microText),
			p.withRatio("pairs_64", thousands), p.withRatio("pairs_256", thousands), p.handOvers(), p.text("drained_ms", milliText), p.end())
	}
	for i := range f.Peers {
		for _, r := range f.Peers[i].Rounds {
			if r.Error != "" {
				fmt.Fprintf(&b, "\n%s, round of %s, did not end: %s\n", f.Peers[i].Name, r.When, r.Error)
			}
		}
		if n, ok := f.Peers[i].median("overlaps"); ok && n > 0 {
			fmt.Fprintf(&b, "\n%s: two workers were inside of one lock at once.\n", f.Peers[i].Name)
		}
	}
	return b.String()
}

func (p *peer) text(name string, show func(v float64) string) string {
	v, ok := p.median(name)
	if !ok {
		return "–"
	}
	return show(v)
}

func (p *peer) withRatio(name string, show func(v float64) string) string {
	r, ok := p.ratio(name)
	if !ok {
		return "–"
	}
	return fmt.Sprintf("%s (%.2f ×)", p.text(name, show), r)
}

func (p *peer) handOvers() string {
	u, ok := p.median("most_over_least_served")
	if !ok {
		return "–"
	}
	return fmt.Sprintf("%s (%.2f)", p.text("hand_overs", thousands), u)
}

func (p *peer) end() string {
	if v, ok := p.median("stops"); ok && v > 0 {
		return "stops"
	}
	return p.text("gap_ms", milliText) + " / " + p.text("gap_of_one_ms", milliText)
}

func promisesBlock(f *figures) string {
	var b strings.Builder
	b.WriteString("| | version | how it was run | what it does not promise |\n|---|---|---|---|\n")
	for _, p := range f.Peers {
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", p.Name, p.Version, p.Settings, p.Lacks)
	}
	return b.String()
}

func tablesBlock(f *figures) string {
	var b strings.Builder
	for _, t := range f.Tables {
		fmt.Fprintf(&b, "### %s\n\n| | %s |\n|%s\n", t.Title, strings.Join(t.Columns, " | "), strings.Repeat("---|", len(t.Columns)+1))
		for _, r := range t.Rows {
			cells := make([]string, len(t.Columns))
			for i := range min(len(cells), len(r.Values)) {
				cells[i] = r.Values[i].String()
			}
			fmt.Fprintf(&b, "| %s | %s |\n", r.Name, strings.Join(cells, " | "))
		}
		notes := t.Notes
		if t.When != "" {
			notes = append(notes, "Measured "+t.When+".")
		}
		fmt.Fprintf(&b, "\n%s\n\n", strings.Join(notes, " "))
	}
	return b.String()
}

func (v value) String() string {
	switch v.Unit {
	case "us":
		return microText(v.Number)
	case "ms":
		return milliText(v.Number)
	case "ns":
		return thousands(v.Number) + " ns"
	case "1/s":
		return thousands(v.Number) + "/s"
	case "MiB":
		return fmt.Sprintf("%.1f MiB", v.Number)
	case "KiB":
		return fmt.Sprintf("%.1f KiB", v.Number)
	case "mean":
		return fmt.Sprintf("%.1f", v.Number)
	case "none":
		return ""
	case "bytes":
		return thousands(v.Number) + " B"
	case "ratio":
		return fmt.Sprintf("%.3g", v.Number)
	}
	if v.Number == 0 && v.Unit == "" {
		return "0"
	}
	return thousands(v.Number)
}

func microText(us float64) string { return thousands(us) + " µs" }

func milliText(ms float64) string {
	if ms >= 10_000 {
		return fmt.Sprintf("%.1f s", ms/1000)
	}
	return thousands(ms) + " ms"
}

// thousands is a whole number with commas.
func thousands(v float64) string {
	text := fmt.Sprintf("%.0f", v)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
