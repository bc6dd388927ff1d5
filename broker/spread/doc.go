// Package spread decides how what the control plane tells a node (broker/control/desk.Copies) reaches each of its buckets: what every
// shard is told in which order, what a shard remembers for a bucket that begins later, whom a copy prefers as its neighbour, whether it
// is to be kept at all. It is pure: no I/O, no clock, no goroutine, no random number, and no map order. The daemon and the simulator
// both run it.
//
// # What a caller must do
//
//  1. Have one [Node], with the state that the buckets were opened with, and one [Share] for each shard, with the same state. What
//     Opened gives comes before everything else.
//  2. Pass what desk.Copies is told on to the Node, from one goroutine, and put each [Task] that it gives into the queue of every shard,
//     or of the shard of its bucket if it has one ([Task.Only]), in their order. Requests may be answered by a state as soon as it is
//     applied; its views go into the shards with the Task that tells of it.
//  3. Have the shard's goroutine do the tasks in their order ([Share.Do]), between two inputs of a batch. A bucket that begins in a shard,
//     since another one was split, is given to [Share.Begin] before its first input.
//
// # In which order
//
// Of a state first what grants are limited by, then the views that are new in it, then its change: a lease that counts under a
// change finds the views up to it. Then the nodes that it has no more: they are away for ever, and a chain in which nothing happens
// would not notice. Then whom the copies prefer, if something of that may be another: all of them when a node or the number of copies
// is, else those of buckets with another primary, where only some nodes have copies: who gave a bucket away need not keep it.
//
// Views are kept until the state that has them is applied: a bucket that has got its new view must not tell a client the map of before.
//
// Reading order: task.go, node.go, share.go.
package spread
