// Package natsd is the NATS server inside the daemon: in operator mode without files, with one account for each zone,
// the system account, and the account in which nodes talk to each other. It makes the broker's own connections, which
// stay inside the process, changes zones at run time, and reads the server's events about closed connections.
//
// NATS itself proves who asks: a user may publish only to subjects that end in its own token (the permissions are made
// in conf). So what arrives on locks.<op>.<user> in a zone was sent by <user> in that zone, whatever its body, headers
// or reply subject say.
//
// The package knows nothing of locks.
//
// A caller starts the server, connects, and at the end calls LameDuck, which tells the clients to go elsewhere, and then
// Stop. Read in this order: server.go, accounts.go, connect.go, zones.go, closed.go, logger.go.
package natsd
