// Command page writes the figures of docs/performance.json into docs/performance.md, and plots beside it.
//
//	cd bench && go run ./page --figures ../docs/performance.json --page ../docs/performance.md
//
// What the page says in words is written by hand; only what stands between "<!-- begin NAME -->" and "<!-- end NAME -->" is
// made here, and the plots, in a directory that is named as the page is. Read figures.go first, then blocks.go, goals.go and plot.go.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	figures := flag.String("figures", "../docs/performance.json", "what was measured")
	page := flag.String("page", "../docs/performance.md", "page that is written")
	flag.Parse()
	if err := write(*figures, *page); err != nil {
		fmt.Fprintln(os.Stderr, "page:", err)
		os.Exit(1)
	}
}

func write(figures, page string) error {
	all, err := load(figures)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(page)
	if err != nil {
		return fmt.Errorf("read the page, which has the words: %w", err)
	}
	dir := strings.TrimSuffix(page, filepath.Ext(page))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, svg := range plots(all) {
		if err := os.WriteFile(filepath.Join(dir, name+".svg"), []byte(svg), 0o644); err != nil {
			return err
		}
	}
	out := string(text)
	for _, b := range blocks {
		if out, err = replaced(out, b.name, b.make(all)); err != nil {
			return err
		}
	}
	return os.WriteFile(page, []byte(out), 0o644)
}

// replaced puts a text between the marks of a block.
func replaced(page, name, text string) (string, error) {
	begin, end := "<!-- begin "+name+" -->\n", "<!-- end "+name+" -->"
	before, rest, found := strings.Cut(page, begin)
	if !found {
		return "", fmt.Errorf("the page has no mark %q", strings.TrimSpace(begin))
	}
	_, after, found := strings.Cut(rest, end)
	if !found {
		return "", fmt.Errorf("the page has no mark %q", end)
	}
	return before + begin + "\n" + strings.TrimSpace(text) + "\n\n" + end + after, nil
}
