package transcript

import (
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/opencluster/oclocks/bucket/chain"
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

// View reads "5:1,2": epoch 5, nodes 1 and 2, all in sync, each with the incarnation that is given.
func View(t *testing.T, text string, incarnation uint64) chain.View {
	t.Helper()
	epoch, nodes, _ := strings.Cut(text, ":")
	v := chain.View{Epoch: Uint(t, epoch)}
	for n := range strings.SplitSeq(nodes, ",") {
		v.Chain = append(v.Chain, chain.Member{Node: Uint(t, n), Inc: incarnation})
	}
	v.InSync = len(v.Chain)
	return v
}
