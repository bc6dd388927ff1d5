//go:build mutants

package mutant

import (
	"fmt"
	"os"
	"sync/atomic"
)

// Built says that the mutants are in this build.
const Built = true

// Variable is the environment variable that chooses a mutant for a process.
const Variable = "OCLOCKS_MUTANT"

var (
	chosen = fromEnvironment()
	hits   atomic.Int64
)

// fromEnvironment ends a process that was told of a mutant which does not exist: it would be believed to be broken, and be sound.
func fromEnvironment() Mutant {
	name := os.Getenv(Variable)
	if name == "" {
		return None
	}
	m, ok := Find(name)
	if !ok {
		panic(fmt.Sprintf("%s: there is no mutant %q", Variable, name))
	}
	return m
}

// On says whether a mutant is chosen.
func On(m Mutant) bool {
	if chosen != m {
		return false
	}
	hits.Add(1)
	return true
}

// Choose chooses a mutant, or None, for everything that this process does from now on, and sets Hits to 0. Nothing may run meanwhile.
func Choose(m Mutant) {
	chosen = m
	hits.Store(0)
}

// Hits is how often On has said yes since Choose.
func Hits() int64 { return hits.Load() }
