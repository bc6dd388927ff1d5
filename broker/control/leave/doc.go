// Package leave decides how a node goes that is being stopped, so that nobody waits for its lease to end: it hands its buckets over,
// waits until the others can decide without its vote, gives the leadership away, asks for no lease any more, and says farewell. It is
// pure: [Leaving.Step] takes what is known and gives what is to be done; no I/O, no clock, no goroutine, no random number. The
// goroutine that calls control.Control.Leave and the simulator both run it.
//
// # What a caller must do
//
//  1. Step at once, then whenever a state is applied here or the leader is another one, and at Output.Next, until Done. Say Late, and step, when whoever asked for it waits no longer: then it is Done in that Step.
//  2. On Ask: ask whoever leads to take this node's buckets (reign.Leave); Step with the answer, or that there was none in AskWait
//     ([Silence]). On Transfer: have the arbiter give the leadership to the best of the others; Step when that has ended or has failed.
//     What was asked for last may be waited for before the next Step: one of both is on its way at a time.
//  3. On Done: ask for no lease any more if Mute, then say farewell to everybody, whatever Err says. The copies serve until then.
//
// # Why in this order
//
// Buckets go first, since the next leader takes nothing from anybody for a while: a leader that leaves is the one who can hand over
// at once (reign keeps it from giving the leadership away before that). The vote goes before the leadership: right after a cluster was
// made there may be two voters, and the one that is left could never make a third; the leader's plan promotes another node, or has
// this one not vote any more, once it knows that this one goes. Farewell is last: whoever hears it counts this node as away.
//
// Nobody is waited for if nobody is there: the leader has said so some times in a row, or nobody answers and all that are known are
// away. One such answer would not do, since a node that has just come holds no lease yet.
//
// Times are boot time in nanoseconds. Reading order: leaving.go.
package leave
