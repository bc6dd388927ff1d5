// Package flow decides what passes between the copies of a node and the control plane, and in which order: pure types, which
// the goroutines of broker/control carry inputs to and outputs from. A simulator uses the same ones.
//
// Same inputs give the same outputs: the package performs no I/O, reads no clock, starts no goroutine and draws no random
// number. Its types are not safe for concurrent use.
//
//   - [Feed] (feed.go): what has been applied here, as the copies are told: the views of a change before the change itself.
//   - [Asks] (asks.go): views that are to be committed: one command at a time, the next ones collect meanwhile; when a copy may
//     be told that its view will never be.
//   - [Presence] (presence.go): which nodes are there, from closed and opened routes and from what is heard over them.
//   - [Judge] (judge.go): whether a node may register under an identifier, or another one lives under it.
//   - [Starts] (starts.go): which starts of its node a disk knows, and whether it is older than the node.
package flow
