// Package ladder climbs from a bare NATS request to a lock: three processes with a NATS server each, and a responder inside, which
// does one thing more at each step of what a daemon does for a lock, and nothing else. Between two steps is what that thing costs on
// this machine; below the first one nothing of it can be had.
//
// Reading order: node.go (a process, and what the steps are), relay.go (steps without goroutines of their own), shard.go (steps with
// the goroutines of a daemon), tcp.go.
package ladder
