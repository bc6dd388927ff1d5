package tidy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// pureRooms are the folders whose packages are pure: same state and same input give the same output.
var pureRooms = []string{"subjects", "bucket", "bucket/chain", "bucket/replicated", "arbiter/core", "arbiter/plan", "broker/control/flow", "broker/control/reign",
	"broker/control/desk", "broker/control/enrol", "broker/control/leave", "broker/edge", "broker/parking", "broker/spread", "internal/machine", "conf/shared"}

// pureImports is all that a pure room may import. What is missing on purpose: os, net, context, sync, runtime, log,
// math/rand, crypto/rand, and hash/maphash, which is seeded at random.
var pureImports = []string{
	"bytes", "cmp", "container/heap", "container/list", "crypto/sha256", "encoding/base64", "encoding/binary",
	"encoding/hex", "encoding/json", "errors", "fmt", "hash", "hash/crc32", "iter", "maps", "math", "math/bits", "slices",
	"sort", "strconv", "strings", "time", "unicode", "unicode/utf16", "unicode/utf8", "unsafe",
	"github.com/cespare/xxhash/v2", "github.com/google/btree", modulePath + "/internal/mutant",
}

// roomImports is what single rooms may import beyond that, and which members of it they may use (nil: all): the rest of
// these packages reads files, the network or random numbers.
var roomImports = map[string]map[string][]string{
	"broker/edge": {"crypto/hmac": {"Equal", "New"}},
	"arbiter/core": {
		"go.etcd.io/raft/v3": {"Config", "ErrProposalDropped", "ErrSnapshotTemporarilyUnavailable", "ErrStepPeerNotFound", "IsEmptyHardState",
			"IsEmptySnap", "MemoryStorage", "NewMemoryStorage", "NewRawNode", "ProgressType", "RawNode", "ReadOnlySafe", "ReadState", "Ready",
			"SnapshotFailure", "StateFollower", "StateLeader"},
		"go.etcd.io/raft/v3/raftpb":        nil,
		"go.etcd.io/raft/v3/tracker":       {"Progress"},
		"google.golang.org/protobuf/proto": {"Clone", "Marshal", "MarshalOptions", "Unmarshal"},
	},
	"conf/shared": {
		"io":                       {"EOF"},
		"net":                      {"SplitHostPort"},
		"reflect":                  {"ValueOf"},
		"sync/atomic":              {"Pointer"}, // its readers are on other goroutines
		"github.com/nats-io/nkeys": {"IsValidPublicUserKey"},
		modulePath + "/conf": {"CheckUserName", "LeaseLimit", "MaxBuckets", "MaxNameLen", "MaxNodeLease", "MaxUsers", "MaxZones", "MinLease",
			"MinNodeLease", "ParseRole", "SyncAlways", "SyncBackground", "User", "Zone", "ZoneKeys"},
	},
}

// impureTime are the members of package time that read a clock, start a timer or read the machine's time zone.
var impureTime = []string{
	"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker", "Local", "LoadLocation",
}

func TestPureRoomsArePure(t *testing.T) {
	top := root(t)
	var rooms []string
	for _, room := range pureRooms {
		if files, err := filepath.Glob(filepath.Join(top, room, "*.go")); err != nil {
			t.Fatal(err)
		} else if len(files) > 0 {
			rooms = append(rooms, room)
		}
	}
	if len(rooms) == 0 {
		t.Fatal("no pure room found: is the list of folders in this test still right?")
	}
	packages, exports := goList(t, top, rooms)
	for _, pkg := range packages {
		var srcs []source
		for _, name := range pkg.GoFiles {
			full := filepath.Join(pkg.Dir, name)
			text, err := os.ReadFile(full)
			if err != nil {
				t.Fatal(err)
			}
			src, err := parse(strings.TrimPrefix(pkg.ImportPath, modulePath+"/")+"/"+name, text)
			if err != nil {
				t.Fatal(err)
			}
			srcs = append(srcs, src)
			report(t, checkPure(src))
		}
		ranges, err := checkMapOrder(pkg.ImportPath, srcs, exports)
		if err != nil {
			t.Fatal(err)
		}
		report(t, ranges)
	}
}

// TestTheLinterKnowsEveryPureRoom compares the list of pure rooms with depguard's rules.
func TestTheLinterKnowsEveryPureRoom(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root(t), ".golangci.yml"))
	if err != nil {
		t.Fatal(err)
	}
	report(t, checkLinter(string(text), pureRooms))
}

func checkLinter(config string, rooms []string) []string {
	var findings []string
	for _, room := range rooms {
		if !strings.Contains(config, `"**/`+room+`/*.go"`) {
			findings = append(findings, ".golangci.yml: depguard has no rule for the pure room "+room)
		}
	}
	return findings
}

// listed is what `go list` tells of a package.
type listed struct {
	ImportPath string
	Dir        string
	Export     string // file with the package's types, from the build cache
	GoFiles    []string
}

