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
//  3. perform: carry out the rest: the effects that are confirmed, that is, publish, and messages to the other copies.
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
// writing snapshots when the journal has grown and watching it (tables.go), watching whether the shards get on (pulse.go), telling clients of events (events.go), and, for each zone, ending
// subscriptions (ending.go).
//
// # Several nodes
//
// Each bucket has one primary, and only that node listens on the bucket's subject. A request that was left to the broker comes
// to the node of its caller's own server (here.go) and is passed on to the primary (forward.go). One that concerns all buckets is taken to all primaries by the node that got it, and each
// bucket counts once (collect.go; remote.go is what goes between the nodes, gather.go what each does for its own buckets). What
// clients are told when nodes come and go is told by one node, though all see it (announcer.go, events.go).
//
// # Passing on
//
// A request that is answered once and soon goes over the direct link to the primary's node, if there is one, with what else goes
// there (passage.go), and its answer comes back the same way, to the node that was asked, which publishes it. All others, and
// all where there is no link, or one to a node of an older version, go over NATS with their caller's reply subject, and the
// primary publishes the answer.
//
// None is lost without a word. What went over a link stays with the node that was asked until it is answered, within the bounds of a
// passage; beyond them it takes NATS. When the link is over, and when the primary says that its bucket went to another one before the
// request was confirmed, nobody knows whether it was carried out. Then it is asked again if it has an id, or changes nothing: the
// table carries out an id once, so that is what its caller would do, earlier. One without an id is never sent twice. Whoever has
// carried it out may still tell (bucket/replicated, "recent"); if nobody has after parking.Time, which a fail-over fits into, its caller is
// told that nobody knows; one that waits for a lock is told nothing, since it may stand in the queue. What was passed on over NATS is told by NATS if nobody listens there, since the node is gone or the route to
// it is not there yet; then it is not carried out, and asked again whatever it is. What a broken route swallows is lost, as NATS is.
//
// So a request has at most one effect: it is with one node at a time, and is given to a second one only by that rule. One that is delayed in
// a link or a route that broke may be carried out later, by a node that is still the bucket's primary then: that is for the table to decide,
// by views and leases, which no passage touches, as it was with NATS. Exclusion rests on nothing here: an answer that comes late is one that
// NATS may deliver late, too, and a client counts from its own sending.
//
// The answer is published by the node that was asked because its server has heard of the caller's inbox before it heard of the request.
// The primary's server may not have, since a direct link overtakes the route; so it publishes itself only what came to it over NATS in
// the zone's account, where one order holds, and answers whose link has broken.
//
// # Bundles and sheaves
//
// A client may send several requests in one message to the node that is their primary (bundle.go). The pump takes such a bundle apart, and
// nobody behind it knows of it: each request is decoded, counted, refused and queued by itself, as one that came on its bucket's own subject.
// All reply subjects of a bundle are made of its own, below the same inbox, so what holds for that (mayAnswer) holds for them. Keep-alives that
// stand next to each other go to each shard in one task (keep.go), which counts for as many requests as they are. Still each is asked of every
// bucket by itself, heard when the batch is stepped, and answered when what it tells is confirmed, as one that came alone.
//
// That a caller takes sheaves, several answers in one message (sheaf.go), is told by the reply subject itself, which is replicated and
// passed on. So it needs no state: whoever answers, after whatever fail-over, may use it, and who does not know it answers one by one. A
// shard puts together what it publishes in one batch, and nothing is kept when that is over; the event of a session does not overtake
// the answers before it. The subject of a sheaf differs from the reply subjects in the last token only, so it is below the inbox that they
// are below, and answers to two inboxes, or in two zones, are never in one sheaf. What is passed on over a link is answered one by one.
//
// # Reading order
//
// daemon.go (life cycle), zone.go and pump.go (edge), bundle.go, session.go (tokens), queue.go, shard.go, cell.go and park.go (the three
// phases), perform.go and sheaf.go (effects), links.go, inlet.go, direct.go and copies.go (the other nodes, the control plane), keep.go, gather.go and collect.go
// (operations over many buckets), local.go, servers.go and health.go (operations without a table), then the rest.
package broker
