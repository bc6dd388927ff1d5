package tidy

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
)

// Each check is shown source that breaks its rule and source that does not, so that a check which finds nothing is known
// to be able to.

type trial struct {
	name string
	code string
	want []string // the beginning of each finding, in order
}

func (tr trial) run(t *testing.T, check func(source) []string) {
	t.Helper()
	src, err := parse("room/file.go", []byte("package room\n"+tr.code))
	if err != nil {
		t.Fatal(err)
	}
	compare(t, check(src), tr.want)
}

func compare(t *testing.T, got, want []string) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("got %d findings, want %d\ngot  %q\nwant %q", len(got), len(want), got, want)
	}
	for i := range got {
		if !strings.HasPrefix(got[i], want[i]) {
			t.Errorf("finding %d is %q, want %q…", i, got[i], want[i])
		}
	}
}

func TestPurityCheck(t *testing.T) {
	for _, tr := range []trial{
		{"an import that is allowed", "import \"strings\"\nvar _ = strings.ToUpper", nil},
		{"an import that is not", "import \"os\"\nvar _ = os.Args", []string{"room/file.go:2: a pure room may not import os"}},
		{"a room that is not pure", "import _ \"github.com/opencluster/oclocks/broker\"", []string{"room/file.go:2: a pure room may not import"}},
		{"a clock", "import \"time\"\nfunc f() { time.Now() }", []string{"room/file.go:3: time.Now in a pure room"}},
		{"a clock under another name", "import clock \"time\"\nvar f = clock.After", []string{"room/file.go:3: time.After in a pure room"}},
		{"a duration", "import \"time\"\nconst d = 3 * time.Second", nil},
		{"a goroutine", "func f() { go f() }", []string{"room/file.go:2: a goroutine"}},
		{"a select", "func f() { select {} }", []string{"room/file.go:2: select"}},
	} {
		t.Run(tr.name, func(t *testing.T) { tr.run(t, checkPure) })
	}
}

func TestLinterCheck(t *testing.T) {
	compare(t, checkLinter("files:\n  - \"**/room/*.go\"\n", []string{"room", "room/inner"}), []string{
		".golangci.yml: depguard has no rule for the pure room room/inner"})
}

func TestPurityCheckOfOneRoom(t *testing.T) {
	const code = "package core\nimport (\"google.golang.org/protobuf/proto\"; \"go.etcd.io/raft/v3\"; \"go.etcd.io/raft/v3/raftpb\")\n" +
		"var _ raftpb.Entry\nvar _ = proto.Clone\nvar _ = proto.Reset\nvar _ = raft.StartNode\n"
	for at, want := range map[string][]string{
		"arbiter/core/file.go": {"arbiter/core/file.go:5: proto.Reset in a pure room", "arbiter/core/file.go:6: raft.StartNode in a pure room"},
		"arbiter/plan/file.go": {"arbiter/plan/file.go:2: a pure room may not import google", "arbiter/plan/file.go:2: a pure room may not import go.etcd",
			"arbiter/plan/file.go:2: a pure room may not import go.etcd"},
	} {
		src, err := parse(at, []byte(code))
		if err != nil {
			t.Fatal(err)
		}
		compare(t, checkPure(src), want)
	}
}

func TestMapOrderCheck(t *testing.T) {
	_, exports := goList(t, root(t), []string{"internal/tidy/testdata/imports"})
	for _, tr := range []trial{
		{"a range over a map", "func f(m map[int]int) { for range m {} }", []string{"room/file.go:2: range over a map"}},
		{"over a named map", "type M map[int]int\nfunc f(m M) {\nfor range m {}\n}", []string{"room/file.go:4: range over a map"}},
		{"with its excuse", "func f(m map[int]int) {\n// order: only counts\nfor range m {}\n}", nil},
		{"over a slice", "func f(m []int) { for range m {} }", nil},
		{"maps.Keys", "import \"maps\"\nfunc f(m map[int]int) {\nfor range maps.Keys(m) {}\n}", []string{"room/file.go:4: maps.Keys"}},
		{"maps.Keys sorted", "import (\"maps\";\"slices\")\nfunc f(m map[int]int) {\nfor range slices.Sorted(maps.Keys(m)) {}\n}", nil},
	} {
		t.Run(tr.name, func(t *testing.T) {
			tr.run(t, func(src source) []string {
				findings, err := checkMapOrder("room", []source{src}, exports)
				if err != nil {
					t.Fatal(err)
				}
				return findings
			})
		})
	}
	if _, err := checkMapOrder("room", []source{mustParse(t, "package room\nvar x undefined")}, noExports); err == nil {
		t.Error("source that does not compile passed")
	}
}

func noExports(path string) (io.ReadCloser, error) { return nil, fmt.Errorf("no types of %s", path) }

