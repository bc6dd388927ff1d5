// Package machine is the client's thinking as a pure state machine: which request is sent when, which is repeated, when a
// lock may be trusted and when it is lost. It performs no I/O, reads no clock, starts no goroutine and draws no random
// number; time (CLOCK_BOOTTIME, nanoseconds), the connection and everything that arrives are inputs, and what is to be
// done comes back as actions. It is not safe for concurrent use: package client calls it under one lock.
//
// # What a caller must do, in this order
//
//  1. Call an input (Submit, Reply, Kept, Tick, …) with a time that never goes back.
//  2. Take the actions with [Machine.Take] and carry them out in their order. A Send may be late or be lost; the machine
//     counts from the time of the input that produced it, which is never after the sending.
//  3. When [Machine.Next] is due, call [Machine.Tick].
//
// # The rule of trust
//
// The broker ends a hold when it has heard nothing for a lease. The client trusts a hold until the sending of the newest
// message that the broker is known to have heard, plus 3/4 of the lease. Known to be heard are: the acquire itself, a
// keep-alive that the grant quotes or that was answered with the hash of exactly the tokens that the client knows, and an
// answered renew. What is not proved extends nothing.
//
// # Reading order
//
// machine.go (the state, inputs and actions), call.go and send.go (requests), reply.go (answers), acquire.go (what ends an
// acquire), session.go (opening, coming back, the end), hold.go (trust), beat.go (keep-alives), compare.go (their hash).
package machine
