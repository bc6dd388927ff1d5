// Package tidy has the tests with which the repository checks its own style. It has no other code, and nothing may
// import it.
//
// What is checked, and where:
//
//   - packages_test.go: every package has a doc.go with a package comment
//   - pure_test.go: pure rooms import only what is on a list, read no clock, start no goroutine, let no map order leak
//   - size_test.go: length of files and functions
//   - library_test.go: no printing, no package log, no init, no time.Sleep, no error thrown away without a reason
//   - words_test.go: no words of unfinished work
//   - links_test.go: every relative link of a Markdown page leads somewhere
//   - configuration_test.go: docs/configuration.md has the settings that the daemon knows
//
// Every check is a function from source to findings, tried in checks_test.go on source that breaks its rule, so that a
// check which finds nothing is known to be able to. A finding says the place and what to do. Where a rule knows an
// exception, it is a comment beside the code that says why; there are no lists of exceptions here.
package tidy
