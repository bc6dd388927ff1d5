// Package cluster is the view of `oclocks-cli cluster`: the nodes, who leads, who is primary of what, how far the copies are,
// and whether they are equal.
//
// It is a pure function from what a node answers to lines (view.go); package live shows it.
package cluster
