package transcript

import (
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// World does one line of a script, as words, and writes what is to be seen.
type World func(t *testing.T, out *strings.Builder, words []string)

// Play plays all files. Empty lines are left out; a step that writes nothing says ok.
func Play(t *testing.T, begin func(t *testing.T) World) {
	datadriven.Walk(t, "testdata/golden", func(t *testing.T, path string) {
		do := begin(t)
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			out := &strings.Builder{}
			for line := range strings.SplitSeq(d.Input, "\n") {
				if words := strings.Fields(line); len(words) > 0 {
					do(t, out, words)
				}
			}
			if out.Len() == 0 {
				return "ok\n"
			}
			return out.String()
		})
	})
}

// Uint is a number in a script.
func Uint(t *testing.T, word string) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(word, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
