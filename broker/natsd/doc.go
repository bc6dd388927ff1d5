// Package natsd is the NATS server inside the daemon: in operator mode without files, with one account for each zone,
// the system account, and the account in which nodes talk to each other. It makes the broker's own connections, which
// stay inside the process, changes zones at run time, and reads the server's events about closed connections.
//
// NATS itself proves who asks: a user may publish only to subjects that end in its own token (the permissions are made
// in conf). So what arrives on locks.<op>.<user> in a zone was sent by <user> in that zone, whatever its body, headers
// or reply subject say.
//
// In a cluster the servers of all daemons are connected with each other: by mutual TLS with the cluster's own
// certificates, where each one's name is its node's identifier. The nodes' account has a connection of its own, so that
// their messages do not wait behind those of the zones. The package tells who is connected, from one moment to the next.
//
// What nats-server cannot be told, and what is done instead: it has no event for a route that closes, so its log is the
// hint to look (routes.go); it dials only addresses that are in its options, and changing those makes it look at every
// client again, so they are changed only while nodes are missing (addresses.go); it refuses a second server of one name
// only to the first one, so a newcomer asks the others whom they know (join.go).
//
// The package knows nothing of locks.
//
// A caller starts the server, connects, and at the end calls LameDuck, which tells the clients to go elsewhere, and then
// Stop. Read in this order: server.go, accounts.go, connect.go, zones.go, closed.go, logger.go; then, for a cluster,
// cluster.go, routes.go, addresses.go, join.go.
package natsd
