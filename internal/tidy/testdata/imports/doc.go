// Package imports imports what the tests of the map-order check import, so that `go list -export` has its types.
package imports

import (
	"maps"
	"slices"
)

// Keys uses both.
func Keys(m map[int]int) []int { return slices.Sorted(maps.Keys(m)) }
