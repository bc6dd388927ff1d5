// Package direct connects nodes with each other without NATS between them, for what every lock waits for: the messages of
// the chains, and requests that one node passes on to another, which package broker puts into frames. It knows nothing of what is
// in a frame.
//
// Over NATS a frame takes the daemon's own connection, the server's reader, the route's writer and reader and another
// connection inside of the process: some goroutines that wake each other, at each end. Here the goroutine that has something
// to say writes it to the socket itself, and one goroutine at the other end reads it and passes it on.
//
// # It may be missing
//
// A direct link is a faster way, never the only one. [Links.Send] says false where there is none, and then the caller takes
// the route. So nothing depends on it: a firewall, an older version, "off" in the settings cost time and no more. Between
// two nodes there is one connection, made by the one with the lower number, which asks the other one over NATS where it
// listens. That it cannot be made is told once in the log; [Links.Up] is what metrics show.
//
// # What a link promises
//
// While it is up frames arrive whole, in order and once. When it goes down, what was on its way is lost, and what is sent over
// the route after that, or before it came up, may overtake or be overtaken. That is what NATS promises between two nodes, too,
// and what the chain is made for (bucket/chain, "Links": what is lost is repeated, and what overtakes says nothing new, because
// every message names the point that it follows). No safety rule is about the way that a message took. Requests that are passed
// on are another matter: who sent one is told when the link is over (Config.Down), and has it go another way (package broker).
//
//   - Sending never waits. What the socket does not take stays in memory, up to maxWaiting bytes, while a goroutine writes
//     it (what that one has taken counts as well); beyond that the link is closed, as a slow consumer is in NATS.
//   - A link over which nothing comes is closed after at most 4 × beatEvery, 0.8 s; both ends send an empty frame every
//     beatEvery. That is before a route in the same situation is (1.5 s), and before a primary drops a member that makes no
//     progress (1 s, chain.Limits.Drop): a link that hangs while the route works costs a pause, not a copy.
//   - A link that did not last is made anew after a pause that doubles (retryFirst to retryLast), so one that breaks
//     whenever it is used does not disturb for long.
//
// # Who is at the other end
//
// TLS 1.3 with the certificates of the routes, in both directions: the cluster's authority signed it, and the name in it is
// the node's identifier. It must be a node that the shared configuration has now, and the one that was meant. The number of
// that node is what a frame's sender is compared with. Handshakes have handshakeTime; at most halfOpen of them are under way,
// more are closed at once, so a stranger who opens connections keeps nodes from a faster way and from nothing else.
//
// # Frames
//
// Both ends say in the handshake (ALPN) which versions of the frames they know, and take the newest that both do; what a version
// means is the caller's ([Link.Version]).
//
// Four bytes with the length, most significant first, then so many bytes; a length of 0 is a beat. More than MaxFrame closes
// the link. There is no sum: TLS has one, and each message of the chain has its own.
//
// Reading order: links.go (what a caller has), meet.go (how connections are made), conn.go (one connection), outlet.go (writing
// without waiting), frame.go.
package direct
