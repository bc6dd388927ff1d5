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
//  5. When a node becomes leader, have [Lead] with its term committed. Views that the planner has made go with its term, in an
//     entry that counts in that term of Raft only (core.Condition.Term).
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
// by who asks: the primary (bucket/chain) or the planner (arbiter/plan). One that the planner has made must not count in a later
// term: what it knew of leases is over by then, and a lease of the new term may be out, so a command that got lost on its way and
// came late could make a second primary. The condition of its entry prevents that, from the first lease of the new term on
// (arbiter/core); it comes with its term as well, and does not count after [Lead] of a later one, whoever has proposed it.
// What a primary asks for needs no such thing: as long as nothing else was committed, nobody took over from it.
//
// The rule of acknowledgements (setting acks) is the one by which a view's answers were made, and a takeover has to ask for
// as many copies as that rule may have left out. So it may change between first and all, which both need the whole in-sync
// set, but never from or to majority. The length of node leases (node_lease) never changes, and every node has to take part with it:
// a new leader waits as long as that for the end of leases that it does not know of.
//
// # Leases that are longer than max_lease
//
// A recovery waits until every lease has ended that a client may count on ([State.Recovery]), so it must know the longest one.
// max_lease is the limit of what is promised from its change on: a session's lease, as a keep-alive or a grant tells it, and the time limit
// of what a grant calls durable, each time that one is given or renewed. When it is made longer, recoveries are longer from that
// change on: a node promises the longer leases only after it has applied the change, and the view of a recovery of what was
// promised by then comes later, so whoever carries it out has applied the change too. When it is made shorter, leases of before
// are out, and the recovery of a lost history must wait for them: Longest keeps what it was, the longest since.
//
// That ends by a change too, [Outlived]. One node_lease after the change Shortened was committed nobody acts any more who has not
// applied it, because a lease of a node counts only with the changes that were committed before it was granted. So no promise
// that is longer than max_lease is made from then on, and those of before end at most Longest later, by clocks that differ by
// less than 1/7. The leader waits for [State.Outlive], counted from when it has seen the change as leader, and then proposes
// Outlived with that change; if max_lease was changed meanwhile, it is refused and the waiting begins anew. A new leader begins
// anew as well: that makes recoveries longer, and nothing wrong.
//
// # Doubling
//
// [Double] adds to each bucket b a second half, bucket b + (number of buckets). What b had is split by a change in b's own
// history (chain.Replica.Fork), which its primary makes when it has applied the doubling, or whoever becomes primary then.
// The half gets the same members and in-sync set, since every copy of b that has that change has the half's state too, and
// an epoch far ahead of b's, one in which nobody has acted: a copy that has forked finds a view that it does not know,
// and its primary takes over in it. No bucket may be without a view or in recovery then.
//
// What is asked of those who fork: the half's history must begin below every change of its own, and b may have gone on to
// other epochs before it is split. So the half begins with State{Self} alone (epoch 0, not sealed: it has never acted) and
// with a base point of epoch 0 (the hash has b's history in it). And until b's copy on a node has been split, or its copy of
// the half has been filled by joining, that node must not answer a seal order for the half: an empty copy is none.
//
// # Programs of different versions
//
// While a cluster is upgraded node by node, two programs apply the same commands, and must do the same. A level is a number for how
// commands are applied. [Known] is the highest that a program knows; it knows those below as well. The state has the cluster's level
// ([State.AppliedBy]), and by that one all apply, whatever they know.
//
// Who changes what any command does (an operation, a field, a setting, a rule) raises Known, and has what is new done only at that level:
// what is new in a command is named in Command.needs, what is new in how one is applied asks for State.AppliedBy. A command that
// needs a higher level than the cluster's is refused (ErrLevel) and changes nothing. A program that does not know it at all refuses it
// too, if for another reason.
//
// The level is raised by a command ([Raise]) that the leader proposes when every registered node knows a higher one ([State.Raisable]): each
// registration says what its program knows. From then on no node is registered that does not know it. So an upgrade ends by itself
// when the last node is restarted, and after that there is no way back to the program before; before that there is.
//
// A program that comes to a level that it does not know stops there: Apply and Restore give ErrOldProgram, nothing is changed, and
// nothing is applied any more. It can be one that is not registered (it joins, was removed, or has just been replaced by an older one).
//
// Claim: programs that have applied the same commands have the same state, or have stopped. Proof, by the number of commands: before a
// command the states are the same, so the levels are. All that have not stopped know that level, and at one level all programs
// that know it do the same. A command above it is refused by all. A Raise is taken by all or refused by all, since that depends on the state only;
// those that do not know the new level stop and have not changed anything. What the programs do not share is the text of a refusal.
//
// Reading order: state.go, command.go, level.go, errors.go (results), settings.go, leases.go; fsm.go; nodes.go, zones.go, views.go;
// digest.go, snapshot.go.
package shared
