// Package setup makes a new node ready: the first one of a cluster, or one that joins with a token. It writes the data
// directory (identifier, keys, certificate) and the configuration file, and refuses to touch what is there already.
//
// It starts no daemon, and knows nothing of locks.
//
// Read in this order: node.go (what a node is told), fill.go (what was left out), first.go, join.go, token.go.
package setup
