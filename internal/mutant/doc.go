// Package mutant has the planted bugs: mistakes that somebody could make in this code and a reviewer could overlook, each to be
// found by the simulator because a promise is broken. What none of them finds is not checked.
//
// A plant is one line where the mistake would be,
//
//	if mutant.On(mutant.RecoveryDoesNotWait) { … }
//
// and the normal build has nothing of it: [On] is a constant there (mutant_off.go), and the compiler leaves out what depends on it.
// With the build tag mutants (mutant_on.go) one mutant can be chosen for a process: by [Choose], or by the environment variable
// OCLOCKS_MUTANT=name.
//
// The table is in table.go. A test of the normal build compares it with the plants in the code: each is planted exactly once.
// hunt/ runs the simulator on every mutant until it finds a violation and writes docs/mutants.md: `make mutants`.
//
// How to add one: a constant and a row in table.go; On as the last operand of its condition, so that [Hits] counts how often it was
// really different; then `make mutants MUTANTS=its-name`. One that is never found tells which of three is missing: a fault that gets
// there (no hits), a checker that sees it, or the damage itself, because another rule covers it. Such a one is no mutant: take it out
// and say why in docs/reliability.md.
package mutant
