package sim

import (
	"fmt"
	"strings"
	"time"
)

// Explain tells the story of a run that fails, made as small as can be within a time.
func Explain(r Recipe, shrink time.Duration, lines int) string {
	small, runs := r, 1
	if shrink > 0 {
		small, runs = r.Shrink(shrink)
	}
	result := small.Run(max(lines, 1))
	var b strings.Builder
	fmt.Fprintf(&b, "\n=== seed %d, made smaller in %d runs ===\n", r.Seed, runs)
	for _, line := range result.Story {
		fmt.Fprintln(&b, line)
	}
	fmt.Fprintf(&b, "\n%s\nmix: %s\nreplay it: %s\n\n", strings.Join(result.Wrong, "\n"), result.Mix, small.Command())
	return b.String()
}
