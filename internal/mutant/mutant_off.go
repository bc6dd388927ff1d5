//go:build !mutants

package mutant

// Built says that the mutants are in this build.
const Built = false

// On says whether a mutant is chosen: none ever is in this build.
func On(Mutant) bool { return false }

// Choose chooses nothing in this build.
func Choose(Mutant) {}

// Hits is 0 in this build.
func Hits() int64 { return 0 }
