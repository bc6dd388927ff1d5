// Package daemons runs real daemons for tests of the whole: processes that are killed and stopped, clusters out of them, and
// networks of namespaces whose ways can be cut. Packages e2e and chaos share it; it knows no test framework, everything that
// can fail gives an error.
//
// Read in this order: process.go (a child and what it prints), cluster.go (nodes that belong together), network.go (their
// namespaces, and cuts), binaries.go (the commands, built once).
package daemons
