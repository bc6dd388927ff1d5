package mutant_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/opencluster/oclocks/internal/mutant"
)

// names gives the constants of table.go in their order, without None and end.
func names(t *testing.T) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "table.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, d := range file.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.CONST || len(list) > 0 {
			continue
		}
		for _, s := range g.Specs {
			list = append(list, s.(*ast.ValueSpec).Names[0].Name)
		}
	}
	if len(list) < 3 || list[0] != "None" || list[len(list)-1] != "end" {
		t.Fatalf("the constants are %v", list)
	}
	return list[1 : len(list)-1]
}

// plants gives where each mutant is planted: the calls mutant.On(mutant.Name) in the code of the whole repository.
func plants(t *testing.T) map[string][]string {
	t.Helper()
	top := filepath.Join("..", "..")
	found := map[string][]string{}
	err := filepath.WalkDir(top, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != top && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "testdata" || entry.Name() == "bin"):
			return filepath.SkipDir
		case entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || selector(call.Fun) != "mutant.On" {
				return true
			}
			name := "?"
			if len(call.Args) == 1 {
				name = strings.TrimPrefix(selector(call.Args[0]), "mutant.")
			}
			found[name] = append(found[name], fmt.Sprint(set.Position(call.Pos())))
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func selector(e ast.Expr) string {
	s, ok := e.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	x, ok := s.X.(*ast.Ident)
	if !ok {
		return ""
	}
	return x.Name + "." + s.Sel.Name
}

// TestEachMutantIsPlantedOnce compares the table with the code.
func TestEachMutantIsPlantedOnce(t *testing.T) {
	list, found := names(t), plants(t)
	for _, name := range list {
		if at := found[name]; len(at) != 1 {
			t.Errorf("%s is planted %d times: %v", name, len(at), at)
		}
		delete(found, name)
	}
	for name, at := range found { // order: each is an error of its own
		t.Errorf("there is no mutant %s: %v", name, at)
	}
	if len(list) < 30 {
		t.Errorf("there are %d mutants, and the proof needs 30", len(list))
	}
}

func TestTheTableIsWhole(t *testing.T) {
	if got, want := len(mutant.All()), len(names(t)); got != want {
		t.Fatalf("the table has %d mutants, the constants are %d", got, want)
	}
	var seen []string
	for _, m := range mutant.All() {
		e := m.Entry()
		if e.Name == "" || e.Bug == "" || e.Promise == "" {
			t.Errorf("mutant %d has no complete row: %+v", m, e)
		}
		if slices.Contains(seen, e.Name) {
			t.Errorf("%s is there twice", e.Name)
		}
		seen = append(seen, e.Name)
		if found, ok := mutant.Find(e.Name); !ok || found != m {
			t.Errorf("%s is found as %v", e.Name, found)
		}
	}
	if _, ok := mutant.Find("no-such-mutant"); ok {
		t.Error("found what does not exist")
	}
}

// TestTheNormalBuildHasNothingOfThem looks into what the compiler made of the rooms with plants.
func TestTheNormalBuildHasNothingOfThem(t *testing.T) {
	if mutant.Built {
		t.Skip("this is not the normal build")
	}
	rooms := map[string]bool{}
	for _, at := range plants(t) { // order: a set is made
		for _, where := range at {
			rooms["./"+filepath.ToSlash(filepath.Dir(strings.TrimPrefix(where, filepath.Join("..", "..")+string(filepath.Separator))))] = true
		}
	}
	if len(rooms) < 5 {
		t.Fatalf("plants are in %v only", rooms)
	}
	list := exec.Command("go", append([]string{"list", "-export", "-f", "{{.Export}}"}, slices.Sorted(maps.Keys(rooms))...)...)
	list.Dir = filepath.Join("..", "..")
	archives, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	for archive := range strings.FieldsSeq(string(archives)) {
		symbols, err := exec.Command("go", "tool", "nm", archive).Output()
		if err != nil {
			t.Fatalf("%s: %v", archive, err)
		}
		if !strings.Contains(string(symbols), "oclocks/") {
			t.Fatalf("%s has no symbols of this module", archive)
		}
		for line := range strings.Lines(string(symbols)) {
			// go:info and type: are for debuggers
			if fields := strings.Fields(line); strings.HasPrefix(fields[len(fields)-1], "github.com/opencluster/oclocks/internal/mutant.") {
				t.Errorf("%s: %s", archive, strings.TrimSpace(line))
			}
		}
	}
}

// TestChoose checks the build that it is in: nothing is ever on in the normal one.
func TestChoose(t *testing.T) {
	defer mutant.Choose(mutant.None)
	for _, m := range mutant.All() {
		mutant.Choose(m)
		for _, o := range mutant.All() {
			if got, want := mutant.On(o), mutant.Built && o == m; got != want {
				t.Fatalf("%v is chosen, and On(%v) is %t", m, o, got)
			}
		}
		if got := mutant.Hits(); mutant.Built && got != 1 || !mutant.Built && got != 0 {
			t.Fatalf("%v was hit %d times", m, got)
		}
	}
}
