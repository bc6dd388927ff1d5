// Package inside is the broker's own connection to the embedded NATS server, for what is on the way of every request. It speaks
// NATS's client protocol over a pipe inside of the process and does what nats.go does there with fewer goroutines and less memory:
//
//   - A message is handled by the goroutine that has read it, in the order in which the server sent it, and its body is not copied.
//     With nats.go it goes through a channel to another goroutine.
//   - What was published is written by whoever flushes, if it is short and nobody else is writing. With nats.go another goroutine
//     is woken, which holds the lock that the next to publish needs for as long as the server takes to read.
//
// So a request passes two goroutines less on its way in and out, and so does each message of a chain. The rest of the broker, which
// needs requests, channels or statistics, keeps to nats.go.
//
// # What a caller must know
//
// A handler runs on the connection's reader: it must not wait for anything that this connection brings, and what it publishes it
// flushes with Kick, never with Flush. Flush may wait until the server has read; the server never waits for a reader of a connection,
// so that ends. What is published while the connection is away, or more than Options.Pending waits to be written, is refused and not
// kept. The connection comes back by itself, with its subscriptions, until Close.
//
// # Reading order
//
// conn.go (life), handshake.go, publish.go, read.go (the reader and the protocol), errors.go.
package inside
