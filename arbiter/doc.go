// Package arbiter is a member of the control plane's Raft group: the goroutine, the clock and the store around
// [github.com/opencluster/oclocks/arbiter/core], which decides everything and says why it is safe; read its doc first.
//
// An arbiter has one goroutine. Everything comes to it through one bounded queue: frames beyond the bound are dropped (Raft
// repeats), calls beyond it get ErrBusy. It calls the FSM, Config.Events, Config.MayLease and Config.Send; those must not wait
// for the arbiter. In each turn it takes all that waits, reads the clock, and does what the core wants in the core's order:
// store, send, apply, answer, tell. What waits together is stored together, so that one fsync serves many proposals.
//
// The store on disk is a bbolt file: format, raft ID, count of starts, Raft's hard state, the newest snapshot, the log, some
// bytes of the caller's; each value with a checksum. Whatever cannot be stored stops the arbiter for good (Failed, Err): after an error of fsync nobody
// knows what the disk has. A memory store has the same interface and is lost with the process, and its raft ID with it, so that
// nobody counts on what it confirmed.
//
// Start returns when the FSM has the snapshot and what the log says is committed; the rest comes from the leader, or, with
// a single voter, at once.
//
// The one rule for those who decide with leases (a planner): name the term of the evidence, and whose leases must have
// ended, in a [Condition]; the leader then checks it once more and keeps it so until the command is applied. A
// decision without a term may be carried out under another leader that has granted new leases meanwhile.
//
// Files: config.go, api.go, errors.go, arbiter.go, call.go, queue.go, run.go, store.go, disk.go.
package arbiter
