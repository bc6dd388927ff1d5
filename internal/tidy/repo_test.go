package tidy

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// modulePath is the module's name; packages below it are ours.
const modulePath = "github.com/opencluster/oclocks"

// majorVersion is the end of an import path that is no part of the package's name.
var majorVersion = regexp.MustCompile(`/v[0-9]+$`)

// source is one parsed Go file of the repository.
type source struct {
	path string // relative to the repository, with slashes
	fset *token.FileSet
	file *ast.File
	text []byte
}

// parse makes a source of text; the checks' own tests use it too.
func parse(path string, text []byte) (source, error) {
	return parseInto(token.NewFileSet(), path, text)
}

func parseInto(fset *token.FileSet, path string, text []byte) (source, error) {
	file, err := parser.ParseFile(fset, path, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return source{}, fmt.Errorf("parse %s: %w", path, err)
	}
	return source{path: path, fset: fset, file: file, text: text}, nil
}

func (s source) isTest() bool { return strings.HasSuffix(s.path, "_test.go") }

func (s source) generated() bool { return ast.IsGenerated(s.file) }

func (s source) line(p token.Pos) int { return s.fset.Position(p).Line }

// at makes a finding: "path:line: message".
func (s source) at(p token.Pos, format string, args ...any) string {
	return fmt.Sprintf("%s:%d: %s", s.path, s.line(p), fmt.Sprintf(format, args...))
}

// remark is the comment on the line of p or the one that ends on the line before it, "" if there is none.
func (s source) remark(p token.Pos) string {
	line := s.line(p)
	for _, group := range s.file.Comments {
		if s.line(group.Pos()) == line || s.line(group.End()) == line || s.line(group.End()) == line-1 {
			return group.Text()
		}
	}
	return ""
}

// imported is the name by which the file calls the package at path, "" if it does not import it.
func (s source) imported(path string) string {
	for _, spec := range s.file.Imports {
		if strings.Trim(spec.Path.Value, `"`) != path {
			continue
		}
		if spec.Name != nil {
			return spec.Name.Name
		}
		path = majorVersion.ReplaceAllString(path, "")
		return path[strings.LastIndex(path, "/")+1:]
	}
	return ""
}

// selects calls found for each use of a member of the package at path, such as time.Now.
func (s source) selects(path string, found func(sel *ast.SelectorExpr)) {
	name := s.imported(path)
	if name == "" {
		return
	}
	ast.Inspect(s.file, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if id, ok := sel.X.(*ast.Ident); ok && id.Name == name {
			found(sel)
		}
		return true
	})
}

// root is the repository's top folder.
func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "go.mod")); err != nil {
		t.Fatalf("the repository's top folder should be ../..: %v", err)
	}
	return dir
}

// walk calls visit for every file of the repository that somebody wrote.
func walk(t *testing.T, visit func(path, full string)) {
	t.Helper()
	top := root(t)
	err := filepath.WalkDir(top, func(full string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(top, full)
		if err != nil {
			return err
		}
		if entry.IsDir() {
			switch entry.Name() {
			case ".git", "bin", "node_modules", "testdata", ".cache":
				return filepath.SkipDir
			}
			return nil
		}
		visit(filepath.ToSlash(rel), full)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// sources are all Go files of the repository, the benchmarks' module included, in order of their paths.
func sources(t *testing.T) []source {
	t.Helper()
	var all []source
	walk(t, func(path, full string) {
		if !strings.HasSuffix(path, ".go") {
			return
		}
		text, err := os.ReadFile(full)
		if err != nil {
			t.Fatal(err)
		}
		src, err := parse(path, text)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, src)
	})
	if len(all) == 0 {
		t.Fatal("no Go file found: the walk over the repository is broken")
	}
	return all
}

// report fails the test with each finding.
func report(t *testing.T, findings []string) {
	t.Helper()
	for _, f := range findings {
		t.Error(f)
	}
}
