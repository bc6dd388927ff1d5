// Package local runs a cluster of daemons on this machine, for trying and for tests: each a process of its own with a data
// directory, a configuration file and a log file, all in one directory. They end when this process ends, however that does.
//
// The directory is the cluster: run again with it, the same nodes come back with their locks.
//
// It knows nothing of locks, and of a cluster only what makes directories belong together.
//
// Read in this order: options.go, local.go (what happens when), layout.go (the directory), nodes.go, child.go.
package local
