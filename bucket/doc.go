// Package bucket is the lock table of one bucket: a pure state machine.
//
// Same state and same input give the same output: the package performs no I/O, reads no clock, starts no goroutine,
// draws no random number, and no map order leaks into what it returns. Time (boot-time clock and wall clock), random
// unlock keys, the hash of the index and the caller's proven identity are inputs.
//
// # What a caller must do, in this order
//
//  1. Feed inputs one at a time with [Table.Step]. Its output has at most one change and any number of effects.
//  2. Hand the change on to whatever makes it durable (journal, chain), in the order of the sequence numbers.
//  3. Carry out the effects of a Step only after the change with the sequence number Output.Seq, and every change before
//     it, is confirmed. A step without a change has effects too (a refusal, a query's answer): they tell about the state
//     after Output.Seq and wait for it just the same. So does the answer of [Table.Keep] and of [Table.List]. What a step without a
//     change or a Keep says waits for one more change if [Table.Untold] says so: the one that a Step with the input Heard makes.
//  4. When [Table.Next] is due, feed a Tick; it carries out one due timer for each Step, so feed it until nothing is due.
//  5. Throw the table away when [Table.Err] says so.
//
// A replica is fed with [Table.Apply] instead and never with Step: it has no timers and ends nothing by itself. Apply
// returns the same effects that the primary's Step had, so that a successor can answer again. [Table.Promote] makes a
// replica (or a table restored from disk) the primary: the term rises and every lease, limit and wait starts anew.
//
// The rules (who is granted when, what ends a session) are in ARCHITECTURE.md, "Decisions about the lock table".
//
// # Decide, then apply
//
// Step looks at the state and writes what it decides as explicit ops into a change: grant, enqueue, end a hold, admit a
// waiter. Each op is applied at once by the same function that applies it on a replica. What depends on a clock is in an op
// as a result, or is soft: deadlines, the last keep-alive, what a closed connection has begun. Soft state is the
// primary's own and is marked so; it is in no change and in no snapshot.
//
// # Which opening of a session is the later one
//
// Whoever has a session's secret may open it again, at any node, and no node asks another one first: so two processes may come back
// to one session at once, and both have a valid token. Were the two alike to a table, both would act, each would be told what the
// other one did, and the end of the first one's connection would end what the second one trusts. So of two openings one is always
// the later one, whoever compares them and in whatever order they come: opening.compare decides, and nothing else compares them.
//
//   - First by number. It is above that of the secret, so who comes back is above himself before, whatever the clocks show; and it
//     is not below the node's wall clock, so who comes back after somebody else is mostly above him too. Nodes with clocks that
//     differ, or one millisecond, give one number twice, and nothing that they know of each other could prevent it: a number that
//     is a node's own would have to tell the lives of that node apart as well, or be drawn, and then be unlike only by chance.
//   - Then by connection, of which there is one only: a server's id is that of its process, and it numbers its connections. An
//     opening that names none has 64 random bits in that place (broker/edge).
//
// So equal means: of one connection, which is one process, and ends once. Which of two with one number is the later one means
// nothing; that all buckets, on all nodes, after any takeover, agree about it means that one of the two processes keeps the session,
// and the other one is refused as superseded wherever the first one has been. A bucket that only the other one has met goes on
// for it until the first one comes, as it does with numbers that differ: what it held stays the session's, nobody else gets it.
//
// That they agree after a takeover too asks for one thing more. A renewal of the same length, a query, a refusal and a keep-alive make no
// change, and may be the first that a bucket hears of an opening. Were they answered at once and the primary died then, its successor
// could take an opening between the two for the latest, and the end of that one's connection would end what the answer has made
// the later one's client trust. So the opening is told in a change of its own in that case, once for each opening and bucket, and
// the answer waits for it.
//
// Where that change cannot be made (too many wait for their confirmation), a keep-alive of a new opening is told nothing, and the table
// takes no note of the opening: what is soft must not decide which one is later. But the process is there, and what it had would end
// with the grace of its closed connection, or with the lease, as soon as there is room, before a keep-alive could be heard. So those begin
// anew ([Table.Stay]), in so far as they are not over. That ends nothing and makes nobody trust anything: a hold lives for longer, at
// most by the grace after the last such keep-alive, and until its opening is told its connection is still the one that was closed.
//
// Number and connection are replicated and in snapshots, the change that tells of them is refused by Apply if it is not later than what is
// there. What is left of a session that was forgotten has no connection: it had been silent for long, so nobody trusts anything in
// it, and whoever has that number may come back.
//
// # What is remembered of ended holds
//
// A zone's ring has the key, the name's index and the end of its last 1,024 holds in this bucket. It is read in two places, both
// of which refuse: who comes with a key that is no holder's is told whether it was released or lost (missing), and who repeats an
// acquire that was granted learns why the grant is over. That the key opens nothing is known by the holds, that a request takes
// effect once by the entries; so no promise needs the ring, and forgetting an end can only turn 410 into 404 or 403, and leave out
// a why. It is forgotten for memory's sake: once no hold of the zone has ended here for ten minutes, all but the last 16. What is
// forgotten must be the same in every copy, since two copies with different rings would answer differently and have different
// snapshots; so the primary alone looks at its clock, and an op (opForgetEnds) says how many of the oldest go. The time since the
// last end is soft: a new primary counts it anew, which keeps more for longer. A version that does not know the op refuses the
// change and its copy begins anew from a snapshot, again and again, until it is replaced too.
//
// # Which holds know their request
//
// The client of a session may have been told that its acquire was refused, by a history that a recovery has left behind, and have a
// hold by the one that went on: then it can name nothing but the number. A cancel finds the hold by the remembered outcome, but the first
// `done` takes that away, which the client sends as ever. To let each hold know its number would take 64 bytes more for each, so
// these do (holdMore.request):
//
//   - who waited, for it may have been told a refusal at any primary that had its place in the queue;
//   - when a term begins, whose outcome is remembered. Of an acquire that was granted at once the client was told the grant, or a
//     refusal by another history. In the latter case that history's primary came after this grant's was over, which takes no requests
//     then; so no `done` above the number is in this history before the term with which the recovery begins, and the outcome is there.
//
// The latter costs those 64 bytes for each hold whose grant is remembered at a promotion, which its client has answered with `done` mostly,
// so for the newest of each session; they stay until the hold ends.
//
// What follows from it is one thing only, that a cancel whose outcome is forgotten finds its own hold. The number is in changes and
// snapshots as before, opTerm and opAdmit derive it alike in all copies, and no op fits or does not fit by it: a copy whose program does
// not derive it knows fewer numbers, and answers such a cancel "released".
//
// # Reading order
//
//   - api.go, table.go: what goes in and comes out, the table and its cursor
//   - records.go: locks, holds, waiters, requests
//   - step.go, change.go, apply.go, body.go: from input to change; coder.go is the binary form; spares.go (memory that is used again)
//   - acquire.go, queue.go, wait.go, hold.go, release.go: a lock's life; queue.go has the rule of who is next
//   - session.go, keep.go, sessionend.go: a session's life in this bucket
//   - requests.go, cancel.go: at most once
//   - force.go, query.go, list.go: the other operations; refuse.go and why.go are the words of refusals
//   - timers.go, promote.go: what time does; token.go
//   - snapshot.go, restore.go, describe.go
//   - slab.go, names.go, index.go, wheel.go, ordered.go, intern.go, zone.go, ended.go: where ten million locks are kept
package bucket
