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
