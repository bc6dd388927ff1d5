package tidy

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opencluster/oclocks/conf"
)

// TestEverySettingIsDocumented compares the settings that the daemon knows with the table in docs/configuration.md.
func TestEverySettingIsDocumented(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root(t), "docs", "configuration.md"))
	if err != nil {
		t.Fatal(err)
	}
	report(t, checkSettings(string(text), conf.Keys()))
}

func checkSettings(page string, keys []string) []string {
	var findings []string
	documented := map[string]bool{}
	for line := range strings.Lines(page) {
		cells := strings.Split(line, "|")
		if len(cells) == 7 && strings.Contains(cells[2], "--") && strings.Contains(cells[3], "OCLOCKS_") {
			documented[strings.TrimSpace(strings.Join(cells[1:4], "|"))] = true
		}
	}
	for _, key := range keys {
		row := fmt.Sprintf("`%s` | `--%s` | `OCLOCKS_%s`", key, strings.ReplaceAll(key, "_", "-"), strings.ToUpper(key))
		if !documented[row] {
			findings = append(findings, fmt.Sprintf("docs/configuration.md: the table has no row that begins with | %s", row))
		}
		delete(documented, row)
	}
	for _, row := range sortedKeys(documented) {
		findings = append(findings, fmt.Sprintf("docs/configuration.md: there is no such setting: | %s", row))
	}
	return findings
}

func TestSettingsCheck(t *testing.T) {
	page := "| `a_b` | `--a-b` | `OCLOCKS_A_B` | x | y |\n| `gone` | `--gone` | `OCLOCKS_GONE` | x | y |\n"
	compare(t, checkSettings(page, []string{"a_b", "new"}), []string{
		"docs/configuration.md: the table has no row that begins with | `new`", "docs/configuration.md: there is no such setting: | `gone`"})
}
