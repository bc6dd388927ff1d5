package tidy

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
)

// unfinished are the words of work that was left for later. What is left for later is an issue, not a comment.
var unfinished = regexp.MustCompile(`\b(TODO|FIXME|XXX|HACK)\b|(?i:\b(for now|not yet implemented|placeholder|in a real (system|implementation)|simplified version)\b)`)

func TestNothingIsLeftUnfinished(t *testing.T) {
	walk(t, func(file, full string) {
		if strings.HasPrefix(file, "internal/tidy/") {
			return // names the words
		}
		switch path.Ext(file) {
		case ".go", ".md", ".sh", ".yml", ".yaml", ".mjs":
		default:
			return
		}
		text, err := os.ReadFile(full)
		if err != nil {
			t.Fatal(err)
		}
		report(t, checkWords(file, text))
	})
}

func checkWords(file string, text []byte) []string {
	var findings []string
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 1<<20)
	for n := 1; lines.Scan(); n++ {
		line := strings.ReplaceAll(lines.Text(), "for now :=", "") // a loop over time
		if word := unfinished.FindString(line); word != "" {
			findings = append(findings, fmt.Sprintf("%s:%d: %q: finish it, or open an issue and remove the words", file, n, word))
		}
	}
	if err := lines.Err(); err != nil {
		findings = append(findings, fmt.Sprintf("%s: %v", file, err))
	}
	return findings
}
