// Package edge is what a node decides between the messages of clients and the lock tables: whose session a token is, what a
// new session is like, which buckets are asked about a request that concerns all of them and what their answers come to, who
// answers a keep-alive, which closed connections are still of interest. It is pure: the daemon (package broker) and the
// simulator both call it; time, random identifiers and what other nodes know are inputs. It decides nothing about locks.
//
// # Keep-alives
//
// A keep-alive on the subject of all nodes arrives twice at one of them: once as its own copy, once as the member that the
// nodes' group has chosen. Each node asks its shards ([Ask] for each bucket), adds their shares up when they are confirmed
// ([AddUp]), and answers if [Answers] says so. So there always is an answer, and only nodes that have something to say give one.
//
// # Which lease counts
//
// max_lease changes while sessions live, and a node applies it earlier than another one. Two leases are told apart. A table keeps a
// session by the lease of its token, which is signed and never changes; so every bucket keeps it by the same one, whenever it first hears
// of it and at whatever node. What a client is told, by a grant or a keep-alive, is the smaller one of that and the longest lease that the
// node knows now ([Promise], [Receipts.Complete]): a recovery waits for no more. So nobody is promised more than any table keeps. (The
// answer to an enqueue tells the token's: nobody trusts anything by it, and the grant tells what counts.) Were a table given the smaller
// one, as it was once (seed 13000005717), a bucket that first heard of the session while max_lease was short would end its holds by that,
// while the keep-alives promise the token's again as soon as it is longer. A session that a bucket heard of first in such a time from a
// build before that was mended (b99cf52) is kept by the smaller one there until it ends, also by newer builds, since that is replicated.
//
// # Requests about all buckets
//
// The node that got a list or a session-close collects: [Collect] says which buckets are missing, [Primaries] which nodes to ask
// about them, [Collect.Take] takes in what a node says ([NewPart]). The goroutine or simulator around it has the time limits.
//
// # Reading order
//
// token.go, session.go, receipt.go (what is signed), closed.go (connections), bucketset.go, share.go, keep.go, collect.go,
// page.go, refusal.go.
package edge
