// Package desk decides what the copies of a node (control.Copies) are told, and in which order: views, changes, leases, orders,
// who is away; and what the node tells others of itself and of its copies. It is pure: [Desk.Turn] takes what waited in an
// [Inbox] and gives effects; no I/O, no clock, no goroutine, no random number, and no map order. One goroutine of broker/control
// and the simulator both run it.
//
// # What a caller must do
//
//  1. Put into the [Inbox] whatever comes, from wherever: each change when it is applied, each lease, what the network and the
//     node's own goroutines say. An event may be put only after what it knows of has been pushed there: a lease after the
//     changes before it, Leadership after those that were applied when the arbiter said it.
//  2. When something was put, or at the time that Turn gave, take the Inbox, read the [Facts] after that, and call Turn. One
//     Turn at a time.
//  3. Carry the effects out in their order, all of them, before the next Turn. None waits for anything; what goes to other
//     nodes may get lost.
//  4. Answer with Serve when the copies are there, once.
//  5. Before an [Install] is told, tell flow.Proposer.Committed of each of its views: a copy that learns a view must not have a
//     question answered that is older.
//
// # In which order
//
// A Turn tells that the copies are there (Serve: who is away, before everything else), then each change, the views that are new
// in it before the change itself, then the newest lease, then what the events say, in their order, then the reports of sealed
// copies, then who is away and who is back. So a lease is told after every change that was applied when it was granted, and an
// order to seal after every view that the leader could have known here.
//
// # Whose node it is
//
// From the first state on in which this process is not the one that is registered as the node, the copies are told nothing, no
// lease either: one that is granted after that change counts only with it, so they never act under it beside the copies of
// another process, which may be of the same life. A node that was removed goes on without its copies while its own log says
// that it votes; that log may never tell it otherwise, so package enrol asks (Enrolment).
//
// Reading order: effect.go, inbox.go, desk.go, look.go (who is there), self.go.
package desk
