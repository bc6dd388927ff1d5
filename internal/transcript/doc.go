// Package transcript plays golden transcripts, for tests: each file of testdata/golden is a script for a world of its own. A step's
// lines are done one after the other, and what they write is compared with what stands below them.
package transcript
