package tidy

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#{1,6} +(.+?) *$`)
	fence   = regexp.MustCompile("(?ms)^```.*?\n```")
	span    = regexp.MustCompile("`[^`\n]*`")
)

func TestLinksLeadSomewhere(t *testing.T) {
	walk(t, func(file, full string) {
		if filepath.Ext(file) != ".md" {
			return
		}
		text, err := os.ReadFile(full)
		if err != nil {
			t.Fatal(err)
		}
		report(t, checkLinks(file, string(text), func(rel string) (string, error) {
			b, err := os.ReadFile(filepath.Join(filepath.Dir(full), filepath.FromSlash(rel)))
			if err != nil && isDir(filepath.Join(filepath.Dir(full), filepath.FromSlash(rel))) {
				return "", nil
			}
			return string(b), err
		}))
	})
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// checkLinks finds relative links of a Markdown page whose file or heading does not exist. read gives the text of a file
// relative to the page.
func checkLinks(file, text string, read func(rel string) (string, error)) []string {
	var findings []string
	prose := span.ReplaceAllString(fence.ReplaceAllString(text, ""), "")
	for _, m := range link.FindAllStringSubmatch(prose, -1) {
		target, anchor, _ := strings.Cut(m[1], "#")
		if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
			continue
		}
		there := text
		if target != "" {
			var err error
			if there, err = read(target); err != nil {
				findings = append(findings, fmt.Sprintf("%s: link to %s: there is no such file", file, target))
				continue
			}
		}
		if anchor != "" && !hasAnchor(there, anchor) {
			findings = append(findings, fmt.Sprintf("%s: link to %s: there is no such heading", file, m[1]))
		}
	}
	return findings
}

// hasAnchor knows the anchors that GitHub makes of headings.
func hasAnchor(text, anchor string) bool {
	for _, m := range heading.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
		var b strings.Builder
		for _, r := range strings.ToLower(m[1]) {
			switch {
			case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '-', r == '_':
				b.WriteRune(r)
			case r == ' ':
				b.WriteByte('-')
			}
		}
		if b.String() == anchor {
			return true
		}
	}
	return false
}
