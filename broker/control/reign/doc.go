// Package reign decides what the leader of the control plane does while it leads, in one term: when the planner (arbiter/plan) is
// asked and with what, which views are proposed, which orders go out, who is registered, what a node that leaves is told. It is
// pure: [Reign.Step] takes what is known and what has happened, and gives what is to be done; no I/O, no clock, no goroutine, no
// random number, and no map order. The goroutines of broker/control and the simulator both run it.
//
// # What a caller must do
//
//  1. Make a [Reign] when the arbiter says that this node leads, and end it when it does not any more or the term is another one.
//  2. Put what happens into an [Inbox], from wherever it comes: that something may be new ([Changed]: a state was applied, a node
//     came or went, the members are others), what nodes send, and what became of what the room wanted ([Done]).
//  3. When there is something in the Inbox, or at [Output.Next], take what is in it, then read the [Facts] in the order of its
//     fields, so that they have what the inputs tell of, and Step. One Step at a time.
//  4. Carry the Output out in the order of its fields, before the Facts of the next Step are read. Bar comes first: no
//     lease may be given to a node that is barred. Nothing else has to be waited for: what [Output.Proposals] and [Output.Group]
//     come to is told with a Done, once for each, when it is known or when the time it names is over.
//  5. At the end: give nobody a lease by this reign's Bar any more than by another's (there is none, then), and tell those who wait
//     what [Reign.End] says. Done that come later are for nobody.
//  6. Ask [MayLease] whether a node may have a lease.
//
// # In which order
//
// A Step takes what is in the Inbox in its order, then asks the planner (if anything happened that it could care about), then
// takes the next views to propose: so the command has what the planner wants now. One command with views is on its way at a time, one
// registration, one change of the group. The first command of a reign is the term itself (shared.Lead).
//
// Nothing is planned before the cluster is founded, and nobody is answered: Listen says when this node answers as the leader.
//
// # Registrations
//
// They are judged in the order in which they come (flow.Judge), one at a time, so that one process has one outcome. A process that
// asks again gets the answer that it got, as long as that is true. Of each process it is kept when it asked first.
//
// Reading order: reign.go (inputs, outputs, Step), inbox.go, round.go (the planner), views.go, orders.go, admit.go.
package reign
