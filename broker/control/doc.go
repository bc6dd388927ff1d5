// Package control is the control plane on one node: it hosts this node's part of the Raft group (package arbiter) and the
// shared configuration (conf/shared), makes the node known to the others, keeps its lease, and tells the node's copies
// ([Copies]) what they have to know. While this node leads, it also runs the planner (arbiter/plan) and carries out what
// that decides. Everything between nodes goes over NATS, in the account of the nodes (subject.go).
//
// It decides nothing about locks, and what it decides about copies is in pure packages: arbiter/plan, and flow below this
// one. What is here carries.
//
// # From the start to the first lease
//
//  1. [Start] opens the control store, starts the arbiter and listens. A node whose store is empty and that may found does
//     so, if nobody answers who belongs to a cluster already.
//  2. It asks whoever leads to be registered, again and again until there is an answer: leader.register has no queue group
//     and only the leader listens on it. The leader proposes the registration. It refuses an identifier under which another
//     node lives: see flow.Judge. The answer has the node's number, its life, and the change that says so.
//  3. The planner makes the node a learner of the group, and it gets the log. Once its own state has the change of the
//     answer, [Control.WaitRegistered] returns. From then on it asks for leases.
//  4. The broker makes its copies and calls [Control.Serve]: now the copies are told views, changes and leases.
//
// # What the copies are told, and in which order
//
// Changes are applied on the arbiter's goroutine, which must not wait: it leaves the state, which is immutable, in a
// flow.Feed. One goroutine (desk.go) calls Copies: for each change first the views that are new in it, then Applied. A
// lease is told as it comes; that a copy does not act under it before the change that it came with is applied is the copy's
// own duty (chain.Replica.Grant), and the order here makes it right: Applied(c) comes after all views up to c.
//
// # What the copies ask
//
// Views that primaries propose are collected (flow.Asks), and go into one command at a time. That a copy is told Refused
// only if no copy of its question can be committed any more is argued there. A command whose outcome is unknown is
// proposed again.
//
// # Leading
//
// A reign (reign.go) begins when the arbiter says that this node leads, and ends when it does not any more or the term
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
//	desk       calls Copies; routes and greetings                          desk.go
//	post       publishes                                                   post.go
//	proposer   proposes this node's views, one command at a time           ask.go
//	enrolment  asks for registration until it is there, then ends          register.go
//	answers    32 at a time: status, and the leader's requests             serve.go
//	reign      steps the planner, while this node leads                    reign.go
//	its hands  its views, one command at a time; membership, one step      hands.go
//
// [Control.Close] ends all of them.
//
// Reading order: api.go, control.go, callback.go (what the arbiter calls), box.go, desk.go, ask.go, register.go, admit.go (the
// leader's side of it), reign.go, hands.go, leave.go, then the rest.
package control