// goList lists the packages of the rooms, and gives a look-up of the types of everything that they import.
func goList(t *testing.T, top string, rooms []string) ([]listed, func(path string) (io.ReadCloser, error)) {
	t.Helper()
	args := []string{"list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles"}
	var ours []string
	for _, room := range rooms {
		args = append(args, "./"+room)
		ours = append(ours, modulePath+"/"+room)
	}
	cmd := exec.Command("go", args...)
	cmd.Dir = top
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, stderr.String())
	}
	var packages []listed
	exports := map[string]string{}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var pkg listed
		if err := dec.Decode(&pkg); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("read the answer of go list: %v", err)
		}
		exports[pkg.ImportPath] = pkg.Export
		if slices.Contains(ours, pkg.ImportPath) {
			packages = append(packages, pkg)
		}
	}
	return packages, func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) }
}

// checkPure finds what can be seen in the source alone.
func checkPure(src source) []string {
	var findings []string
	special := roomImports[path.Dir(src.path)]
	for _, spec := range src.file.Imports {
		imp := strings.Trim(spec.Path.Value, `"`)
		if members, ok := special[imp]; ok {
			src.selects(imp, func(sel *ast.SelectorExpr) {
				if members != nil && !slices.Contains(members, sel.Sel.Name) {
					findings = append(findings, src.at(sel.Pos(), "%s in a pure room: if it is pure, add it to roomImports", types.ExprString(sel)))
				}
			})
			continue
		}
		own := slices.ContainsFunc(pureRooms, func(room string) bool { return imp == modulePath+"/"+room })
		if !own && !slices.Contains(pureImports, imp) {
			findings = append(findings, src.at(spec.Pos(), "a pure room may not import %s: take what it gives as an input, "+
				"or, if it is pure, add it to pureImports and to .golangci.yml", imp))
		}
	}
	src.selects("time", func(sel *ast.SelectorExpr) {
		if slices.Contains(impureTime, sel.Sel.Name) {
			findings = append(findings, src.at(sel.Pos(), "time.%s in a pure room: time is an input", sel.Sel.Name))
		}
	})
	ast.Inspect(src.file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			findings = append(findings, src.at(n.Pos(), "a goroutine in a pure room: return an effect, and let the caller run it"))
		case *ast.SelectStmt:
			findings = append(findings, src.at(n.Pos(), "select in a pure room: its choice is random, and it waits"))
		}
		return true
	})
	return findings
}

// checkMapOrder finds each range over a map, and each use of maps.Keys and its kin, that is neither sorted on the spot nor
// has a comment beginning with "order:" which says why the order does not matter.
func checkMapOrder(path string, srcs []source, exports func(string) (io.ReadCloser, error)) ([]string, error) {
	if len(srcs) == 0 {
		return nil, nil
	}
	fset := token.NewFileSet()
	var files []*ast.File
	var whole []source
	for _, src := range srcs {
		// Parsed once more: the type checker wants one set of positions for the whole package.
		again, err := parseInto(fset, src.path, src.text)
		if err != nil {
			return nil, err
		}
		whole = append(whole, again)
		files = append(files, again.file)
	}
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}}
	conf := types.Config{Importer: importer.ForCompiler(fset, "gc", exports)}
	if _, err := conf.Check(path, fset, files, info); err != nil {
		return nil, fmt.Errorf("check the types of %s: %w", path, err)
	}
	var findings []string
	for _, src := range whole {
		findings = append(findings, mapOrder(src, info)...)
	}
	return findings, nil
}

func mapOrder(src source, info *types.Info) []string {
	const advice = "say why its order does not matter in a comment that begins with \"order:\", or sort first"
	var findings []string
	excused := func(p token.Pos) bool { return strings.Contains(src.remark(p), "order:") }
	maps := src.imported("maps")
	sorted := map[ast.Expr]bool{}
	ast.Inspect(src.file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.RangeStmt:
			if _, ok := info.TypeOf(n.X).Underlying().(*types.Map); ok && !excused(n.Pos()) {
				findings = append(findings, src.at(n.Pos(), "range over a map: %s", advice))
			}
		case *ast.CallExpr:
			sel, ok := n.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			id, ok := sel.X.(*ast.Ident)
			if !ok {
				return true
			}
			if id.Name == "slices" && strings.HasPrefix(sel.Sel.Name, "Sorted") && len(n.Args) > 0 {
				sorted[n.Args[0]] = true
			}
			iterates := sel.Sel.Name == "Keys" || sel.Sel.Name == "Values" || sel.Sel.Name == "All"
			if maps != "" && id.Name == maps && iterates && !sorted[n] && !excused(n.Pos()) {
				findings = append(findings, src.at(n.Pos(), "maps.%s: %s", sel.Sel.Name, advice))
			}
		}
		return true
	})
	return findings
}
