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
// answered renew. What is not proved extends nothing. Of a session that came back, only what was sent since then counts.
//
// A renew may set another time limit, and the broker may count by it from the sending on: until the answer the trust ends by
// whichever limit is over first, and such renews of one hold are sent one after the other (extend.go).
//
// # Which keep-alive covers which hold
//
// A bucket has one primary at a time, and buckets move: by hand-over, or because a node died. The nodes know that before the
// client does, and not all at the same time. So nothing is concluded from where a bucket is thought to be; that (home.go)
// decides only whom to ask. What counts is one bucket in one node's answer (subjects.KeptBucket), and this is the rule:
//
//   - Listed, and the tokens are those that the client knows: every one of these holds is trusted from the sending of that
//     keep-alive. A node lists a bucket only while it may answer for it (its lease, its view), so it was primary after the
//     keep-alive was sent, and had heard it. If the bucket moves afterwards, or has done so by the time that the answer
//     arrives, the next primary begins every lease anew and in full: the hold lives longer than the client trusts.
//   - Listed with other tokens: nothing is extended, and the holds of that bucket alone are asked for one by one (renew).
//   - Not listed: this node says nothing about the bucket. It may be in fail-over, at another node that was asked a moment
//     before it came or a moment after it left, or the holds in it are lost. Nothing is extended and nothing is lost. All
//     nodes are asked again, every 1/32 of the lease (5 to 250 ms); after two more rounds in vain also by renew, which goes
//     to the bucket's subject and so to whoever is primary, 64 at a time, those with a newer proof left out.
//   - No answer, from one node or from all: as not listed. The claims of the other nodes are extended by their own answers.
//
// So a hold ends for the client in three ways only: its primary says so (410, 404, 403 to a renew by name; an event), its
// session is over (410 session), or its trust ends by the clock. A fail-over that is shorter than a quarter of the lease ends
// none: a keep-alive is due at half of the lease at the latest, and the trust goes on to three quarters.
//
// Totals alone (a broker that lists no buckets) are compared with the holds of the buckets that the node is thought to be
// primary of. Tokens are unique in a bucket only, so there a token that two holds share proves neither: one may have been
// lost when the other's bucket came.
//
// # Keep-alives in step
//
// Each message costs the servers far more than what it says. Where clients share a connection, the keep-alives of their sessions can share
// messages, if they are due at one time. So their rounds begin at moments that are the same for all of them (Config.InStep), four in a
// lease, and a round that would be due between two of them begins at the earlier one. A round may begin at any time before half of the
// lease is over: the broker counts the lease from when it hears a keep-alive, the client its trust from when it was sent, both as ever, and
// no message is needed less or left out. From the second round on they are half a lease apart, as without steps; the first one is up to a
// quarter of the lease earlier. What is asked again, and what is asked of all nodes, goes by itself.
//
// # Requests while a primary dies
//
// A request changes something at most once, by its number, so sending it again is always safe. It is sent again
//
//   - when the NATS server says that nobody listens for its bucket: then it waits with all others of that bucket, and one
//     small request finds out when somebody does (vacancy.go);
//   - when that has ended, or a higher epoch was seen in an answer, or a node is said to be down: all that was sent to the
//     bucket before and is unanswered, since the old primary may have taken it with it. A waiter that the new primary knows
//     keeps its place; it is answered without that as well;
//   - after silence: at first what answers usually take (roundtrip.go), then ever longer;
//   - when the lane is lost that it was sent over, or leads to a node that is not the primary (lane.go): over the home connection;
//   - over a new connection: everything.
//
// A refusal 421 brings the map; a newer one is followed at once, any other is waited for, a little longer each time. The
// machine never goes back to an older map or epoch.
//
// # What a recovery may bring back
//
// A recovery may go on from another history than the one by which a call was answered (more failed than `acks` allows). Then the
// broker has holds for the session that nobody here wants, and would keep them with it. So what is over is remembered (orphan.go):
//
//   - a hold that was released, or that the broker has ended, by its key and its acquire's number: the newest 256;
//   - an acquire of the session that brought none (it was refused, timed out, or was cancelled), by name and number: the newest 256 of
//     those of which two histories may tell. That takes two copies of the request, or a waiter: one that was sent once and did not wait
//     was seen by one primary only, and is not remembered.
//
// When a keep-alive counts more than is known, what explains it is released by its key; if nothing does for a whole lease, all keys of
// the bucket are released and all those acquires cancelled, the oldest first, 64 with each keep-alive, and again after twice the time. A
// program that goes on trying a lock which its own session has in this way adds newer ones meanwhile, which are not waited for. It
// crowds out the one that matters only if it times out 256 times before that one's turn comes, which is in a lease and a half (two more if
// 256 are of one bucket). No token is ever guessed, from a hash or a query: what is asked for names what it ends.
//
// A key tells of one grant, not of its request. Each copy of an acquire that is sent again has a key of its own, drawn by the node that
// takes it, and the first copy in a history is what is granted there. So one request may have been granted with one key in the history by
// which it was answered, and with another in the one that a recovery goes on with. Then the key opens nothing there (403, 404), and the
// request is cancelled by its number, which is the same in both.
//
// This ends no hold that anybody trusts: the number is that of one request in one session, it is never used twice, and its call is over
// here, so a grant of it is not trusted by anybody (one that comes late is released by its key). Another process with the session's
// secret numbers its requests unlike (renumber.go); what is refused for its number is not remembered. A request that was refused has no
// effect then, and one that was granted has had its one hold. It is liveness only: if the 256 do not reach, or the process dies, the hold
// ends with the session. A bucket knows which hold a number means as its doc says.
//
// # Reading order
//
// machine.go (the state, inputs and actions), call.go and send.go (requests), reply.go (answers), acquire.go (what ends an
// acquire), session.go (opening, coming back, the end), renumber.go (numbers that are too low),
// hold.go (trust), beat.go (keep-alives), compare.go (their hash), extend.go (other time limits), orphan.go (holds that the broker has
// again), home.go (where buckets are), lane.go (connections to their nodes), vacancy.go (buckets without a primary), roundtrip.go; road.go
// and roam.go (which server to connect to).
package machine
