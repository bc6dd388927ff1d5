// Package arbiter is a member of the control plane's Raft group: the goroutine, the clock and the store around
// [github.com/opencluster/oclocks/arbiter/core], which decides everything.
package arbiter
