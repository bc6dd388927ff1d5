// Package shared is the configuration that all nodes of a cluster share, as a pure state machine: the nodes, the settings,
// the zones with their keys and users, and the view of each bucket. Every node applies the same commands in the order in
// which the Raft group committed them, and so has the same [State].
//
// Same state and same command give the same result: no I/O, no clock, no goroutine, no random number. What a command needs
// of these (keys, times) it brings along. A command is JSON, read strictly; what is wrong with one is told in its [Result],
// and it changes nothing then. Nothing panics, whatever the bytes.
//
// # What a caller must do
//
//  1. Call [FSM.Apply] with each committed command and its Raft index, the change ID, in order; on a node that is behind,
//     [FSM.Restore] first. State, Digest and Newest may be called from anywhere.
//  2. Never write to a State. Each change makes another one that shares what is the same (the lists are copied when they
//     change: at the largest number of buckets, 65,536, a change of one view copies 3 MB, at 1,024 it is 48 kB).
//  3. Compare digests only of the same change ID. The snapshot holds the zones' keys and is a secret; the digest is none.
//  4. Before a node is registered with another raft ID, be sure that the one with the old ID is not alive. Give a lease only
//     to a registered node with its present raft ID.
//  5. When a node becomes leader, have [Lead] with its term committed, and let it grant no lease before State.Term is that
//     term. Views that the planner has made go with its term.
//
// # Nodes
//
// The identifier says which machine (data directory) it is, the number is what views call it, the raft ID is the control
// store's, the life counts how often it has begun without what it had. A number is given once. Another raft ID means that
// the directory is not what it was, so the life rises as it does for a fresh node. A copy (chain.Member) whose incarnation
// does not have its node's life in the upper half does not exist any more ([State.Lives]); a view whose primary does not
// exist is not committed. A raft ID that was replaced or removed never comes back: it could vote twice. Which process of the
// node was registered last is kept, and one whose disk does not know that is not the same node any more, whatever it says:
// the argument is in broker/control.
//
// # Views
//
// A view is committed if its epoch is the bucket's plus one: compare-and-set. Whether it is right to ask for it is decided
// by who asks: the primary (bucket/chain) or the planner (arbiter/plan). One that the planner has made comes with the term in
// which it was made, and does not count after [Lead] of a later term. What the planner knew of leases is over by then, and a
// lease of the new term may be out; without that, a command that got lost on its way and came late could make a second
// primary. What a primary asks for needs no such thing: as long as nothing else was committed, nobody took over from it.
//
// The rule of acknowledgements (setting acks) is the one by which a view's answers were made, and a takeover has to ask for
// as many copies as that rule may have left out. So it may change between first and all, which both need the whole in-sync
// set, but never from or to majority. The length of node leases (node_lease) never changes, and every node has to take part with it:
// a new leader waits as long as that for the end of leases that it does not know of.
//
// # Doubling
//
// [Double] adds to each bucket b a second half, bucket b + (number of buckets). What b had is split by a change in b's own
// history (chain.Replica.Fork), which its primary makes when it has applied the doubling, or whoever becomes primary then.
// The half gets the same members and in-sync set, since every copy of b that has that change has the half's state too, and
// the epoch that follows b's, as one in which nobody has acted: a copy that has forked finds a view that it does not know,
// and its primary takes over in it. No bucket may be without a view or in recovery then.
//
// What is asked of those who fork: the half's history must begin below every change of its own, and b may have gone on to
// other epochs before it is split. So the half begins with State{Self} alone (epoch 0, not sealed: it has never acted) and
// with a base point of epoch 0 (the hash has b's history in it). And until b's copy on a node has been split, or its copy of
// the half has been filled by joining, that node must not answer a seal order for the half: an empty copy is none.
//
// Reading order: state.go, command.go, errors.go (results), settings.go; fsm.go; nodes.go, zones.go, views.go; digest.go,
// snapshot.go.
package shared
