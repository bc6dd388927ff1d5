// Package enrol decides how a process becomes the node that it says it is: what it asks the others before its control store is
// opened for Raft ([Asking]), and how it is registered ([Enrolment]). It is pure: inputs in, outputs out; no I/O, no clock, no
// goroutine, no random number. The goroutines of broker/control and the simulator both run it. Why it is so is in broker/control,
// "A disk that is older than its node".
//
// # What a caller must do
//
//  1. Before anything else is done with the control store, store flow.Starts.Begin of the new start on the disk.
//  2. Step an [Asking] at once, then with each answer, and at Asked.Next, until it is Done. Ask means: publish the question to
//     everybody ([LastStart] makes the answers). Answers to earlier questions count as well. Say alone if it is known that nobody
//     listens.
//  3. If it is Old: do not start if Err says so, else make the control store a new one, and store flow.Starts{}.Begin of the start.
//  4. Step an [Enrolment] at once, then when the question that it wanted has an answer or has none ([Silence], after RequestWait at
//     the latest), when a state was applied here, when the leader is another one, and at Enrolled.Next, as long as the process
//     lives. One question is on its way at a time.
//  5. On Become: store Starts, before it asks for leases or tells anybody its number. On Fail it is over; if OldDisk, the control
//     store is made a new one when nothing uses it any more. Stays: it was removed and goes on for its vote; say so, and serve nothing.
//
// Times are boot time in nanoseconds.
package enrol
