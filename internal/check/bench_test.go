package check_test

import (
	"testing"
	"time"

	"github.com/opencluster/oclocks/internal/check"
)

// BenchmarkAdd is the cost of an event of a history with all kinds, the search for an order included and without it.
func BenchmarkAdd(b *testing.B) {
	for _, bench := range []struct {
		name   string
		window int
	}{{"all", 0}, {"without an order", -1}} {
		b.Run(bench.name, func(b *testing.B) {
			history := newNaive(1).run(200 * time.Second)
			k := check.New(check.Options{Window: bench.window})
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if i == len(history) {
					i = 0
					k.End(0, false)
					k = check.New(check.Options{Window: bench.window})
				}
				k.Add(&history[i])
			}
			if v := k.Violations(); len(v) > 0 {
				b.Fatal(v[0])
			}
		})
	}
}