func mustParse(t *testing.T, text string) source {
	t.Helper()
	src, err := parse("room/file.go", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return src
}

func TestHouseRulesCheck(t *testing.T) {
	for _, tr := range []trial{
		{"sleep", "import \"time\"\nfunc f() { time.Sleep(1) }", []string{"room/file.go:3: time.Sleep"}},
		{"log", "import \"log\"\nvar _ = log.Println", []string{"room/file.go:1: imports log"}},
		{"slog", "import \"log/slog\"\nvar _ = slog.Info", nil},
		{"printing", "import \"fmt\"\nfunc f() { fmt.Println() }", []string{"room/file.go:3: fmt.Println"}},
		{"printing to a writer", "import (\"fmt\";\"io\")\nfunc f(w io.Writer) { fmt.Fprintln(w) }", nil},
		{"println", "func f() { println() }", []string{"room/file.go:2: println"}},
		{"exit", "import \"os\"\nfunc f() { os.Exit(1) }", []string{"room/file.go:3: os.Exit"}},
		{"init", "func init() {}", []string{"room/file.go:2: func init"}},
		{"thrown away", "func f() { _ = g() }", []string{"room/file.go:2: a result is thrown away"}},
		{"thrown away with a reason", "func f() {\n_ = g() // it is closed anyhow\n}", nil},
		{"a check of an interface", "var _ error = (*myError)(nil)", nil},
	} {
		t.Run(tr.name, func(t *testing.T) { tr.run(t, checkHouseRules) })
	}
}

func TestSizeCheck(t *testing.T) {
	lines := func(n int) string { return strings.Repeat("_ = 0\n", n) }
	limits := func(src source) []string { findings, _ := checkSizes(src); return findings }
	goals := func(src source) []string { _, remarks := checkSizes(src); return remarks }
	for _, tr := range []trial{
		{"a function at the goal", "func f() {\n" + lines(funcGoal-2) + "}", nil},
		{"a function over the limit", "func f() {\n" + lines(funcLimit-1) + "}", []string{"room/file.go:2: f has 91 lines"}},
		{"a file over the limit", strings.Repeat("// a line\n", fileLimit), []string{"room/file.go:1: 501 lines"}},
	} {
		t.Run(tr.name, func(t *testing.T) { tr.run(t, limits) })
	}
	trial{"", "func f() {\n" + lines(funcGoal-1) + "}", []string{"room/file.go:2: f has 71 lines"}}.run(t, goals)
	trial{"", strings.Repeat("// a line\n", fileGoal), []string{"room/file.go:1: 401 lines"}}.run(t, goals)
}

func TestPackageDocsCheck(t *testing.T) {
	file := func(path, text string) source {
		src, err := parse(path, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return src
	}
	compare(t, checkPackageDocs([]source{
		file("good/doc.go", "// Package good is.\npackage good"),
		file("good/other.go", "package good"),
		file("good/other_test.go", "// Package good_test is read by nobody.\npackage good_test"),
		file("tagged/doc.go", "//go:build linux\n\n// Package tagged is.\npackage tagged"),
		file("cmd/good/main.go", "// Command good does.\npackage main"),
		file("none/none.go", "package none"),
		file("twice/doc.go", "// Package twice is.\npackage twice"),
		file("twice/more.go", "// Package twice is too.\npackage twice"),
	}), []string{"none: no package comment", "twice: package comment in doc.go, more.go"})
}

func TestWordsCheck(t *testing.T) {
	text := "fine\nfor now := from; now < to; now++ {\n// TODO: later\nforeword\nplain For Now text\n"
	compare(t, checkWords("a.go", []byte(text)), []string{`a.go:3: "TODO"`, `a.go:5: "For Now"`})
}

func TestLinksCheck(t *testing.T) {
	page := "# The top\n[a](b.md) [b](c.md) [c](#the-top) [d](#the-end) [e](b.md#one-2) [f](b.md#two) [g](https://x.y/z)\n" +
		"`[h](code.md)`\n```\n[i](code.md)\n```\n"
	got := checkLinks("a.md", page, func(rel string) (string, error) {
		if rel != "b.md" {
			return "", os.ErrNotExist
		}
		return "## One (2)\n", nil
	})
	compare(t, got, []string{"a.md: link to c.md: there is no such file", "a.md: link to #the-end", "a.md: link to b.md#two"})
}

func TestTheChecksReadTheRepository(t *testing.T) {
	var paths []string
	for _, src := range sources(t) {
		paths = append(paths, src.path)
	}
	for _, want := range []string{"subjects/doc.go", "bucket/doc.go", "internal/tidy/checks_test.go"} {
		if !slices.Contains(paths, want) {
			t.Errorf("%s was not read", want)
		}
	}
	if _, err := parse("x.go", []byte("not Go")); err == nil || errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is not Go: %v", err)
	}
}
