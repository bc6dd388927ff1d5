// Package core is the pure part of an arbiter: Raft, leases, membership.
package core
