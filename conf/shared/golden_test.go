package shared

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// The files in testdata/golden are lists of commands; what comes of each is the expectation (-rewrite). @keys1 stands for the keys
// of a zone, @user1 for a public key, @id1 for an identifier.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata/golden", func(t *testing.T, path string) {
		w := newWorld()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			var out strings.Builder
			switch d.Cmd {
			case "apply":
				for line := range strings.Lines(d.Input) {
					line = fill(t, strings.TrimSpace(line))
					res, err := w.apply([]byte(line))
					if err != nil {
						t.Fatalf("%s: %s: %v", d.Pos, line, err)
					}
					text, err := json.Marshal(res)
					if err != nil {
						t.Fatal(err)
					}
					fmt.Fprintln(&out, scrub(string(text)))
				}
			case "show":
				w.show(&out)
			case "setting":
				s := w.fsm.State().Settings
				for _, key := range Keys() {
					v, err := s.Get(key)
					if err != nil {
						t.Fatal(err)
					}
					help, values := Help(key)
					fmt.Fprintf(&out, "%s=%s (%s; %s)\n", key, v, values, help)
				}
			default:
				d.Fatalf(t, "unknown command")
			}
			return out.String()
		})
	})
}

var macro = regexp.MustCompile(`@(keys|user|id)([0-9]+)`)

func fill(t *testing.T, line string) string {
	return macro.ReplaceAllStringFunc(line, func(m string) string {
		part := macro.FindStringSubmatch(m)
		var n int
		if _, err := fmt.Sscan(part[2], &n); err != nil {
			t.Fatal(err)
		}
		switch part[1] {
		case "id":
			return testID(n)
		case "user":
			return testUser(t, "", byte(n)).Key
		}
		text, err := json.Marshal(testKeys(t, byte(10*n)))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	})
}

var nkey = regexp.MustCompile(`U[A-Z2-7]{55}`)

func scrub(text string) string { return nkey.ReplaceAllString(text, "U…") }

func (w *world) show(out *strings.Builder) {
	s := w.fsm.State()
	fmt.Fprintf(out, "change %d cluster %q locked %t term %d last %d removed %v\n", s.Change, s.Cluster, s.Locked, s.Term, s.Last, s.Removed)
	if s.Longest != 0 {
		fmt.Fprintf(out, "longest lease %s since change %d, recovery %s, outlived after %s\n", s.Longest, s.Shortened, s.Recovery(), s.Outlive())
	}
	for _, n := range s.Nodes {
		text, err := json.Marshal(n)
		if err != nil {
			panic(err)
		}
		fmt.Fprintf(out, "node %s\n", text)
	}
	for _, z := range s.Zones {
		fmt.Fprintf(out, "zone %s open=%t users", z.Name, z.Open)
		for _, u := range s.Keys[z.Name].Users {
			fmt.Fprintf(out, " %s", u.Name)
		}
		fmt.Fprintln(out)
	}
	for b, v := range s.Views {
		fmt.Fprintf(out, "bucket %d ", b)
		if v.Epoch == 0 {
			fmt.Fprintln(out, "-")
			continue
		}
		fmt.Fprintln(out, v)
	}
	for _, b := range s.pinned() {
		fmt.Fprintf(out, "pin %d to %d\n", b, s.Pins[b])
	}
}
