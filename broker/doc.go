// Package broker is the daemon: it turns NATS messages into inputs of the lock tables and the tables' effects into NATS
// messages. It decides nothing about locks: who is granted what, and when a lease is over, is decided in package bucket.
//
// # The goroutines
//
// Each zone has one connection to the embedded server, into the zone's account, and one pump: the goroutine that takes
// what arrives, checks and decodes it, answers at once what needs no lock table (info, session-open, …), and queues the
// rest for the shards. Each shard owns a share of the buckets: it alone touches their tables, takes requests from its
// queue in batches, fairly between the zones, and goes through three phases with each batch:
//
//  1. step: feed every request, every message of the chain and every timer that is due to its bucket; each bucket that had
//     an input says in one round what is to be done;
//  2. commit: hand all records of the batch to the journal with one write;
//  3. perform: carry out the rest: messages to the other copies first, then the effects that are confirmed, that is, publish.
//
// Nothing that a bucket says leaves the daemon before phase 2 is through. When the journal fails, nothing leaves at all
// and the daemon stops: what it could not write it may not promise. An effect whose change the secondaries have to confirm
// comes out of the round in which they have (package bucket/replicated). A request for a bucket that nobody can answer for,
// because its primary is being replaced, stands at it for a while (package parking).
//
// What the copies have for another node goes out at the end of a batch, many messages in one frame (links.go), over a direct
// link to that node or over NATS (direct.go); what comes from other nodes is taken by the reader of the link, or of the
// connection, and queued for the shards (inlet.go). The control plane (package control) runs on
// goroutines of its own and tells the shards of views and leases with tasks that go before all requests (copies.go). The
// rest, each on a goroutine of its own: adopting a new state of the shared configuration (adopt.go), serving the tools,
// writing snapshots when the journal has grown and watching it (tables.go), telling clients of events (events.go).
//
// # Several nodes
//
// Each bucket has one primary, and only that node listens on the bucket's subject. A request that was left to the broker is
// passed on to it (forward.go). One that concerns all buckets is taken to all primaries by the node that got it, and each
// bucket counts once (collect.go; remote.go is what goes between the nodes, gather.go what each does for its own buckets). What
// clients are told when nodes come and go is told by one node, though all see it (announcer.go, events.go).
//
// # Reading order
//
// daemon.go (life cycle), zone.go and pump.go (edge), session.go (tokens), queue.go, shard.go, cell.go and park.go (the three
// phases), perform.go (effects), links.go, inlet.go, direct.go and copies.go (the other nodes, the control plane), gather.go and collect.go
// (operations over many buckets), local.go, servers.go and health.go (operations without a table), then the rest.
package broker
