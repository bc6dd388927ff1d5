// Package replicated is one bucket on one node: its lock table, its copy's place in the chain, and what waits for
// confirmation. It is pure, as the two rooms are that it joins: no I/O, no clock, no goroutine, no randomness.
//
// # What it decides
//
// Package bucket says what a request leads to, package chain says what is confirmed. Between them stands little, but it
// has to be right, so it is here and not in a goroutine of the daemon:
//
//   - A request is given to the table only if its change could be proposed this instant ([Bucket.Request] says otherwise
//     where the request belongs). So a table never makes a change that the chain does not get.
//   - An effect waits until the change with its sequence number is confirmed and the copy may act. Effects keep their order.
//   - A secondary applies confirmed changes only, and remembers the replies of the last ones: its primary may have died
//     between the confirmation and the publishing. After a promotion they are given again, identical, with those of
//     changes that nobody knew to be confirmed. Replies are at least once; a client acts on one.
//   - In a recovery nothing is given again, nor what still waits for a change of before. What is remembered then is of a history that
//     may have ended before another one that is lost: a grant in it may never have been confirmed, and another client may hold the lock
//     by the other one and trust it. Whoever waits for that grant, not long after it has asked, would trust it too. (A table does not
//     begin a trust in a recovery either: package bucket, refuse.go.) And what is told of a name that was split off since tells nothing
//     about the bucket that has it now. Who waits asks again, as after any answer that is lost; the table answers by its rules of a
//     recovery. A copy that takes over when the recovery is over may remember such a grant too: by then all leases are over that were
//     asked for before it began.
//   - A table that counts fewer buckets than there are gives nothing that waits to anybody after a recovery, and after a takeover,
//     before it is split. Its history may have lost the change that split it already, and then the other bucket lives elsewhere: what
//     this table has of its names is old, and to go by it would be a second opinion on who holds them. Who is asked about such a name
//     knows how many buckets there are, and asks the other one; but those who wait here, and are served when a lease ends, are in the
//     table. So it is split first, and the other bucket, where it has begun, throws its old half away. Until then what time does in it,
//     the end of a wait or of a hold, is not told of names that are not its own any more: it would be a word about a wait or a hold that
//     the other bucket goes on with. A refusal does not say of which name it is, so no end of a wait is told; who asks again hears it. A secondary of
//     such a table remembers none of it either.
//     Without a recovery in between the other bucket cannot have begun: its in-sync set was this one's.
//   - A new primary's term is higher than any that may have been used: the argument is at [Bucket.term].
//   - A copy whose table does not take a confirmed change, the state that a neighbour sent, or what the journal has, is stopped and
//     alerted: it counts for nothing, is dropped from the chain and begins anew. The other buckets of its node go on.
//   - What has to be in the journal comes out as records before everything that may be seen outside.
//
// # What a caller must do
//
//  1. Feed inputs, in any number: requests, messages of the chain, views, leases, and Tick when [Bucket.Next] is due.
//  2. Call [Bucket.Round] for each bucket that had an input; all of them may add to one [Output].
//  3. Carry the Output out from the top to the bottom: the records are written before anything else is begun. If they
//     cannot be, the process must end without carrying out the rest.
//
// What is released may be published however late, also after the lease has ended: a grant or a release is in the in-sync
// set, so a successor has it; a client counts its trust from its own sending; and what only tells of a state tells of one
// that was true after the request had been sent, because the time of a turn is read after its requests were taken.
//
// [Replay] is the way back from the journal's records to the [Start] of a bucket.
package replicated
