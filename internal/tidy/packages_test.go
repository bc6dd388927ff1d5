package tidy

import (
	"fmt"
	"go/ast"
	"path"
	"slices"
	"strings"
	"testing"
)

func TestEveryPackageHasADoc(t *testing.T) { report(t, checkPackageDocs(sources(t))) }

// checkPackageDocs wants a doc.go with a package comment in every folder that has Go files, and the comment in no second
// file, where it would be read by nobody. A command may have the comment in main.go: there it is what the command does.
func checkPackageDocs(all []source) []string {
	where := map[string][]source{}
	for _, src := range all {
		dir := path.Dir(src.path)
		where[dir] = append(where[dir], src)
	}
	var findings []string
	for _, dir := range sortedKeys(where) {
		var documented []string
		command := false
		for _, src := range where[dir] {
			command = command || src.file.Name.Name == "main"
			if src.file.Doc != nil && !onlyDirectives(src.file.Doc) && !src.isTest() {
				documented = append(documented, path.Base(src.path))
			}
		}
		good := slices.Equal(documented, []string{"doc.go"}) || command && slices.Equal(documented, []string{"main.go"})
		switch {
		case good:
		case len(documented) == 0:
			findings = append(findings, fmt.Sprintf("%s: no package comment: write %s/doc.go: what the package is for, "+
				"what it may not do, in which order to read its files", dir, dir))
		default:
			findings = append(findings, fmt.Sprintf("%s: package comment in %s: it belongs in doc.go and nowhere else",
				dir, strings.Join(documented, ", ")))
		}
	}
	return findings
}

func onlyDirectives(doc *ast.CommentGroup) bool { return strings.TrimSpace(doc.Text()) == "" }

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
