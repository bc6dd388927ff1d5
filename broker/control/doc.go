// Package control is the control plane on one node: it hosts this node's part of the Raft group (package arbiter) and the
// shared configuration (conf/shared), makes the node known to the others, keeps its lease, and tells the node's copies
// ([Copies]) what they have to know. While this node leads, it also runs the planner (arbiter/plan) and carries out what
// that decides. Everything between nodes goes over NATS, in the account of the nodes (subject.go).
//
// It decides nothing about locks, and what it decides is in pure packages, which the simulator runs too: arbiter/plan, and below
// this one flow, enrol (how a process becomes its node), desk (what the copies are told and when), reign (what a leader does),
// and leave (how a node goes that is stopped). What is here carries: goroutines that put what happens into an inbox, step the room, and carry out what it wants.
//
// # From the start to the first lease
//
//  1. [Start] opens the control store, looks whether it is an old one (below), starts the arbiter and listens. A node whose
//     store is empty and that may found does so, if nobody answers who belongs to a cluster already.
//  2. It asks whoever leads to be registered, again and again until there is an answer: leader.register has no queue group
//     and only the leader listens on it. The leader proposes the registration. It refuses an identifier under which another
//     node lives: see flow.Judge. The answer has the node's number, its life, and the change that says so.
//  3. The planner makes the node a learner of the group, and it gets the log. Once its own state has the change of the
//     answer, [Control.WaitRegistered] returns. From then on it asks for leases.
//  4. The broker makes its copies and calls [Control.Serve]: now the copies are told views, changes and leases.
//
// # A disk that is older than its node
//
// A node may come back with an old copy of its directory: put back from a backup, or that of a machine that was cloned. Its
// journal lacks what it has confirmed since, and its control store votes and entries that the group counts on. So it must
// come back as one that has lost everything: in another life (conf/shared), with another raft ID.
//
// Every process draws a random number, its start. It stores it in the control store, on the disk, before anything else is
// done with that store, beside the start before (flow.Starts). The registration brings along all starts that the disk knows,
// and the shared configuration keeps the one that was registered last. If that one is not among those of the disk, the
// directory was copied before that start, or belongs to another history: the registration is refused (shared.ErrOldDisk), the
// node makes its control store a new one (Store.Renew: another raft ID, nothing else in it) and registers with that, which is
// another life by itself. The old raft ID leaves the group like that of any node that was replaced.
//
// Claim: a node that is registered in a life that it has had before has everything that was on its disk when its last
// registered start began; that is, its disk is not a copy from before that. Proof: the start was on the disk before it was
// registered, and no disk without it is registered after that with the same raft ID.
//
// Claim: no disk that has always been the node's own is refused. Each start is on it before it can be registered, and it is
// dropped only when a later one is known to be registered: then the configuration has that one or a later one for ever. So a
// crash between storing and registering leaves a start too many in the list, a lost answer one that was registered and is not
// known to be, and both are among the starts that are told. The list is bounded (flow.MaxStarts): a node that was registered,
// never heard so, and then began more often than that without a leader is refused; that costs one life of one node. A question
// that comes twice is the same start, and is answered the same again. One that comes late, after the next process has been
// registered, does not know that process's start, and is refused, as it should be.
//
// The registration comes when the old control store is part of the group already. It may have voted twice by then, and
// Raft breaks if a member has forgotten what it confirmed (it stops with a panic if it is lucky). So before the store is
// opened for Raft the node asks everybody for its own last start (starts.go). One answer is proof enough, the leader's or not, if
// it is of a later change than the last registration that the disk knows of: somebody who is behind accuses nobody. A leader's
// answer that is no proof ends the asking; else it goes on for leaderWait if those who answer can elect a leader without this node,
// and for requestWait if somebody is there and nobody answers.
//
// A node of which the others know that its disk is old, and without which they have no majority (the one voter of two nodes),
// does not start: with its old store it would take back what was decided, and without one nobody could decide anything.
//
// What remains: if nobody answers in that time, since the whole cluster has just been started, the old store takes part, and
// the registration finds out afterwards; what the group decided meanwhile may rest on a forgotten vote. A disk of a time when its node
// was the only voter decides alone: if it leads when the others come, they are taken for the old ones, and the cluster goes on from that time. If most directories
// are old copies of one time, that time is what the cluster goes on from, and nobody can know better. A copy that was made
// while the node ran, and put back without another start between (a reverted snapshot of a machine), has the last start on it
// and counts.
//
// A node that was removed is not asked for its start, since nobody keeps that any more: with an old disk it votes until its vote is taken.
//
// A directory of which only the journal was put back is noticed too: with each registration the control store keeps a mark of the
// journal (journal.Journal.Mark), and a journal that lacks it is from before that, so the node is fresh. The mark is stored only with
// the registration: a process that ends before has not stored it, and the next one finds the same.
//
// # What the copies are told, and in which order
//
// Changes are applied on the arbiter's goroutine, which must not wait: it leaves the state, which is immutable, in a
// flow.Feed. One goroutine (teller.go) calls Copies: for each change first the views that are new in it, then Applied. A
// lease is told as it comes; that a copy does not act under it before the change that it came with is applied is the copy's
// own duty (chain.Replica.Grant), and the order here makes it right: Applied(c) comes after all views up to c.
//
// # What the copies ask
//
// Views that primaries propose are collected (flow.Asks, flow.Proposer), and go into one command at a time. That a copy is told Refused
// only if no copy of its question can be committed any more is argued there. A command whose outcome is unknown is
// proposed again.
//
// # Leading
//
// A reign (leading.go, package reign) begins when the arbiter says that this node leads, and ends when it does not any more or the term
// changes. It subscribes to leader.*, steps the planner when there is something new or the planner said when, proposes its
// views, and sends its orders with the term. A node ignores an order of an older term than the newest that it knows: an order to
// seal of a leader that was deposed would harm nobody's safety, but would stop a bucket for nothing. Orders and reports may
// be lost: the planner repeats what is unanswered.
//
// # Who is there
//
// The server tells when a route to a node opens or closes (Config.Routes). A closed one makes the node away at once: the copies
// learn it, and the arbiter, which looks for a new leader if it was the leader. It is back when something was heard from it over
// the new route, for which it is greeted (flow.Presence). A node that is stopped says so on away.
//
// # Goroutines
//
// NATS callbacks and the arbiter's callbacks only put things into a box with limits and wake whoever owns it; nothing waits
// there. Everything that the arbiter sends goes through one bounded queue to one goroutine that publishes (post.go).
//
//	teller     calls Copies: package desk                           teller.go
//	post       publishes                                            post.go
//	proposer   proposes this node's views: flow.Proposer            ask.go
//	enrolment  asks for registration: package enrol                 register.go
//	answers    32 at a time: status, and commands for the leader    serve.go
//	leading    package reign, while this node leads                 leading.go
//	           and one for each command that the reign has proposed
//
// [Control.Close] ends all of them.
//
// Reading order: api.go, control.go, callback.go (what the arbiter calls), box.go, teller.go, ask.go, starts.go, register.go,
// leading.go, leave.go, then the rest.
package control
